"""Shields hold for quota preemption too: disruption budgets, protected hours, notices, plugins."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.builders import NOW, SECOND, cluster, node, queue, spec, task, workload
from tests.quota.oracle import best, keeps_guarantees, over, value, within_budgets
from tests.quota.strategies import MINUTE, clusters
from tests.quota.test_best_set import fire_at_once, taken_in

from tenure.cycle import Scheduler
from tenure.engine.snapshot import session_of
from tenure.model.cluster import Eviction
from tenure.model.file.override import apply_overrides
from tenure.model.settings import BudgetRule, DisruptionSettings, QuotaPreemptionSettings
from tenure.playthrough import play
from tenure.shields.plugins import EvictionPlugins

ON = QuotaPreemptionSettings(enabled=True)
HOUR = 60 * MINUTE


def crowded(*rules, running=6, actions=("quota", "allocate"), **fields):
    """Six tasks of 2 cores each in a queue that is armed, and may use 4."""
    work = [workload(f"w{i}", of=spec(cpu=2), on=["n"], queue="q", running=600 + i) for i in range(running)]
    tree = [queue("q", max={"cpu": 4}, quota_preemption_delay=MINUTE, **fields)]
    disruption = DisruptionSettings(budgets=tuple(rules))
    return cluster([node("n", cpu=64)], work, tree, quota_preemption=ON, disruption=disruption, actions=actions)


def evictions(played):
    """Count evictions by cycle."""
    found = {}
    for step in played.steps:
        if step.action == "evict":
            found[step.cycle] = found.get(step.cycle, 0) + 1
    return found


rules = st.lists(
    st.builds(
        BudgetRule,
        name=st.sampled_from(("one", "two")),
        queue=st.sampled_from((None, "top", "top.0", "top.1")),
        each=st.sampled_from((None, None, "workload")),
        max_evictions=st.integers(0, 3),
        per=st.just(HOUR),
    ),
    min_size=1,
    max_size=3,
    unique_by=lambda r: (r.name, r.queue),
)


@settings(max_examples=80)
@given(clusters(levels=3, most=5, work=6), rules, st.data())
def test_the_set_is_as_good_as_any_that_the_budgets_allow(made, rules, data):
    """What a budget forbids is no reason to take nothing, nor to take somebody worse than needed."""
    known = {q.name for q in made.queues}
    names = [q.name for q in made.queues if over(made, q.name)]
    assume(names)
    kept = tuple(r for r in rules if r.queue is None or r.queue in known)
    made = replace(made, settings=replace(made.settings, disruption=DisruptionSettings(budgets=kept)))
    name = data.draw(st.sampled_from(names))
    made = fire_at_once(made, name)
    played = play(made)
    taken = taken_in(made, played)
    assert keeps_guarantees(made, taken)
    assert within_budgets(made, taken)
    assert value(made, name, taken) == best(made, name)


def test_a_budget_is_charged_and_the_rest_follows_in_later_rounds():
    """Four have to go, two in any five minutes: two at the deadline, two when the window lets them."""
    rule = BudgetRule(name="gently", max_evictions=2, per=5 * MINUTE)
    played = play(crowded(rule), cycles=12, every=MINUTE)
    assert evictions(played) == {1: 2, 6: 2}
    assert played.quota == []


def test_what_a_budget_forbids_is_told_with_its_end():
    """Two are going; the other two are reported as what cannot be enforced yet, and until when."""
    rule = BudgetRule(name="gently", max_evictions=2, per=5 * MINUTE)
    played = play(crowded(rule), cycles=3, every=MINUTE)
    (report,) = played.quota
    assert report.shortfall == {"cpu": 4000}
    assert {(b.queue, b.reason, b.until) for b in report.blockers} == {("q", "budget", NOW + 6 * MINUTE)}
    assert {(r.shield, r.until) for r in played.refused} == {("budget", NOW + 6 * MINUTE)}
    assert "2 evictions in 5m" in played.refused[0].message


def gangs(*ago, most=3):
    """Three gangs of two that have to go, under a budget of ``most`` in five minutes, some of which were used."""
    work = [workload(f"g{i}", tasks=2, of=spec(cpu=1), on=["n", "n"], queue="q", running=600 + i) for i in range(3)]
    rule = BudgetRule(name="gently", max_evictions=most, per=5 * MINUTE)
    made = cluster(
        [node("n", cpu=64)], work, [queue("q", max={"cpu": 0}, quota_preemption_delay=MINUTE)], quota_preemption=ON,
        disruption=DisruptionSettings(budgets=(rule,)), actions=("quota", "allocate"),
    )  # fmt: skip
    log = tuple(Eviction(at=NOW - a * MINUTE, workload="default/x", task=f"x-{a}", cause="drain") for a in ago)
    armed = play(replace(made, evictions=log)).after
    return replace(armed, now=NOW + MINUTE)


@pytest.mark.parametrize(
    ("ago", "most", "until"),
    [
        ((3, 2, 1), 3, 3),  # one is allowed after 2 minutes, both after 3
        ((3, 2, 1), 2, 4),
        ((), 3, 6),  # one gang goes now, and counts for five minutes
        ((2,), 3, 6),  # what frees one place while the first gang counts is not enough
    ],
)
def test_what_goes_as_a_whole_is_told_when_the_budget_lets_all_of_it_go(ago, most, until):
    """Not any of its tasks alone, and beside what goes now; then it goes, and no sooner."""
    fired = play(gangs(*ago, most=most))
    (report,) = fired.quota
    assert {b.until for b in report.blockers} == {r.until for r in fired.refused} == {NOW + until * MINUTE}
    early, late = (play(replace(fired.after, now=NOW + until * MINUTE - less)) for less in (1, 0))
    assert not evictions(early)
    assert evictions(late) == {0: 2}


def test_another_goes_where_a_budget_spares_the_first_choice():
    """The budget of one workload's queue is used up, so its neighbours go."""
    work = [workload(f"a{i}", of=spec(cpu=2), on=["n"], queue="a", running=60) for i in range(2)]
    work += [workload(f"b{i}", of=spec(cpu=2), on=["n"], queue="b", running=9000, priority=50) for i in range(2)]
    tree = [queue("top", max={"cpu": 6}, quota_preemption_delay=MINUTE), queue("a", "top"), queue("b", "top")]
    made = cluster(
        [node("n", cpu=64)], work, tree, quota_preemption=ON, actions=("quota",),
        disruption=DisruptionSettings(budgets=(BudgetRule(name="a", queue="a", max_evictions=0),)),
    )  # fmt: skip
    played = play(made, cycles=2, every=MINUTE)
    assert [s.workload[:-1] for s in played.steps] == ["default/b"]


def test_protected_hours_delay_firing_and_are_told():
    """Until nine nobody goes; the queue is reported with what it waits for; at nine all four go."""
    rule = BudgetRule(name="mornings", max_evictions=0, schedule="0 8 * * *", duration=HOUR)
    made = crowded(rule)
    played = play(made, cycles=30, every=MINUTE)
    assert not evictions(played)
    (report,) = played.quota
    assert report.state == "stuck"
    assert report.shortfall == report.over == {"cpu": 8000}
    assert {(b.reason, b.until) for b in report.blockers} == {("budget", NOW + HOUR)}
    assert evictions(play(made, cycles=70, every=MINUTE)) == {60: 4}


def test_the_next_cycle_is_due_when_protected_hours_end():
    """A scheduler that sleeps between events is told when to look again."""
    rule = BudgetRule(name="mornings", max_evictions=0, schedule="0 8 * * *", duration=HOUR)
    after = play(crowded(rule)).after
    plan = Scheduler(session_of(replace(after, now=NOW + 2 * MINUTE))).cycle(NOW + 2 * MINUTE)
    assert plan.wake == NOW + HOUR


def test_a_notice_comes_before_the_eviction():
    """At the deadline four are told, and go when their notice ends."""
    played = play(crowded(eviction_notice=2 * MINUTE), cycles=6, every=MINUTE)
    told = [(s.cycle, s.cause) for s in played.steps if s.action == "notice"]
    assert told == [(1, "quota")] * 4
    assert evictions(played) == {3: 4}


def test_raising_the_max_withdraws_notices():
    """Nobody goes who was told of a quota that has been raised again."""
    told = play(crowded(eviction_notice=5 * MINUTE), cycles=3, every=MINUTE).after
    assert sum(t.notice is not None for w in told.workloads for t in w.tasks) == 4
    raised = apply_overrides(told, ["queue.q.max.cpu=12"]).cluster
    later = play(replace(raised, now=raised.now + MINUTE), cycles=10, every=MINUTE)
    assert not evictions(later)
    assert not any(t.notice for w in later.after.workloads for t in w.tasks)


class Spares:
    """A plugin that lets no set go that holds one of some workloads."""

    name = "spares"

    def __init__(self, *names):
        self.names = {f"default/{name}" for name in names}

    def allow_plan(self, contender, victims, tasks, cause, now):  # noqa: ARG002
        """Say no to whatever holds one of them."""
        return not any(key in self.names for key, _ in tasks)


def test_where_a_plugin_spares_the_first_choices_others_go():
    """The set is chosen once more without those that the plugin keeps."""
    made = fire_at_once(crowded(actions=("quota",)), "q")
    scheduler = Scheduler(session_of(made))
    scheduler.context.plugins = EvictionPlugins([Spares("w0", "w1")])
    plan = scheduler.cycle(NOW + SECOND)
    assert sorted(s.workload for s in plan.steps) == [f"default/w{i}" for i in (2, 3, 4, 5)]


def test_what_plugins_keep_again_and_again_is_told_as_shortfall():
    """Nineteen may stay of twenty; the first eight that are chosen, one after the other, must not go."""
    tree = [queue("q", max={"cpu": 38}, quota_preemption_delay=MINUTE)]
    work = [workload(f"w{i:02}", of=spec(cpu=2), on=["n"], queue="q", running=600 + i) for i in range(20)]
    made = fire_at_once(cluster([node("n", cpu=64)], work, tree, quota_preemption=ON, actions=("quota",)), "q")
    scheduler = Scheduler(session_of(made))
    scheduler.context.plugins = EvictionPlugins([Spares(*(f"w{i:02}" for i in range(8)))])
    plan = scheduler.cycle(NOW + SECOND)
    assert not plan.steps
    (report,) = plan.quota
    assert (report.state, report.shortfall) == ("stuck", {"cpu": 2000})
    assert {b.reason for b in report.blockers} == {"spares", "search-exhausted"}


def test_what_only_the_bound_of_a_cycle_puts_off_is_not_stuck():
    """One may go in a cycle: it is of the first queue, and the second fires still."""
    work = [workload(f"w{q}", of=spec(cpu=2), on=["n"], queue=q, running=600) for q in "ab"]
    tree = [queue(name, max={"cpu": 1}, quota_preemption_delay=MINUTE) for name in "ab"]
    most = replace(ON, max_evictions_per_cycle=1)
    made = cluster([node("n", cpu=64)], work, tree, quota_preemption=most, actions=("quota",))
    played = play(made, cycles=2, every=MINUTE)
    assert [s.workload for s in played.steps] == ["default/wa"]
    assert [report.state for report in played.quota] == ["firing", "firing"]


class Keeps:
    """A plugin that lets nothing of one workload go."""

    name = "keeper"

    def allow_victim(self, contender, victim, cause, now):  # noqa: ARG002
        return victim.name != "kept"


def test_a_plugin_is_asked_about_surplus_of_what_is_in_its_minimum_runtime_too():
    """The minimum runtime protects the core alone; whoever says no to the whole workload is still heard."""
    tree = [queue("q", max={"cpu": 1}, quota_preemption_delay=MINUTE, reclaim_min_runtime=HOUR)]
    for name, goes in (("other", 2), ("kept", 0)):
        work = [workload(name, tasks=3, of=spec(cpu=1), on=["n"] * 3, min_member=1, queue="q", running=600)]
        made = fire_at_once(cluster([node("n")], work, tree, quota_preemption=ON, actions=("quota",)), "q")
        scheduler = Scheduler(session_of(made))
        scheduler.context.plugins = EvictionPlugins([Keeps()])
        plan = scheduler.cycle(made.now)
        assert sum(s.action == "evict" for s in plan.steps) == goes
        assert ("keeper" in {b.reason for b in plan.quota[0].blockers}) is (name == "kept")


def test_a_promise_is_given_up_before_anything_that_runs_where_a_guarantee_was_not_reached_before():
    """What a queue holds less of than it is guaranteed is no reason to evict, and to keep what is only promised."""
    size = spec(cpu=2, memory=1)
    work = [
        workload("runs", of=size, on=["n"], queue="q", running=600),
        workload("waits", tasks=[task("waits-0", size, nominated_to="n")], queue="q"),
    ]
    tree = [queue("q", max={"cpu": 2}, guaranteed={"memory": 8}, quota_preemption_delay=MINUTE)]
    made = cluster([node("n", memory=64)], work, tree, quota_preemption=ON, actions=("quota",))
    plan = Scheduler(session_of(fire_at_once(made, "q"))).cycle(made.now)
    assert [s.workload for s in plan.steps if s.action == "evict"] == []
    assert plan.expired == [("default/waits", 0)]
