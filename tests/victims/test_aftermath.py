"""Causes add up: what would follow from a set is counted, refused or said before anything is evicted."""

from __future__ import annotations

from tests.actions.helpers import MINUTE, cluster, play, queue, runs, steps, waits

from tenure.report.plan_json import plan_json


def a_victim_that_would_preempt(*others, **settings):
    """Of queue a, only ``v`` may be taken now, for which ``u`` would have to go next; nothing follows for queue b."""
    queues = [
        queue("a", guaranteed=0, most=1, reclaim_min_runtime=30 * MINUTE),
        queue("b", guaranteed=0, most=0),
        queue("c", guaranteed=1),
    ]
    running = [runs("v", "a", ["n0"], minutes=60, priority=50), runs("u", "a", ["n0"], minutes=10)]
    return cluster(queues, [*running, *others, waits("j", "c")], gpus=2 + len(others), **settings)


def test_what_would_follow_is_added_to_the_cost():
    dearer = runs("w", "b", ["n0"], minutes=65)
    assert steps(play(a_victim_that_would_preempt(dearer))) == [("w", "w-0")]
    assert steps(play(a_victim_that_would_preempt(dearer, modes={"preempt": "off"}))) == [("v", "v-0")]


def test_what_costs_less_with_all_that_follows_goes():
    much_dearer = runs("w", "b", ["n0"], minutes=600)
    assert steps(play(a_victim_that_would_preempt(much_dearer))) == [("v", "v-0")]


def test_a_finished_plan_says_what_would_follow():
    found = play(a_victim_that_would_preempt())
    assert steps(found) == [("v", "v-0")]
    (said,) = plan_json(found)["followUps"]
    assert said == {
        "cycle": 0, "of": "default/v", "cause": "preempt", "for": "default/v",
        "evict": [{"workload": "default/u", "task": "u-0"}], "cost": 600.0,
    }  # fmt: skip


def test_nothing_follows_for_a_cause_that_is_not_enabled():
    assert play(a_victim_that_would_preempt(modes={"preempt": "shadow"})).follow_ups == []


def test_nobody_is_served_whose_place_would_be_taken_by_one_that_grows():
    """The second task of ``big`` waits until the first is bound, and would then preempt ``small``."""
    running = [runs("x", "a", ["n0"], minutes=9), runs("y", "a", ["n0"], minutes=60)]
    contenders = [waits("big", "a", tasks=2, min_member=1, priority=50), waits("small", "a", priority=10)]
    found = play(cluster([queue("a")], [*running, *contenders], gpus=2), cycles=6)
    evicted = [(s.workload, s.beneficiary) for s in found.steps if s.action == "evict"]
    assert evicted == [("default/x", "default/big"), ("default/y", "default/big")]


def test_whoever_stays_within_guaranteed_is_served_all_the_same():
    """Its own queue's surplus may take its place in turn: the guarantee is served at once."""
    running = [runs("x", "a", ["n0"], minutes=9), runs("y", "a", ["n0"], minutes=60)]
    contenders = [waits("big", "a", tasks=2, min_member=1, priority=50), waits("small", "a", priority=10)]
    found = play(cluster([queue("a", guaranteed=2)], [*running, *contenders], gpus=2))
    assert ("y", "y-0") in steps(found)
