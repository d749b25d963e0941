"""What cycles hand on to each other: nominations, moved work, victims that do not leave, and what is told of it."""

from __future__ import annotations

from dataclasses import replace

from tests.actions.helpers import MINUTE, NOW, changed, cluster, codes, play, queue, runs, steps, waits

from tenure.cycle import Scheduler
from tenure.engine.snapshot import session_of
from tenure.explanation.explain import explain_workload
from tenure.model.workload import Phase

QUEUES = [queue("a", guaranteed=2), queue("b", guaranteed=0)]
STATE = cluster(QUEUES, [runs("victim", "b", ["n0"], gpus=4), waits("contender", "a", gpus=2)])


def test_the_contender_is_bound_where_it_was_nominated_once_its_victim_has_left():
    found = play(STATE, cycles=3)
    assert [(s.cycle, s.action, s.workload) for s in found.steps] == [
        (0, "evict", "default/victim"),
        (0, "nominate", "default/contender"),
        (1, "bind", "default/contender"),
    ]


def test_nobody_else_takes_the_hole():
    """Not even a workload that comes first by age in its queue; the victim waits behind as well."""
    state = replace(STATE, workloads=(*STATE.workloads, waits("other", "b", gpus=3, minutes=500)))
    found = play(state, cycles=5)
    assert steps(found, "bind") == [("contender", "contender-0")]


def test_an_evicted_workload_says_when_it_was_evicted_and_waits_again():
    after = play(STATE, cycles=3).after
    victim = next(w for w in after.workloads if w.name == "victim")
    assert victim.last_evicted_at == NOW
    assert victim.started_at is None
    assert [t.phase for t in victim.tasks] == [Phase.PENDING]
    (eviction,) = after.evictions
    assert (eviction.workload, eviction.cause, eviction.beneficiary) == (
        "default/victim", "reclaim", "default/contender",
    )  # fmt: skip


def test_losing_surplus_does_not_reset_the_clock():
    state = cluster(QUEUES, [runs("elastic", "b", ["n0"] * 4, core=2), waits("contender", "a", gpus=2)])
    elastic = next(w for w in play(state, cycles=3).after.workloads if w.name == "elastic")
    assert elastic.started_at == NOW - 60 * MINUTE


def test_a_victim_that_never_leaves_is_not_waited_for_for_ever():
    """When the nomination expires the contender is planned anew, and takes another victim."""
    stuck = runs("stuck", "b", ["n0"], gpus=2, minutes=1)
    stuck = replace(stuck, tasks=tuple(replace(t, never_terminates=True) for t in stuck.tasks))
    running = [stuck, runs("leaves", "b", ["n0"], gpus=2, minutes=90)]
    found = play(cluster(QUEUES, [*running, waits("contender", "a", gpus=2)]), cycles=9, every=MINUTE)
    assert [(s.cycle, s.action, s.workload) for s in found.steps] == [
        (0, "evict", "default/stuck"),
        (0, "nominate", "default/contender"),
        (6, "evict", "default/leaves"),
        (6, "nominate", "default/contender"),
        (7, "bind", "default/contender"),
    ]


def test_explain_tells_the_victim_for_whom_and_why():
    found = play(STATE)
    story = explain_workload(found, next(w for w in STATE.workloads if w.name == "victim"))
    assert story.state == "gives way"
    assert "default/contender" in story.headline


def test_explain_tells_the_contender_what_it_would_take():
    state = changed(STATE, "b", reclaim_min_runtime=61 * MINUTE)
    found = play(state)
    story = explain_workload(found, next(w for w in state.workloads if w.name == "contender"))
    assert "ShieldedVictims" in codes(found, "contender")
    assert any("for reclaim, to wait" in help_ for help_ in story.helps)


def test_contenders_that_cannot_be_helped_do_not_starve_the_others():
    """Those that come first in order can only be helped by more than there is to take; the last is helped."""
    workloads = [runs(f"r{i}", "b", ["n0"], gpus=1, minutes=60 + i) for i in range(4)]
    infeasible = [waits(f"large{i}", "c", gpus=4, minutes=90) for i in range(3)]
    queues = [queue("c", guaranteed=4, priority=200), queue("a", guaranteed=2), queue("b", guaranteed=2)]
    state = changed(cluster(queues, [*workloads, *infeasible, waits("small", "a", gpus=2)]), "r0", preemptible=False)
    assert ("small", "small-0") in steps(play(state), "nominate")


def test_a_contender_that_is_about_to_leave_does_not_get_its_own_place_turn_after_turn():
    """The first plan evicts it, it is still there at the second, whose only victim leaves room at its place.

    To be served there is to be served nothing: the pass that helps contenders in turns goes on to the next.
    """
    queues = [queue("a"), queue("b", guaranteed=2), queue("d", guaranteed=1), queue("f", guaranteed=2)]
    gang = runs("gang", "a", ["n0"] * 4, core=4)
    running = [runs("leaves", "a", ["n0"] * 2), gang, runs("fixed", "f", ["n0"] * 2)]
    session = session_of(cluster(queues, [*running, waits("first", "b", tasks=2)], gpus=8))
    scheduler = Scheduler(session)
    assert steps(scheduler.cycle(NOW)) == [("leaves", "leaves-0"), ("leaves", "leaves-1")]
    session.add_workload(waits("second", "d"))
    plan = scheduler.cycle(NOW + 1_000_000)
    assert steps(plan) == [("gang", f"gang-{i}") for i in range(4)]
    assert ("second", "second-0") in steps(plan, "nominate")
    assert not [s for s in plan.steps if s.workload == "default/leaves"]
