"""Surplus before cores, cores whole, and what protection leaves to take."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.actions.helpers import MINUTE, NOW, changed, cluster, codes, play, queue, runs, shields, steps, waits

from tenure.model.workload import Checkpoint, Phase
from tenure.report.plans.plan_json import plan_json

QUEUES = [queue("a", guaranteed=2), queue("b", guaranteed=0)]


def test_surplus_goes_before_the_core():
    state = cluster(QUEUES, [runs("elastic", "b", ["n0"] * 4, core=2), waits("contender", "a", gpus=2)])
    assert steps(play(state)) == [("elastic", "elastic-2"), ("elastic", "elastic-3")]


def test_a_core_goes_whole():
    state = cluster(QUEUES, [runs("gang", "b", ["n0"] * 4), waits("contender", "a", gpus=1)])
    assert len(steps(play(state))) == 4


def test_a_protected_workload_gives_its_surplus_and_no_more():
    queues = [QUEUES[0], queue("b", guaranteed=0, reclaim_min_runtime=2 * 60 * MINUTE)]
    state = cluster(queues, [runs("elastic", "b", ["n0"] * 4, core=3), waits("contender", "a")])
    assert steps(play(state)) == [("elastic", "elastic-3")]
    more = cluster(queues, [runs("elastic", "b", ["n0"] * 4, core=3), waits("contender", "a", gpus=2)])
    found = play(more)
    assert found.steps == []
    assert ("elastic", "min-runtime") in shields(found)


def test_one_protected_workload_does_not_spoil_the_set_in_which_others_do():
    queues = [QUEUES[0], queue("b", guaranteed=0, reclaim_min_runtime=30 * MINUTE)]
    running = [runs("young", "b", ["n0"] * 2, core=1, minutes=1), runs("old", "b", ["n0"] * 2, core=2)]
    state = cluster(queues, [*running, waits("contender", "a", gpus=2)])
    assert steps(play(state)) == [("old", "old-0"), ("old", "old-1")]


def test_the_cheaper_of_two_is_taken_and_not_the_younger():
    running = [runs("long", "b", ["n0"] * 2, minutes=600, checkpoint=Checkpoint(last_at=NOW - MINUTE)),
               runs("short", "b", ["n0"] * 2, minutes=10)]  # fmt: skip
    state = cluster(QUEUES, [*running, waits("contender", "a", gpus=2)])
    assert {w for w, _ in steps(play(state))} == {"long"}
    youngest = replace(state, settings=replace(state.settings, victims="youngest"))
    assert {w for w, _ in steps(play(youngest))} == {"short"}


def test_a_huge_restart_overhead_is_capped():
    """It protects no better than saving: an hour without a checkpoint costs more."""
    huge = Checkpoint(last_at=NOW, restart_overhead=100 * 60 * MINUTE)
    running = [runs("saved", "b", ["n0"] * 2, checkpoint=huge), runs("silent", "b", ["n0"] * 2)]
    state = cluster(QUEUES, [*running, waits("contender", "a", gpus=2)])
    assert {w for w, _ in steps(play(state))} == {"saved"}


def test_lower_priorities_inside_a_queue_go_first_though_they_cost_more():
    running = [runs("low", "a", ["n0"] * 2, minutes=600), runs("high", "a", ["n0"] * 2, minutes=1, priority=5)]
    state = cluster([queue("a")], [*running, waits("contender", "a", gpus=2, priority=9)])
    assert {w for w, _ in steps(play(state))} == {"low"}


def test_nobody_escapes_by_raising_priorities_in_its_own_queue():
    """Priorities of different queues are not compared: cost decides between them."""
    queues = [queue("a", guaranteed=2), queue("b", guaranteed=0), queue("c", guaranteed=0)]
    running = [runs("boasts", "b", ["n0"] * 2, minutes=1, priority=99), runs("modest", "c", ["n0"] * 2, minutes=60)]
    state = cluster(queues, [*running, waits("contender", "a", gpus=2)])
    assert {w for w, _ in steps(play(state))} == {"boasts"}


def test_a_queue_is_not_carried_below_its_guaranteed_by_surplus():
    queues = [queue("a", guaranteed=2), queue("b", guaranteed=3)]
    state = cluster(queues, [runs("elastic", "b", ["n0"] * 4, core=1), waits("contender", "a", gpus=2)])
    assert steps(play(state)) == []


def test_what_the_same_cycle_placed_is_undone_without_an_eviction():
    """A workload that allocate has just bound gives way to one that it is due to; nothing of it ever ran."""
    queues = [queue("a", guaranteed=4), queue("b", guaranteed=0)]
    state = cluster(queues, [runs("old", "b", ["n0"], gpus=2), waits("small", "b", gpus=2, minutes=9),
                             waits("large", "a", gpus=4)])  # fmt: skip
    found = play(state)
    assert steps(found) == [("old", "old-0")]
    assert steps(found, "bind") == []
    assert steps(found, "nominate") == [("large", "large-0")]


def test_a_stale_gang_goes_after_its_grace():
    gang = runs("gang", "b", ["n0"] * 3)
    lost = replace(gang, tasks=(*gang.tasks[:2], replace(gang.tasks[2], phase=Phase.FAILED, node=None)))
    state = cluster(QUEUES, [lost])
    assert steps(play(state, cycles=60, every=1_000_000)) == []
    found = play(state, cycles=61, every=1_000_000)
    assert steps(found) == [("gang", "gang-0"), ("gang", "gang-1")]
    assert {s.cause for s in found.steps} == {"stale-gang"}
    assert steps(play(changed(state, "gang", staleness_grace_period=-1), cycles=90)) == []


def test_a_gang_of_which_one_task_is_left_is_stale_as_well():
    """Its other pod is gone altogether, and no task of the gang tells of it."""
    state = cluster(QUEUES, [replace(runs("gang", "b", ["n0"]), min_member=2)])
    assert steps(play(state, cycles=60, every=1_000_000)) == []
    found = play(state, cycles=61, every=1_000_000)
    assert [s.cause for s in found.steps] == ["stale-gang"]
    assert "default/gang runs 1 of the 2 tasks that it needs: it is stale" in found.steps[0].reason


def test_a_gang_that_is_repaired_in_time_is_not_stale():
    gang = runs("gang", "b", ["n0"] * 3)
    lost = replace(gang, tasks=(*gang.tasks[:2], replace(gang.tasks[2], phase=Phase.PENDING, node=None)))
    found = play(cluster(QUEUES, [lost]), cycles=70, every=1_000_000)
    assert steps(found) == []
    assert steps(found, "bind") == [("gang", "gang-2")]


def test_consolidation_moves_what_has_a_place_to_land():
    running = [runs("x", "a", ["n0"], gpus=2, minutes=9), runs("y", "a", ["n1"], gpus=2, minutes=60)]
    state = cluster([queue("a")], [*running, waits("contender", "a", gpus=4)], nodes=2)
    found = play(state)
    assert steps(found) == [("x", "x-0")]
    assert [(s.cause, s.to) for s in found.steps if s.action == "evict"] == [("consolidate", "n1")]
    assert steps(found, "nominate") == [("contender", "contender-0"), ("x", "x-0")]
    assert steps(play(state, cycles=3), "bind") == [("contender", "contender-0"), ("x", "x-0")]


def test_what_consolidation_moves_stands_among_the_moves_as_well():
    running = [runs("x", "a", ["n0"], gpus=2, minutes=9), runs("y", "a", ["n1"], gpus=2, minutes=60)]
    written = plan_json(play(cluster([queue("a")], [*running, waits("contender", "a", gpus=4)], nodes=2)))
    (move,) = written["moves"]
    (evicted,) = [s for s in written["steps"] if s["action"] == "evict"]
    step = {"workload": "default/x", "task": "x-0", "from": "n0", "to": "n1", "mode": "evict-first"}
    assert (move["for"], move["trigger"], move["feasible"], move["waves"]) == (
        ["default/contender"], "pending", True, [[step]],
    )  # fmt: skip
    assert (evicted["to"], evicted["wave"]) == ("n1", 0)
    assert move["certificate"]["cost"] == pytest.approx(evicted["cost"], abs=1)


def cheaper_victim_beside_a_move():
    """A workload of one minute on a node of its own, and two of ten hours of which one could move."""
    running = [runs("x", "a", ["n0"], gpus=2, minutes=600), runs("y", "a", ["n1"], gpus=2, minutes=600),
               runs("z", "a", ["n2"], gpus=4, minutes=1)]  # fmt: skip
    return cluster([queue("a")], [*running, waits("contender", "a", gpus=4, priority=5)], nodes=3)


def test_nothing_moves_where_a_cheaper_victim_may_be_taken():
    state = cheaper_victim_beside_a_move()
    nodes = tuple(replace(n, labels={"name": n.name}) for n in state.nodes)
    (z,) = (w for w in state.workloads if w.name == "z")
    only = tuple(replace(t, spec=replace(t.spec, node_selector=(("name", "n2"),))) for t in z.tasks)
    found = play(changed(replace(state, nodes=nodes), "z", tasks=only))
    assert [(s.workload, s.cause) for s in found.steps if s.action == "evict"] == [("default/z", "preempt")]


def test_a_cheaper_victim_is_not_cheaper_where_the_same_move_would_follow_for_it():
    found = play(cheaper_victim_beside_a_move(), cycles=5)
    assert [(s.workload, s.cause) for s in found.steps if s.action == "evict"] == [("default/x", "consolidate")]


def test_the_number_of_moved_workloads_is_bounded():
    running = [runs("x", "a", ["n0"], gpus=2, minutes=9), runs("y", "a", ["n1"], gpus=2, minutes=60)]
    state = cluster(
        [queue("a")],
        [*running, waits("contender", "a", gpus=4)],
        nodes=2,
        max_consolidated_workloads=0,
        actions=("allocate", "consolidate"),
    )
    found = play(state)
    assert found.steps == []
    assert codes(found, "contender")
