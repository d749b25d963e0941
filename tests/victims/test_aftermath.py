"""Causes add up: what would follow from a set is counted, refused or said before anything is evicted."""

from __future__ import annotations

from dataclasses import replace
from operator import itemgetter

import pytest
from tests.actions.helpers import GPU, MINUTE, cluster, play, queue, runs, steps, waits
from tests.properties.contention import contended
from tests.victims.test_bounds import contenders

from tenure import playthrough
from tenure.cycle import Scheduler
from tenure.engine.snapshot import session_of
from tenure.explanation.explain import explain_workload
from tenure.model.cluster import DisruptionBudget
from tenure.model.node import Node
from tenure.model.selectors import LabelSelector
from tenure.model.settings import RequeueSettings
from tenure.report.plans.plan_json import plan_json
from tenure.victims.aftermath.aftermath import Aftermath
from tenure.victims.aftermath.follow_ups import alike
from tenure.victims.dry_run.outcome import AcceptedSet, to_the_end


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


def test_a_set_with_follow_ups_is_refused_by_one_of_lower_priorities_that_has_some_too():
    """``gang`` alone would cost less with all that follows; of priority 50 it holds twice as much as ``x``."""
    running = [
        runs("gang", "a", ["n0", "n0"], core=2, minutes=1, priority=50), runs("x", "a", ["n0"], priority=50),
        runs("y", "a", ["n0"]), runs("u", "a", ["n1"], minutes=10, allow_preemption=False),
        runs("other", "a", ["n1"], gpus=3, priority=150),
    ]  # fmt: skip
    found = play(cluster([queue("a")], [*running, waits("j", "a", gpus=2, priority=90)], nodes=2))
    assert steps(found) == [("x", "x-0"), ("y", "y-0")]
    assert [(f.of, f.cause) for _, f in found.follow_ups] == [("default/x", "preempt")]


def test_a_finished_plan_says_what_would_follow():
    found = play(a_victim_that_would_preempt())
    assert steps(found) == [("v", "v-0")]
    (said,) = plan_json(found)["followUps"]
    assert said == {
        "cycle": 0, "of": "default/v", "cause": "preempt", "for": "default/v",
        "evict": [{"workload": "default/u", "task": "u-0"}], "cost": 600.0,
    }  # fmt: skip


def test_a_victim_is_said_to_take_nothing_where_another_leaves_it_room():
    """The first of the three takes ``big``, whose other GPU is the second's, and the third takes ``small``."""
    queues = [queue("a", guaranteed=0, reclaim_min_runtime=30 * MINUTE), queue("c", guaranteed=3)]
    running = [runs(name, "a", ["n0"], priority=50, created_at=number) for number, name in enumerate(("v", "w", "x"))]
    running += [runs("small", "a", ["n0"], minutes=20), runs("big", "a", ["n0"], gpus=2, minutes=5)]
    found = play(cluster(queues, [*running, waits("j", "c", gpus=3)], gpus=6), cycles=3)
    later = [(s.beneficiary, s.task) for s in found.steps if s.action == "evict" and s.cycle]
    assert later == [("default/v", "big-0"), ("default/x", "small-0")]
    assert [(f.of, f.evict[0][1]) for cycle, f in found.follow_ups if not cycle] == later


def test_what_a_victim_leaves_over_before_it_grows_is_said_to_be_taken_from_who_got_it():
    """``p`` gets the other GPU of ``big`` in the cycle in which the core of ``v`` waits for the first."""
    queues = [queue("a", guaranteed=0, reclaim_min_runtime=30 * MINUTE), queue("c", guaranteed=2)]
    running = [runs("v", "a", ["n0", "n0"], core=1, priority=50), runs("big", "a", ["n0"], gpus=2, minutes=5)]
    found = play(cluster(queues, [*running, waits("p", "a"), waits("j", "c", gpus=2)]), cycles=6)
    later = [(s.beneficiary, s.task) for s in found.steps if s.action == "evict" and s.cycle]
    assert later == [("default/v", "big-0"), ("default/v", "p-0")]
    assert [(f.of, f.evict[0][1]) for cycle, f in found.follow_ups if not cycle] == later


def test_the_core_of_one_for_whom_something_goes_is_not_looked_for_in_the_same_cycle():
    """For ``grows`` goes ``low``; in that cycle ``high`` cannot have its core, which costs less than ``old``."""
    grows = runs("grows", "q", ["n1"], minutes=1, core=1, priority=50)
    grows = replace(grows, tasks=(*grows.tasks, replace(waits("grows", "q").tasks[0], name="grows-1")))
    running = [runs("low", "q", ["n0"], minutes=2), runs("old", "q", ["n1"], priority=50)]
    high = with_specs(waits("high", "q", priority=100), node_selector=(("zone", "here"),))
    nodes = tuple(Node(name=f"n{i}", allocatable={GPU: i + 1}, labels={"zone": "here"} if i else {}) for i in range(2))
    session = session_of(replace(cluster([queue("q")], [grows, *running, high]), nodes=nodes))
    context = Scheduler(session).context
    context.evicting()
    aftermath, shares = context.aftermath, context.fairness.now()

    def found_for(name):
        workload = session.workloads[f"default/{name}"]
        preempt = {"preempt": aftermath.asked.causes["preempt"]}
        (asked,) = aftermath.asked.may_be_helped([workload], preempt, shares)
        found = aftermath.searches.best_set(asked)
        assert aftermath.ahead.decide(found, workload)
        return [piece.workload.key for piece in found.pieces]

    with aftermath.ahead.look():
        assert found_for("grows") == ["default/low"]
        assert found_for("high") == ["default/old"]


@pytest.mark.parametrize(("backfill", "same"), [("none", True), ("easy", False)])
def test_beside_a_reservation_victims_are_not_alike_that_end_at_different_times(backfill, same):
    """The one that ends sooner may start beside it where the other would put it off."""
    late, soon = waits("late", "q"), waits("soon", "q", expected_runtime=MINUTE)
    session = session_of(cluster([queue("q")], [late, soon], backfill=backfill))
    assert (
        alike(session, session.workloads["default/late"]) == alike(session, session.workloads["default/soon"])
    ) is same


def test_nothing_follows_for_a_cause_that_is_not_enabled():
    assert play(a_victim_that_would_preempt(modes={"preempt": "shadow"})).follow_ups == []


def test_who_asks_about_one_workload_hears_the_same_though_nothing_is_said_of_what_follows():
    state = a_victim_that_would_preempt()
    whole = playthrough.play(state)
    assert whole.follow_ups
    for workload in state.workloads:
        asked = playthrough.play(state, about=workload.key)
        assert asked.follow_ups == []
        assert asked.steps == whole.steps
        assert explain_workload(asked, workload) == explain_workload(whole, workload)


def test_who_asks_about_one_workload_is_not_told_why_others_have_no_room():
    state = cluster([queue("q")], [runs("r", "q", ["n0"], gpus=4), waits("x", "q"), waits("y", "q")])
    whole = playthrough.play(state)
    for name in "xy":
        asked = playthrough.play(state, about=f"default/{name}")
        told, others = ([p for p in asked.pending if (p.workload == f"default/{name}") is own] for own in (True, False))
        assert told == [p for p in whole.pending if p.workload == f"default/{name}"]
        assert "NoNodeFits" in {r.code for p in told for r in p.reasons}
        assert len(others) == 1
        assert "NoNodeFits" not in {r.code for p in others for r in p.reasons}


def test_what_follows_from_several_sets_is_looked_at_for_whom_they_concern_alone(monkeypatch):
    asked, plain = [], Aftermath.of_plan
    monkeypatch.setattr(Aftermath, "of_plan", lambda *given: asked.append(given) or plain(*given))
    running = [runs(name, "b", ["n0"], minutes=10) for name in ("v", "w", "stays")]
    waiting = [waits("i", "a", priority=2), waits("j", "a", priority=1), waits("k", "b", gpus=4)]
    fixed = runs("fixed", "a", ["n0"], priority=150)
    state = cluster([queue("a", guaranteed=3), queue("b", guaranteed=1)], [*running, fixed, *waiting])
    whole = playthrough.play(state)
    assert {s.beneficiary for s in whole.steps if s.action == "evict"} == {"default/i", "default/j"}
    looked = {}
    for workload in state.workloads:
        asked.clear()
        told = explain_workload(playthrough.play(state, about=workload.key), workload)
        looked[workload.name] = bool(asked)
        assert told == explain_workload(whole, workload)
    assert sum(looked.values()) == 4  # two that get room, and the two that make it
    assert (looked["i"], looked["j"], looked["k"], looked["fixed"]) == (True, True, False, False)


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


def judged(seeds):
    """Sets of one piece that pay, played twice: asked what follows, and not asked."""
    for seed in seeds:
        state = contended(seed)
        session = session_of(state)
        aftermath = Scheduler(session).context.evicting().aftermath
        for cause in ("reclaim", "preempt"):
            for dry_runs, _, rules, pieces, _ in contenders(state, cause, session):
                dry_runs.consequences = aftermath
                for piece in pieces:
                    found = [dry_runs.play(rules, [piece], enough=enough) for enough in (to_the_end, None)]
                    assert len({isinstance(f, AcceptedSet) for f in found}) == 1
                    if isinstance(found[0], AcceptedSet):
                        yield dry_runs, rules, found


def test_what_follows_is_the_same_whenever_it_is_asked():
    """A set that is judged, and asked about only later, has the follow-ups that it has when it is asked at once."""
    followed = 0
    for dry_runs, rules, (whole, later) in judged(range(150)):
        assert whole.follow_ups is not None
        assert later.follow_ups in (None, ())
        assert dry_runs.follow_ups(rules, later) == whole.follow_ups
        followed += bool(whole.follow_ups)
    assert followed > 5


def an_elastic_victim(core):
    """For ``p`` either all of ``x`` goes, for which ``y`` would go next, or ``z``, for which nothing would."""
    here = {"node_selector": (("zone", "here"),)}
    nodes = tuple(Node(name=f"n{i}", allocatable={GPU: 3}, labels={"zone": "here"} if i < 2 else {}) for i in range(3))
    x = runs("x", "a", ["n0"] * 3, priority=10, core=core)
    y = runs("y", "b", ["n2"] * 3, minutes=15, priority=10, core=1)
    z = with_specs(runs("z", "a", ["n1"], gpus=3, minutes=70, priority=10), **here)
    p = with_specs(waits("p", "a", gpus=3, priority=20), **here)
    return replace(cluster([queue("a", guaranteed=9), queue("b", guaranteed=0)], [x, y, z, p]), nodes=nodes)


def with_specs(workload, **fields):
    tasks = tuple(replace(task, spec=replace(task.spec, **fields)) for task in workload.tasks)
    return replace(workload, tasks=tasks)


@pytest.mark.parametrize("core", [1, 3])
def test_what_a_victim_takes_as_it_grows_again_is_counted_as_well(core):
    assert steps(play(an_elastic_victim(core))) == [("z", "z-0")]


def test_what_a_victim_takes_as_it_grows_again_is_said_before():
    state = an_elastic_victim(1)
    state = replace(state, workloads=tuple(w for w in state.workloads if w.name != "z"), nodes=state.nodes[::2])
    first = play(state)
    assert steps(first) == [("x", "x-0"), ("x", "x-1"), ("x", "x-2")]
    said = {task for follow_up in plan_json(first)["followUps"] for task in map(itemgetter("task"), follow_up["evict"])}
    whole = play(state, cycles=6)
    assert said == {s.task for s in whole.steps if s.action == "evict" and s.cycle} == {"y-0", "y-1", "y-2"}


def test_where_equals_take_turns_it_is_said_that_a_victim_takes_the_turn_of_another():
    """Who gives way then stands behind those that wait, in what is thought of the next cycle as well."""
    running = [
        runs(name, "q", ["n0"], minutes=age, expected_runtime=5 * MINUTE) for name, age in (("v", 10), ("r", 60))
    ]
    state = cluster(
        [queue("q")], [*running, waits("high", "q", priority=50)], gpus=2, requeue=RequeueSettings(contenders="any")
    )
    found = play(state, cycles=2)
    assert [(s.cycle, s.task, s.cause, s.beneficiary) for s in found.steps if s.action == "evict"] == [
        (0, "v-0", "preempt", "default/high"), (1, "r-0", "requeue", "default/v"),
    ]  # fmt: skip
    assert [(cycle, f.of, f.cause, f.evict) for cycle, f in found.follow_ups] == [
        (0, "default/v", "requeue", (("default/r", "r-0"),))
    ]


@pytest.mark.parametrize(("gpus", "order", "gone"), [(1, "overdue", "a"), (1, "cost", "c"), (2, "overdue", "ab")])
def test_requeue_is_said_to_take_what_comes_first_in_its_order(gpus, order, gone):
    """``a`` has overstayed the longest, and ``c`` costs the least; for two GPUs the beginning of the order goes."""
    ages = {"v": 10, "c": 40, "b": 50, "a": 60}
    running = [runs(name, "q", ["n0"], gpus=gpus if name == "v" else 1, minutes=age, expected_runtime=5 * MINUTE)
               for name, age in ages.items()]  # fmt: skip
    waiting, turns = waits("high", "q", gpus=gpus, priority=50), RequeueSettings(contenders="any", order=order)
    found = play(cluster([queue("q")], [*running, waiting], gpus=gpus + 3, requeue=turns), cycles=2)
    tasks = [(name, f"{name}-0") for name in gone]
    assert [(s.cycle, s.task) for s in found.steps if s.action == "evict"] == [(0, "v-0"), *((1, t) for _, t in tasks)]
    said = [f.evict for cycle, f in found.follow_ups if cycle == 0]
    assert said == [tuple((f"default/{name}", task) for name, task in tasks)]


def test_what_requeue_would_take_next_is_said_where_no_other_cause_is_enabled():
    """Without ``late`` its queue is within its guaranteed, and ahead of that of ``gang``, which is late too."""
    queues = [queue("a", guaranteed=1), queue("b", guaranteed=3, priority=50)]
    running = [runs("late", "a", ["n1"], gpus=2, expected_runtime=5 * MINUTE),
               runs("gang", "b", ["n0", "n0"], expected_runtime=5 * MINUTE)]  # fmt: skip
    waiting = [waits("first", "b", minutes=40), waits("second", "b")]
    found = play(cluster(queues, [*running, *waiting], nodes=2, gpus=2, actions=("allocate", "requeue")))
    assert steps(found) == [("late", "late-0")]
    assert [(f.of, f.cause, f.evict) for _, f in found.follow_ups] == [
        ("default/late", "requeue", (("default/gang", "gang-0"), ("default/gang", "gang-1")))
    ]


def test_what_a_budget_allows_once_what_is_bound_is_up_is_said_before():
    """``new`` is bound in the cycle in which ``v`` goes; from the next one on ``old`` may be down beside it."""
    budget = DisruptionBudget(name="x", selector=LabelSelector(match_labels=(("app", "x"),)), max_unavailable=1)
    queues = [queue("a"), queue("b", guaranteed=1), queue("c", guaranteed=1, priority=200)]
    kept = [_of_x(runs("old", "a", ["n0"])), _of_x(waits("new", "c", preemptible=False))]
    state = cluster(queues, [*kept, runs("v", "a", ["n0"], priority=10), waits("j", "b")], gpus=3)
    found = play(replace(state, disruption_budgets=(budget,)), cycles=2)
    assert [(s.cycle, s.task) for s in found.steps if s.action == "evict"] == [(0, "v-0"), (1, "old-0")]
    assert [(cycle, f.of, f.evict) for cycle, f in found.follow_ups] == [(0, "default/v", (("default/old", "old-0"),))]


def _of_x(made):
    """The same workload, its pods labelled as the budget's."""
    return replace(made, tasks=tuple(replace(t, spec=replace(t.spec, labels=(("app", "x"),))) for t in made.tasks))
