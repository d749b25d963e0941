"""Nothing changes when nothing should: each rule alone forbids an eviction that happens without it, and says so."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.actions.helpers import MINUTE, NOW, changed, cluster, codes, play, queue, runs, shields, steps, waits

from tenure.model.settings import Settings

RECLAIM = cluster(
    [queue("a", guaranteed=2), queue("b", guaranteed=2)],
    [runs("victim", "b", ["n0"], gpus=4), waits("contender", "a", gpus=2)],
)
PREEMPT = cluster(
    [queue("a", guaranteed=4)],
    [runs("victim", "a", ["n0"], gpus=4), waits("contender", "a", gpus=2, priority=10)],
)


@pytest.mark.parametrize("state", [RECLAIM, PREEMPT], ids=["reclaim", "preempt"])
def test_without_the_rule_the_victim_gives_way(state):
    found = play(state)
    assert steps(found) == [("victim", "victim-0")]
    assert steps(found, "nominate") == [("contender", "contender-0")]
    assert steps(found, "bind") == []


def test_the_reason_names_beneficiary_rule_cost_and_what_was_considered():
    (step,) = [s for s in play(RECLAIM).steps if s.action == "evict"]
    assert step.beneficiary == "default/contender"
    assert step.cost == 4 * 3600
    for part in ("default/contender", "queue a is within its guaranteed", "4 weighted hours", "1 candidate in 1 set"):
        assert part in step.reason


FORBIDDEN = {
    "preemptibility": changed(RECLAIM, "victim", preemptible=False),
    "priority makes it not preemptible": changed(RECLAIM, "victim", priority=100),
    "min-runtime of the queue": changed(RECLAIM, "b", reclaim_min_runtime=61 * MINUTE),
    "min-runtime of the node pool": replace(RECLAIM, settings=Settings(reclaim_min_runtime=61 * MINUTE)),
    "fence": changed(RECLAIM, "a", preemption_policy="fence"),
    "disabled": changed(RECLAIM, "b", preemption_policy="disabled"),
    "guaranteed": changed(RECLAIM, "b", guaranteed={"nvidia.com/gpu": 4000}),
    "preempt: min-runtime": changed(PREEMPT, "a", preempt_min_runtime=61 * MINUTE),
    "preempt: priority": changed(PREEMPT, "victim", priority=10),
    "preempt: preemptibility": changed(PREEMPT, "victim", preemptible=False),
    "preempt: disabled": changed(PREEMPT, "a", preemption_policy="disabled"),
}
SHIELDS = {"priority makes it not preemptible": "preemptibility"}


@pytest.mark.parametrize("name", FORBIDDEN)
def test_one_rule_forbids_it_and_explains_itself(name):
    shield = SHIELDS.get(name, name.removeprefix("preempt: ").split(" ")[0])
    found = play(FORBIDDEN[name])
    assert found.steps == []
    assert ("victim", shield) in shields(found)
    assert "ShieldedVictims" in codes(found, "contender")


def test_the_preemption_delay_of_the_contender_forbids_it_until_it_has_passed():
    state = changed(RECLAIM, "contender", preemption_delay=5 * MINUTE + 1)
    found = play(state)
    assert found.steps == []
    assert "PreemptionDelay" in codes(found, "contender")
    assert steps(play(changed(RECLAIM, "contender", preemption_delay=5 * MINUTE))) == [("victim", "victim-0")]


def test_the_preemption_delay_counts_from_the_last_eviction():
    state = changed(RECLAIM, "contender", preemption_delay=4 * MINUTE, last_evicted_at=NOW - 3 * MINUTE)
    assert play(state).steps == []


def test_a_contender_beyond_its_fair_share_takes_nothing():
    state = cluster(
        [queue("a"), queue("b")],
        [runs("own", "a", ["n0"], gpus=2), runs("victim", "b", ["n0"], gpus=2), waits("contender", "a")],
    )
    found = play(state)
    assert found.steps == []
    assert "NoRight" in codes(found, "contender")


def test_a_contender_that_fits_somewhere_takes_nothing():
    state = replace(RECLAIM, nodes=cluster([], [], nodes=2).nodes)
    found = play(state)
    assert steps(found) == []
    assert steps(found, "bind") == [("contender", "contender-0")]


def test_what_can_never_fit_evicts_nothing_and_says_so():
    found = play(changed(RECLAIM, "contender", tasks=waits("contender", "a", gpus=5).tasks))
    assert found.steps == []
    assert codes(found, "contender")[0] == "NeverFits"


def test_a_fence_is_one_way():
    """From outside one may take from within."""
    assert steps(play(changed(RECLAIM, "b", preemption_policy="fence"))) == [("victim", "victim-0")]


def test_two_queues_that_fence_each_other_take_nothing_from_each_other():
    state = changed(changed(RECLAIM, "a", preemption_policy="fence"), "b", preemption_policy="fence")
    assert play(state).steps == []


@pytest.mark.parametrize("priority", [-(2**31), 2**31 - 1])
def test_priorities_at_the_ends_of_int32(priority):
    state = changed(changed(PREEMPT, "victim", priority=-(2**31)), "contender", priority=priority)
    assert bool(play(state).steps) == (priority > 0)


def test_a_contender_that_asks_for_nothing_takes_nothing():
    state = changed(RECLAIM, "contender", tasks=waits("contender", "a", gpus=0).tasks)
    assert steps(play(state)) == []


def test_guaranteed_sums_above_the_cluster_do_not_loop():
    state = cluster(
        [queue("a", guaranteed=4), queue("b", guaranteed=4)],
        [runs("x", "b", ["n0"], gpus=4), waits("y", "a", gpus=4)],
    )
    assert len(steps(play(state, cycles=20))) <= 1
