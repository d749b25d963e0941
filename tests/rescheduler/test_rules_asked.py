"""Whom the rescheduler asks before anything moves: plugins of the plan as a whole, budgets of what is drained."""

from dataclasses import replace

import pytest
from tests.actions.test_reschedule import pieces
from tests.builders import NOW, SECOND, cluster, node, queue, spec, workload

from tenure.cycle import Scheduler
from tenure.engine.snapshot import session_of
from tenure.model.cluster import DisruptionBudget
from tenure.model.selectors import LabelSelector
from tenure.model.settings import BackgroundSettings, BudgetRule, DisruptionSettings, ReschedulerSettings
from tenure.playthrough import play
from tenure.shields.plugins import EvictionPlugins

HOUR = 3600 * SECOND


class Asked:
    """A plugin that notes the plans it is asked about, and answers all of them alike."""

    name = "asked"

    def __init__(self, answer):
        self.answer, self.plans = answer, []

    def allow_plan(self, contender, victims, tasks, cause, now):
        self.plans.append((contender and contender.name, [v.name for v in victims], tasks, cause, now))
        return self.answer


def cycle(made, plugin):
    scheduler = Scheduler(session_of(made))
    scheduler.context.plugins = EvictionPlugins([plugin])
    return scheduler.cycle(NOW)


def evicted(plan):
    return sorted((s.task, s.node, s.to) for s in plan.steps if s.action == "evict")


def test_a_plugin_is_asked_about_the_whole_plan_and_its_no_stands():
    """Nothing moves, the plan is no plan, and the contender hears from whom the no came."""
    plugin = Asked(answer=False)
    plan = cycle(pieces(), plugin)
    assert plugin.plans == [("big", ["young"], (("default/young", "young-0"),), "reschedule", NOW)]
    assert not plan.steps
    assert [(m.feasible, m.method) for m in plan.moves] == [(False, "unknown")]
    assert "plugin asked says no" in plan.obstacles["default/big"][0].message
    assert [(r.workload, r.cause, r.beneficiary, r.shield) for r in plan.refused] == [
        ("default/young", "reschedule", "default/big", "asked")
    ]
    assert evicted(cycle(pieces(), Asked(answer=True))) == [("young-0", "b", "a")]


def test_a_plugin_is_asked_about_moves_for_the_layout_too():
    """There nobody benefits: the contender is none."""
    pods = [workload(n, of=spec(cpu=2), on=[n], running=100, age=200) for n in "ab"]
    rescheduler = ReschedulerSettings(background=BackgroundSettings(interval=HOUR, objective="pack", min_gain=1e-5))
    made = cluster([node("a"), node("b")], pods, [queue("default")], actions=("reschedule",), rescheduler=rescheduler)
    plugin = Asked(answer=False)
    assert not cycle(made, plugin).steps
    ((contender, _, tasks, *_),) = plugin.plans
    assert (contender, len(tasks)) == (None, 1)
    assert evicted(cycle(made, Asked(answer=True)))


def test_a_plugin_that_answers_nonsense_is_named():
    """It counts as no, and the plan warns of it."""
    plan = cycle(pieces(), Asked(answer="perhaps"))
    assert not plan.steps
    assert any("plugin asked" in w and "'perhaps'" in w for w in plan.warnings)


# -- drains --------------------------------------------------------------------------------------------------------


def drained(*rules, budgets=(), **fields):
    """Node a is to be emptied of one pod; the other one, elsewhere, is nobody's concern."""
    pods = [workload("x", of=spec(cpu=3, labels=(("app", "x"),)), on=["a"], running=100, age=200, **fields),
            workload("y", of=spec(cpu=3), on=["b"], running=100, age=200)]  # fmt: skip
    made = cluster([node("a", drain=True), node("b")], pods, [queue("default")], actions=("reschedule",),
                   disruption=DisruptionSettings(budgets=rules))  # fmt: skip
    return replace(made, disruption_budgets=budgets)


@pytest.mark.parametrize(
    "rule",
    [
        BudgetRule(name="r", max_evictions=0, per=HOUR),
        BudgetRule(name="r", max_unavailable=0, selector=LabelSelector()),
        BudgetRule(name="r", max_lost={"cpu": 0}, per=HOUR),
        BudgetRule(name="r", max_evictions=0, schedule="* * * * *", duration=HOUR),
    ],
)
def test_a_budget_does_not_keep_back_what_is_drained_unless_it_names_the_cause(rule):
    """It goes, and is charged; a rule that lists `reschedule` holds it, and the plan says which one it was."""
    played = play(drained(rule))
    assert [s.task for s in played.steps if s.action == "evict"] == ["x-0"]
    assert len(played.after.evictions) == 1, "so that it counts for everything else"
    held = play(drained(replace(rule, causes=("reschedule",))))
    assert not held.steps
    (warning,) = held.warnings
    assert warning.startswith("drain of a leaves default/x x-0 there: budget r does not allow it")


def test_a_pod_disruption_budget_keeps_back_what_is_drained():
    """The Eviction API would refuse it too."""
    budget = DisruptionBudget(name="x", max_unavailable=0, selector=LabelSelector(match_labels=(("app", "x"),)))
    played = play(drained(budgets=(budget,)))
    assert not played.steps
    assert "PodDisruptionBudget default/x" in played.warnings[0]


def test_what_makes_way_for_what_is_drained_is_not_drained_itself():
    """Room for x is on b once y has left it for c; a budget that is used up lets x go, but not y."""
    nodes = [node("a", drain=True), node("b", cpu=4), node("c", cpu=2)]
    pods = [workload("x", of=spec(cpu=4), on=["a"], running=100, age=200),
            workload("y", of=spec(cpu=2), on=["b"], running=100, age=200)]  # fmt: skip

    def moved(most):
        rule = BudgetRule(name="r", max_evictions=most, per=HOUR)
        made = cluster(nodes, pods, [queue("default")], actions=("reschedule",),
                       disruption=DisruptionSettings(budgets=(rule,)))  # fmt: skip
        return sorted(s.task for s in play(made).steps if s.action == "evict")

    assert moved(1) == ["x-0", "y-0"]
    assert moved(0) == []


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"preemptible": False}, "default/x is not preemptible: it says so"),
        ({"owner_kind": "Pod"}, "no controller would recreate the pods of default/x"),
        ({"owner_kind": "DaemonSet"}, "the pods of default/x belong to their nodes, by a DaemonSet"),
        ({"scheduler_name": "other"}, "another scheduler has bound it"),
    ],
)
def test_what_stays_on_a_node_that_is_to_be_emptied_is_named_with_the_reason(fields, says):
    """One warning, with the pod and why."""
    played = play(drained(**fields))
    assert not played.steps
    assert played.warnings == [f"drain of a leaves default/x x-0 there: {says}"]


def leaving(most=None, **fits):
    """Node a, with four pods of a core each, is to be emptied onto what is given; a budget for moves; warnings."""
    pods = [workload(name, of=spec(cpu=1), on=["a"], running=100, age=200) for name in "wxyz"]
    rules = [BudgetRule(name="r", max_evictions=most, per=HOUR, causes=("reschedule",))] if most is not None else []
    nodes = [node("a", cpu=4, drain=True), *(node(name, cpu=cores) for name, cores in fits.items())]
    made = cluster(nodes, pods, [queue("default")], actions=("reschedule",),
                   disruption=DisruptionSettings(budgets=tuple(rules)))  # fmt: skip
    played = play(made)
    return sum(s.action == "evict" for s in played.steps), [
        w.removeprefix("drain of a leaves ") for w in played.warnings
    ]


def test_what_finds_no_place_or_is_one_too_many_for_a_budget_is_named_as_well():
    """Of four pods two go; a drain that only says what it moves leaves a node that never gets empty, without a word."""
    none = "no other node takes it as things stand"
    assert leaving(b=2) == (2, [f"default/y y-0, default/z z-0 there: {none}"])
    assert leaving(b=1) == (1, [f"default/x x-0, default/y y-0, default/z z-0 there: {none}"])
    assert leaving() == (0, [f"default/w w-0, default/x x-0, default/y y-0 and 1 more there: {none}"])
    text = "budget r does not allow it: 2 evictions in 1h, of which 2 were used"
    assert leaving(most=2, b=4) == (2, [f"default/y y-0, default/z z-0 there: {text}"])
    assert leaving(b=4) == (4, [])


def test_what_asked_to_be_spared_moves_off_a_node_that_is_to_be_emptied_and_no_other_task_of_it():
    assert [s.task for s in play(drained(allow_preemption=False)).steps if s.action == "evict"] == ["x-0"]
    nodes = [node("a", cpu=1, drain=True), node("b", cpu=1), node("c", cpu=2)]
    gang = workload("g", tasks=2, of=spec(cpu=1), on=["a", "b"], running=100, age=200, allow_preemption=False)
    played = play(cluster(nodes, [gang], [queue("default")], actions=("reschedule",)))
    assert [s.task for s in played.steps if s.action == "evict"] == ["g-0"]


SPARED = {"allow_preemption": False}


def moved_for(waiting, nodes, *pods):
    """Say what moves so that something fits, and how that was proven."""
    made = cluster(nodes, [*pods, waiting], [queue("default")], actions=("reschedule",))
    plan = Scheduler(session_of(made)).cycle(NOW)
    return sorted(s.task for s in plan.steps if s.action == "evict"), [m.reason for m in plan.moves if m.feasible]


def runs(name, on, cpu, **fields):
    return workload(name, of=spec(cpu=cpu), on=[on], running=100, age=200, **fields)


def test_what_asked_to_be_spared_is_moved_for_what_waits_only_where_nothing_else_makes_room():
    waiting, nodes = workload("y", of=spec(cpu=2), age=900), [node("a", cpu=2), node("b", cpu=1)]
    assert moved_for(waiting, nodes, runs("x", "a", 1))[0] == ["x-0"]
    moved, (why,) = moved_for(waiting, nodes, runs("x", "a", 1, **SPARED))
    assert moved == ["x-0"]
    assert "1 task that asked to be spared: nothing makes room with fewer" in why
    other = [*nodes, node("c", cpu=2)]
    dearer = replace(runs("z", "c", 1), started_at=0)
    assert moved_for(waiting, other, runs("x", "a", 1, **SPARED), dearer)[0] == ["z-0"]


def test_of_what_asked_to_be_spared_as_few_as_will_do_move_whatever_they_cost():
    """On a two cheap ones would have to go, on b one that has run for long."""
    waiting = workload("y", of=spec(cpu=4), age=900)
    nodes = [node("a", cpu=4), node("b", cpu=4), node("c", cpu=3)]
    pods = [
        runs("p", "a", 1, **SPARED),
        runs("q", "a", 1, **SPARED),
        replace(runs("r", "b", 3, **SPARED), started_at=NOW - 6 * 24 * HOUR),
    ]
    moved, (why,) = moved_for(waiting, nodes, *pods)
    assert moved == ["r-0"]
    assert "nothing makes room with fewer" in why
    assert moved_for(waiting, nodes, *[replace(p, allow_preemption=True) for p in pods])[0] == ["p-0", "q-0"]


def test_nothing_that_asked_to_be_spared_is_moved_for_a_surplus_task():
    nodes = [node("a", cpu=2), node("b", cpu=1), node("c", cpu=2)]
    grows = workload("y", tasks=2, min_member=1, of=spec(cpu=2), on=["c"], running=100, age=900)
    assert moved_for(grows, nodes, runs("x", "a", 1))[0] == ["x-0"]
    assert moved_for(grows, nodes, runs("x", "a", 1, **SPARED))[0] == []


def test_what_asked_to_be_spared_elsewhere_makes_way_for_what_is_drained_where_nothing_else_does():
    nodes = [node("a", drain=True), node("b", cpu=4), node("c", cpu=2), node("d", cpu=4)]

    def moved(*others):
        pods = [runs("x", "a", 4), *others]
        made = cluster(nodes, pods, [queue("default")], actions=("reschedule",))
        return sorted(s.task for s in play(made).steps if s.action == "evict")

    full = runs("f", "d", 4, preemptible=False)
    assert moved(runs("y", "b", 2, **SPARED), full) == ["x-0", "y-0"]
    assert moved(runs("y", "b", 2, **SPARED), runs("z", "d", 2)) == ["x-0", "z-0"]


# -- stale gangs ---------------------------------------------------------------------------------------------------


def stale(*rules, budgets=()):
    """A gang that runs one of its two tasks, for longer than its grace."""
    gang = workload("g", tasks=2, of=spec(cpu=1), on=["a"], running=900, age=1000, min_member=2,
                    stale_since=NOW - HOUR)  # fmt: skip
    made = cluster([node("a", cpu=1)], [gang], [queue("default")], actions=("stale-gang",),
                   disruption=DisruptionSettings(budgets=rules))  # fmt: skip
    return replace(made, disruption_budgets=budgets)


def test_a_stale_gang_is_held_only_by_a_rule_that_names_the_cause_or_by_a_pod_disruption_budget():
    """Who holds it, and until when, is told."""
    rule = BudgetRule(name="r", max_evictions=0, schedule="* * * * 1-5", duration=HOUR)
    assert [s.task for s in play(stale(rule)).steps] == ["g-0"]
    held = play(stale(replace(rule, causes=("stale-gang",))))
    assert not held.steps
    (refused,) = held.refused
    assert (refused.workload, refused.cause, refused.shield) == ("default/g", "stale-gang", "budget")
    assert refused.until is not None
    assert not play(stale(budgets=(DisruptionBudget(name="g", min_available=1),))).steps


# -- gangs below their core ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("action", ["consolidate", "reschedule"])
def test_a_gang_below_its_core_is_not_moved(action):
    """What it lacks has no place: moved as a whole, it would not start again. Whole, the same gang is moved."""

    def moved(lost):
        nodes = ["a", "b"] if lost else ["a", "b", "b"]
        gang = workload("g", tasks=3, of=spec(cpu=2), on=nodes, running=100, age=200)
        stays = workload("f", of=spec(cpu=2), on=["b"], running=100, age=200, preemptible=False)
        big = workload("big", of=spec(cpu=8), age=600, priority=1)
        made = cluster([node("a"), node("b")], [gang, stays, big], [queue("default")], actions=(action,))
        return [s.task for s in play(made).steps if s.action == "evict"]

    assert moved(lost=False)
    assert not moved(lost=True)


def test_a_drain_says_of_a_gang_below_its_core_that_it_waits():
    """Its pod stays until the replacement of the other one has landed."""
    made = drained()
    short = workload("x", tasks=2, of=spec(cpu=3), on=["a"], running=100, age=200)
    played = play(replace(made, workloads=(short, made.workloads[1])))
    assert not played.steps
    (warning,) = played.warnings
    assert warning.endswith("default/x runs below its core, and would not start again until that is whole")
