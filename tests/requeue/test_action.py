"""The action's part of the test plan, and each rule of the specification's section on it."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from tests.builders import NOW, SECOND, cluster, node, spec, task, workload
from tests.requeue.clusters import ACTIONS, nominated, one_node, overdue, queue, requeued, waiting
from tests.requeue.state import full_state

import tenure.actions.requeue as module
from tenure.clusters.embedded import EmbeddedCluster
from tenure.cycle import Scheduler
from tenure.engine.snapshot import session_of
from tenure.model.cluster import Eviction
from tenure.model.settings import (
    BudgetRule,
    DisruptionSettings,
    FairnessSettings,
    HistorySettings,
    NominatorSettings,
    RequeueSettings,
)
from tenure.model.values.duration import format_time
from tenure.model.workload import Phase
from tenure.playthrough import play

MINUTE, HOUR = 60 * SECOND, 3600 * SECOND


def counted(played):
    return played.requeue.committed, played.requeue.rolled_back


# -- the test plan ----------------------------------------------------------------------------------------------------


def test_no_contention_rolled_back_and_the_job_keeps_running():
    """Nobody waits, or nobody more deserving: no step, and the state untouched."""
    for others in ((), (waiting(priority=0),), (waiting(gpu=8),)):
        given = one_node(overdue(), *others)
        session = session_of(given)
        before = full_state(session)
        plan = Scheduler(session).cycle(NOW)
        assert plan.steps == []
        assert full_state(session) == before
        assert (plan.requeue.committed, plan.requeue.rolled_back) == (0, 1 if others else 0)
        embedded = EmbeddedCluster(given)
        embedded.carry_out(plan)
        assert embedded.observe() == given


def test_contention_exists_committed_job_evicted_and_not_before_set():
    played = play(one_node(overdue(), waiting()))
    assert requeued(played) == {"old": "new"}
    assert counted(played) == (1, 0)
    old = played.after.workloads[0]
    assert old.requeue_not_before == NOW + 10 * MINUTE
    assert old.tasks[0].phase is Phase.TERMINATING
    assert [(s.action, s.task) for s in played.steps] == [("evict", "old-0"), ("nominate", "new-0")]


@pytest.mark.parametrize("until", [None, HOUR])
def test_whoever_waits_is_told_which_shield_protects_the_candidates_and_until_when(until):
    """A policy without an end, or the hours of a budget; one that gets a place is told of none."""
    given = one_node(overdue(), waiting())
    if until is None:
        closed, shield = replace(given, queues=(queue("default", preemption_policy="disabled"),)), "disabled"
    else:
        rule = BudgetRule(name="few", max_evictions=1, per=2 * HOUR)
        logged = Eviction(at=NOW - HOUR, workload="default/gone", task="gone-0", cause="reclaim")
        settings = replace(given.settings, disruption=DisruptionSettings(budgets=(rule,)))
        closed, shield = replace(given, settings=settings, evictions=(logged,)), "budget"
    found = play(closed)
    told = [r for p in found.pending if p.workload == "default/new" for r in p.reasons if r.code == "ShieldedVictims"]
    end = None if until is None else format_time(NOW + until)
    shields = [{"workload": "default/old", "shield": shield, "until": end}]
    assert [r.numbers for r in told] == [{"cause": "requeue", "shields": shields}]
    assert not [r for p in play(given).pending for r in p.reasons if r.code == "ShieldedVictims"]


def test_cooldown_blocks_repeated_attempts():
    """Once requeued and running again past its expectation, it is left alone until its not-before."""
    again = replace(overdue(), requeue_not_before=NOW + MINUTE)
    assert not requeued(play(one_node(again, waiting())))
    assert requeued(play(replace(one_node(again, waiting()), now=NOW + MINUTE))) == {"old": "new"}


def test_cooldown_bars_whoever_nominates():
    """The action checks it as well: a nominator that does not is not enough."""
    given = one_node(replace(overdue(), requeue_not_before=NOW + MINUTE), waiting())
    session = session_of(given)
    session.workloads["default/old"].not_before = None  # the nominators see no cooldown …
    scheduler = Scheduler(session)
    inner = scheduler.actions[-1]

    def late(context):
        original = module.in_order

        def bar(*args):
            session.workloads["default/old"].not_before = NOW + MINUTE  # … but by now there is one
            return original(*args)

        module.in_order = bar
        try:
            inner(context)
        finally:
            module.in_order = original

    scheduler.actions[-1] = late
    plan = scheduler.cycle(NOW)
    assert plan.requeue.nominations
    assert not plan.steps


def test_multiple_plugins_nominating_same_job_one_entry_with_both_names():
    tree = [queue("a", guaranteed={"gpu": 2}), queue("b", guaranteed={"gpu": 2})]
    given = one_node(
        replace(overdue(), queue="a"), replace(waiting(gpu=2), queue="b"), queues=tree,
        nominators=NominatorSettings(over_share=True),
    )  # fmt: skip
    played = play(given)
    assert nominated(played) == {"old": ("expected-runtime", "over-share")}
    assert "nominated by expected-runtime, over-share" in played.steps[0].reason


# -- more deserving ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("priority", "any_", "goes"), [(0, False, False), (1, False, True), (0, True, True), (-1, True, False)]
)
def test_in_one_leaf_strictly_higher_priority_or_with_any_an_equal(priority, any_, goes):
    settings = {"requeue": RequeueSettings(contenders="any" if any_ else "more-deserving")}
    assert bool(requeued(play(one_node(overdue(), waiting(priority=priority), **settings)))) is goes


def test_in_another_queue_the_queue_has_to_be_ahead():
    """The one that holds less of its share is ahead; priorities of workloads in different queues are not compared."""
    tree = [queue("a"), queue("b")]
    old = replace(overdue(gpu=3, priority=90), queue="a")
    rest = replace(overdue("rest", gpu=1, priority=90, expected=None), queue="a")
    played = play(one_node(old, rest, replace(waiting(gpu=2, priority=0), queue="b"), queues=tree))
    assert requeued(played) == {"old": "new"}
    served = replace(overdue("served", gpu=2, expected=None), queue="b")
    small = replace(overdue(gpu=1), queue="a")
    behind = replace(waiting(gpu=1, priority=99), queue="b")
    assert not requeued(play(one_node(small, served, replace(rest, name="rest"), behind, queues=tree)))


def test_with_history_two_queues_take_turns_and_without_it_they_rest():
    """Two queues with one 4-GPU workload each and one node for one of them."""

    def given(**settings):
        tree = [queue("a"), queue("b")]
        old = replace(overdue(), queue="a", requeue_delay=0)
        new = replace(waiting(priority=0), queue="b", expected_runtime=HOUR, requeue_delay=0)
        return one_node(old, new, queues=tree, actions=ACTIONS, **settings)

    history = FairnessSettings(history=HistorySettings(half_life=24 * HOUR))
    played = play(given(fairness=history), cycles=60, every=30 * MINUTE)
    turns = [s.workload for s in played.steps if s.action == "evict"]
    assert len(turns) >= 6
    assert all(one != other for one, other in itertools.pairwise(turns))
    times = [e.at for e in played.after.evictions]
    assert all(later - earlier >= HOUR for earlier, later in itertools.pairwise(times))
    calm = play(given(), cycles=60, every=30 * MINUTE)
    assert len([s for s in calm.steps if s.action == "evict"]) <= 1


def test_over_share_takes_turns_by_past_usage_no_faster_than_the_cooldown():
    """Nobody said how long it takes: what a queue had too much of in the past gives way, its cooldown being over."""
    tree = [queue("a"), queue("b")]
    old = replace(overdue(expected=None), queue="a")
    new = replace(waiting(priority=0), queue="b")
    given = one_node(
        old, new, queues=tree, fairness=FairnessSettings(history=HistorySettings(half_life=24 * HOUR)),
        nominators=NominatorSettings(over_share=True), requeue_delay=30 * MINUTE,
    )  # fmt: skip
    played = play(given, cycles=80, every=10 * MINUTE)
    turns = [s.workload for s in played.steps if s.action == "evict"]
    assert len(turns) >= 4
    assert all(one != other for one, other in itertools.pairwise(turns))
    for key in set(turns):
        times = sorted(e.at for e in played.after.evictions if e.workload == key)
        assert all(later - earlier >= 30 * MINUTE for earlier, later in itertools.pairwise(times))


def test_with_any_equals_take_turns_in_a_circle():
    """Three equal workloads, room for one: each gets its turn, nobody is starved by an older one."""
    names = ("x", "y", "z")
    first = overdue("x", ran=7200, requeue_delay=0, age=9000)
    others = [
        replace(waiting(n, priority=0, age=8000 - i), expected_runtime=HOUR, requeue_delay=0)
        for i, n in enumerate(names[1:])
    ]
    given = one_node(first, *others, requeue=RequeueSettings(contenders="any"))
    played = play(given, cycles=40, every=30 * MINUTE)
    turns = [s.workload.removeprefix("default/") for s in played.steps if s.action == "evict"]
    assert turns[:6] == ["x", "y", "z", "x", "y", "z"]


# -- sets -------------------------------------------------------------------------------------------------------------


def four(*, gpus=1, **fields):
    return [overdue(f"o{i}", gpu=gpus, **fields) for i in range(4)]


def test_growing_sets_when_one_is_not_enough_and_none_in_vain():
    """A gang of 3 GPUs on one node takes three of four."""
    played = play(one_node(*four(), waiting(gpu=3)))
    assert requeued(played) == {"o0": "new", "o1": "new", "o2": "new"}
    assert counted(played) == (3, 1)


@pytest.mark.parametrize(("most", "goes"), [(2, 0), (3, 3)])
def test_no_more_than_max_candidates_together(most, goes):
    played = play(one_node(*four(), waiting(gpu=3), requeue=RequeueSettings(max_candidates=most)))
    assert len(requeued(played)) == goes


def test_those_not_needed_are_reprieved():
    """The first candidates stand on another node, where they are of no use to a contender that wants a whole one."""
    nodes = [node("n", cpu=64, gpu=4), node("m", cpu=64, gpu=4)]
    early = [overdue(f"a{i}", gpu=1, on="m", ran=9000) for i in range(2)]
    fixed = overdue("fixed", gpu=2, on="m", preemptible=False, expected=None)
    late = [overdue(f"b{i}", gpu=2) for i in range(2)]
    played = play(cluster(nodes, [*early, fixed, *late, waiting(gpu=4)], actions=("allocate", "requeue")))
    assert requeued(played) == {"b0": "new", "b1": "new"}


def test_several_contenders_are_each_served_by_a_candidate_of_their_own():
    played = play(one_node(overdue("a", gpu=2), overdue("b", gpu=2), waiting("c", gpu=2), waiting("d", gpu=2, age=50)))
    assert requeued(played) == {"a": "c", "b": "d"}


def test_nobody_else_is_evicted_for_whom_room_is_left_over():
    """One candidate frees room for two contenders: the second takes what is left, and the other candidate runs on."""
    nodes = [node("n", cpu=64, gpu=4), node("m", cpu=64, gpu=2)]
    workloads = [
        overdue("big", gpu=4, ran=9000),
        overdue("small", gpu=2, on="m"),
        waiting("c", gpu=2),
        waiting("d", gpu=2, age=50),
    ]
    played = play(cluster(nodes, workloads, actions=("allocate", "requeue")))
    assert set(requeued(played)) == {"big"}
    assert {s.task for s in played.steps if s.action == "nominate"} >= {"c-0"}
    later = play(replace(played.after, now=NOW + SECOND))
    assert not requeued(later)


def test_candidate_order_lower_priority_then_longest_past_then_name():
    def chosen(*candidates):
        return set(requeued(play(one_node(*candidates, waiting(gpu=2)))))

    assert chosen(overdue("a", gpu=2, priority=20), overdue("b", gpu=2, priority=10)) == {"b"}
    assert chosen(overdue("a", gpu=2), overdue("b", gpu=2, ran=7300)) == {"b"}
    assert chosen(overdue("b", gpu=2), overdue("a", gpu=2)) == {"a"}


def test_candidates_of_the_queue_furthest_over_its_fair_share_come_first():
    tree = [queue("a"), queue("b"), queue("c")]
    mine = [replace(overdue(f"a{i}", gpu=1, priority=50), queue="a") for i in range(5)]
    theirs = [replace(overdue(f"b{i}", gpu=1), queue="b") for i in range(3)]
    played = play(one_node(*mine, *theirs, replace(waiting(gpu=1), queue="c"), queues=tree, gpus=8))
    assert requeued(played) == {"a0": "new"}


def test_an_elastic_candidate_gives_surplus_first_then_its_core():
    tasks = [task(f"e-{i}", spec(gpu=1), on="n") for i in range(4)]
    elastic = workload("e", tasks=tasks, min_member=2, running=7200, expected_runtime=3600, age=7300)

    def gone(gpus):
        return [s.task for s in play(one_node(elastic, waiting(gpu=gpus))).steps if s.action == "evict"]

    assert gone(1) == ["e-3"] or len(gone(1)) == 1
    assert sorted(gone(2)) == ["e-2", "e-3"]
    assert sorted(gone(3)) == ["e-0", "e-1", "e-2", "e-3"]


# -- shields ----------------------------------------------------------------------------------------------------------


def test_all_shields_hold():
    """Policies of queues, minimum runtime against this contender, preemption delay, opt-out by mode."""
    tree = [queue("a"), queue("b")]
    old, new = replace(overdue(), queue="a"), replace(waiting(gpu=2), queue="b")
    assert requeued(play(one_node(old, new, queues=tree))) == {"old": "new"}
    for changed in (
        [replace(tree[0], preemption_policy="disabled"), tree[1]],
        [tree[0], replace(tree[1], preemption_policy="fence")],
        [replace(tree[0], reclaim_min_runtime=3 * HOUR), tree[1]],
        [replace(tree[0], guaranteed={"nvidia.com/gpu": 4000}), tree[1]],
    ):
        assert not requeued(play(one_node(old, new, queues=changed))), changed
    late = replace(new, preemption_delay=2 * MINUTE)
    assert not requeued(play(one_node(old, late, queues=tree)))
    assert requeued(play(replace(one_node(old, late, queues=tree), now=NOW + MINUTE))) == {"old": "new"}
    assert not requeued(play(one_node(old, new, queues=tree, modes={"requeue": "off"})))
    shadow = play(one_node(old, new, queues=tree, modes={"requeue": "shadow"}))
    assert (shadow.steps, counted(shadow)) == ([], (0, 1))


def test_minimum_runtime_against_one_contender_leaves_the_other():
    """In the same leaf it is held, for another queue it is not."""
    tree = [queue("a", preempt_min_runtime=3 * HOUR), queue("b")]
    old = replace(overdue(), queue="a")
    same, other = replace(waiting("same", gpu=2), queue="a"), replace(waiting("other", gpu=2), queue="b")
    assert requeued(play(one_node(old, same, other, queues=tree))) == {"old": "other"}


def test_room_that_a_maximum_holds_back_is_made_by_candidates_below_that_queue():
    """There is room on the nodes, but none in the queue."""
    tree = [queue("a", max={"gpu": 4}), queue("b")]
    old, new = replace(overdue(), queue="a"), replace(waiting(), queue="a")
    elsewhere = replace(overdue("elsewhere", gpu=2), queue="b")
    played = play(one_node(old, elsewhere, new, queues=tree, gpus=16))
    assert requeued(played) == {"old": "new"}
    assert [s.action for s in played.steps] == ["evict", "nominate"]


# -- rest -------------------------------------------------------------------------------------------------------------


def test_two_queues_that_could_requeue_and_reclaim_from_each_other_come_to_rest():
    """8 GPUs, equal guarantees: no eviction after the first few cycles, in a hundred."""
    tree = [queue("a", guaranteed={"gpu": 4}), queue("b", guaranteed={"gpu": 4})]

    def of(name, gpu, where, **fields):
        return replace(overdue(name, gpu=gpu, **fields), queue=where)

    workloads = [
        of("a-late", 1, "a"), of("a3", 3, "a", expected=None), replace(waiting("a6", gpu=6, priority=0), queue="a"),
        of("b4", 4, "b", expected=None), replace(waiting("b1", gpu=1, priority=0), queue="b"),
    ]  # fmt: skip
    for every in (SECOND, 5 * MINUTE, HOUR):
        for guaranteed in (tree, [queue("a"), queue("b")]):
            played = play(one_node(*workloads, queues=guaranteed, gpus=8, actions=ACTIONS), cycles=100, every=every)
            late = [s for s in played.steps if s.action == "evict" and s.cycle >= 10]
            assert late == [], (every, guaranteed)
