"""Budgets hold for every cause: what a cycle evicts is asked and charged, and written so that it counts later."""

from dataclasses import replace

import pytest
from tests.builders import NOW, SECOND, cluster, node, queue, spec, task, workload

from tenure.cli.terminal.outputs import write_cluster
from tenure.clusters.embedded import EmbeddedCluster
from tenure.cycle import Scheduler
from tenure.engine.snapshot import session_of
from tenure.model.cluster import DisruptionBudget, Eviction, RefusedEviction
from tenure.model.file.load import load_cluster
from tenure.model.queue import QueueStatus, QuotaStatus
from tenure.model.selectors import LabelSelector
from tenure.model.settings import BudgetRule, DisruptionSettings, QuotaPreemptionSettings
from tenure.shields.budget import BudgetShield

MINUTE, HOUR = 60 * SECOND, 3600 * SECOND


def crowded(*rules, budgets=(), victims=3, **fields):
    """A node full of small work that a more important workload of the same queue needs wholly."""
    small = [
        workload(f"small-{i}", of=spec(labels=(("tier", "web"),)), on=["a"], running=100 + i, age=200)
        for i in range(victims)
    ]
    made = cluster(
        [node("a", cpu=victims)], [*small, workload("big", of=spec(cpu=victims), priority=50)], [queue("default")],
        actions=("allocate", "reclaim", "preempt"), disruption=DisruptionSettings(budgets=tuple(rules)), **fields,
    )  # fmt: skip
    return replace(made, disruption_budgets=tuple(budgets))


def play(made, now=NOW):
    embedded = EmbeddedCluster(made)
    plan = Scheduler(session_of(made)).cycle(now)
    embedded.carry_out(plan)
    return plan, embedded.observe()


def evicted(plan):
    return sorted(s.task for s in plan.steps if s.action == "evict")


def test_without_budgets_all_three_go():
    """The same cluster that the other tests protect."""
    plan, after = play(crowded())
    assert len(evicted(plan)) == 3
    assert [e.queue for e in after.evictions] == ["default"] * 3
    assert after.evictions[0].labels == {"tier": "web"}
    assert after.evictions[0].lost["cpu"] >= 100 * SECOND


def test_a_plan_that_needs_three_and_may_have_two_is_not_started():
    """And says which budget it was."""
    plan, _ = play(crowded(BudgetRule(name="two", max_evictions=2, per=HOUR)))
    assert not plan.steps


def test_what_was_evicted_before_counts_after_a_restart():
    """The log is in the cluster: a new scheduler finds the budget used up."""
    made = crowded(BudgetRule(name="three", max_evictions=3, per=HOUR))
    plan, after = play(made)
    assert len(evicted(plan)) == 3
    again = crowded(BudgetRule(name="three", max_evictions=3, per=HOUR))
    plan, _ = play(replace(again, now=NOW + 60 * SECOND, evictions=after.evictions), NOW + 60 * SECOND)
    assert not evicted(plan)
    plan, _ = play(replace(again, now=NOW + HOUR, evictions=after.evictions), NOW + HOUR)
    assert len(evicted(plan)) == 3, "the window (t - per, t] has moved on"


def used_up(*rules, core):
    """A workload of two tasks, of which so many run together, and evictions one, two and three minutes ago."""
    gang = workload("gang", tasks=2, of=spec(), on=["a", "a"], min_member=core, running=9000)
    log = tuple(Eviction(at=NOW - m * MINUTE, workload="default/x", task=f"x-{m}", cause="reclaim") for m in (3, 2, 1))
    made = cluster(
        [node("a", cpu=2)], [gang, workload("big", of=spec(cpu=core), priority=50)], [queue("default")],
        actions=("allocate", "preempt"), disruption=DisruptionSettings(budgets=rules),
    )  # fmt: skip
    return replace(made, evictions=log)


@pytest.mark.parametrize(
    ("most", "core", "until"),
    [
        ([3], 1, 2),  # one of them
        ([3], 2, 3),  # both
        ([1], 2, None),  # never both
        ([3, 2], 2, 4),  # all budgets have to
        ([3, 1], 2, None),
    ],
)
def test_a_workload_is_spared_until_all_budgets_let_go_what_has_to_go_together(most, core, until):
    """Then it goes, and no sooner."""
    rules = [BudgetRule(name=f"b{n}", max_evictions=n, per=5 * MINUTE) for n in most]
    made = used_up(*rules, core=core)
    plan, after = play(made)
    (told,) = (r for r in plan.refused if r.shield == "budget")
    assert told.until == (None if until is None else NOW + until * MINUTE)
    due = NOW + (until or 60) * MINUTE
    assert not play(replace(after, now=due - 1), due - 1)[0].steps
    assert len(evicted(play(replace(after, now=due), due)[0])) == (core if until else 0)


def test_a_pod_disruption_budget_is_modelled():
    """Three pods match, and two have to stay."""
    budget = DisruptionBudget(name="web", min_available=2, selector=LabelSelector(match_labels=(("tier", "web"),)))
    plan, _ = play(crowded(budgets=[budget]))
    assert not plan.steps


def test_protected_hours_hold_for_the_causes_they_name():
    """Preempt is not reclaim."""
    always = {"schedule": "* * * * *", "duration": HOUR, "max_evictions": 0}
    assert not evicted(play(crowded(BudgetRule(name="day", causes=("preempt",), **always)))[0])
    assert len(evicted(play(crowded(BudgetRule(name="day", causes=("reclaim",), **always)))[0])) == 3


def test_lost_time_is_bounded():
    """Three cores for some hundred seconds each."""
    few = BudgetRule(name="lost", max_lost={"cpu": 250 * SECOND}, per=HOUR)
    many = BudgetRule(name="lost", max_lost={"cpu": 350 * SECOND}, per=HOUR)
    assert not evicted(play(crowded(few))[0])
    assert len(evicted(play(crowded(many))[0])) == 3


def grown(cause, *rules):
    """A task joined ten hours after its workload had started, and has run for a minute: it has to go, by a cause."""
    old, young = (
        task(f"t-{n}", spec(cpu=4), on=n, started_at=NOW - age) for n, age in (("a", 10 * HOUR), ("b", MINUTE))
    )
    armed = QueueStatus(
        quota_preemption=QuotaStatus(armed_at=NOW - SECOND, delay=SECOND, deadline=NOW, max={"cpu": 4000})
    )
    surplus = workload("grown", tasks=[old, young], min_member=1, age=10 * 3600, running=10 * 3600, queue="over")
    over = {"max": {"cpu": 4}, "quota_preemption_delay": SECOND, "status": armed} if cause == "quota" else {}
    return cluster(
        [node("a", cpu=4), node("b", cpu=4)], [surplus, workload("new", of=spec(cpu=4), queue="owed")],
        [queue("over", guaranteed={"cpu": 4}, **over), queue("owed", guaranteed={"cpu": 4})],
        actions=(cause, "allocate"),
        quota_preemption=QuotaPreemptionSettings(enabled=True),
        disruption=DisruptionSettings(cost={"cpu": 1.0}, budgets=rules),
    )  # fmt: skip


@pytest.mark.parametrize("cause", ["reclaim", "quota"])
def test_a_task_that_joined_later_loses_what_it_ran_itself(cause):
    """The log, and with it budgets and the history, count what the plan says that the eviction costs."""
    plan, after = play(grown(cause))
    (step,) = [s for s in plan.steps if s.action == "evict"]
    (entry,) = after.evictions
    assert (step.task, step.cost) == ("t-b", 4 * 60)
    assert entry.lost == {"cpu": 4 * MINUTE}
    assert step.lost == MINUTE
    assert evicted(play(grown(cause, BudgetRule(name="lost", max_lost={"cpu": 4 * MINUTE}, per=HOUR)))[0]) == ["t-b"]
    assert not evicted(play(grown(cause, BudgetRule(name="lost", max_lost={"cpu": 4 * MINUTE - 1}, per=HOUR)))[0])


def test_what_is_lost_of_memory_is_counted_in_gib_and_can_be_written_and_read(tmp_path):
    """Bytes times years would be no duration any more; the log of the cluster file is what survives a restart."""
    asked = spec(cpu=1, memory=32, labels=(("tier", "web"),), extra={"ephemeral-storage": 1 << 40})
    small = workload("small", of=asked, on=["a"], running=30 * 24 * 3600, age=31 * 24 * 3600)
    room = {"ephemeral-storage": 1 << 41}
    made = cluster(
        [node("a", cpu=1, memory=64, extra=room)], [small, workload("big", of=spec(cpu=1), priority=50)],
        [queue("default")], actions=("allocate", "preempt"),
    )  # fmt: skip
    _, after = play(made)
    (entry,) = after.evictions
    assert entry.lost["memory"] == 32 * 30 * 24 * HOUR
    assert entry.lost["ephemeral-storage"] == 1024 * 30 * 24 * HOUR
    path = str(tmp_path / "after.yaml")
    write_cluster(after, path)
    assert load_cluster(path).cluster.evictions == after.evictions
    over = BudgetRule(name="lost", max_lost={"memory": 32 * 30 * 24 * HOUR - 1}, per=HOUR)
    bounded = replace(made, settings=replace(made.settings, disruption=DisruptionSettings(budgets=(over,))))
    assert not evicted(play(bounded)[0])


def test_pods_on_a_node_that_has_failed_are_down():
    """One of three may be down: where the node of one is not ready, nobody else may go."""
    web = [workload(f"web-{n}", of=spec(labels=(("tier", "web"),)), on=[n], running=100, age=200) for n in "abc"]
    rule = BudgetRule(name="web", max_unavailable=1, selector=LabelSelector(match_labels=(("tier", "web"),)))

    def plan(**failed):
        nodes = [node("a", cpu=1, **failed), node("b", cpu=1), node("c", cpu=1)]
        made = cluster(nodes, [*web, workload("big", of=spec(cpu=1), priority=50)], [queue("default")],
                       actions=("allocate", "preempt"), disruption=DisruptionSettings(budgets=(rule,)))  # fmt: skip
        return evicted(play(made)[0])

    assert len(plan()) == 1
    assert not plan(ready=False)


WEB = LabelSelector(match_labels=(("tier", "web"),))
STUCK = (
    (DisruptionBudget(name="never", max_unavailable=0, selector=WEB),),
    (DisruptionBudget(name="never", max_unavailable="0%", selector=WEB),),
    (DisruptionBudget(name="all", min_available="100%", selector=WEB),),
    (DisruptionBudget(name="three", min_available=3, selector=WEB),),
    (DisruptionBudget(name="one", max_unavailable=3, selector=WEB),) * 2,
    (DisruptionBudget(name="blocked", max_unavailable=1, selector=WEB, blocked_since=NOW - 90 * SECOND),),
)


def with_patience(made, seconds):
    disruption = replace(made.settings.disruption, max_opt_out=seconds * SECOND)
    return replace(made, settings=replace(made.settings, disruption=disruption))


@pytest.mark.parametrize("budgets", STUCK)
def test_a_budget_that_can_allow_nothing_spares_for_no_longer_than_one_may_be_spared(budgets):
    """Three pods that started 100 to 102 seconds ago: kept before that, and let go when it is over."""
    made = crowded(budgets=budgets)
    assert not evicted(play(with_patience(made, 110))[0])
    assert not evicted(play(made)[0])
    assert len(evicted(play(with_patience(made, 80))[0])) == 3


def test_a_budget_that_allows_some_is_kept_for_ever():
    """It could let two of three go, or has let none go for a moment only: it holds whatever the time."""
    some = DisruptionBudget(name="some", min_available=1, selector=WEB, blocked_since=NOW - 5 * SECOND)
    assert not evicted(play(with_patience(crowded(budgets=(some,)), 80))[0])


@pytest.mark.parametrize("cause", ["consolidate", "reschedule"])
def test_what_only_improves_keeps_every_budget(cause):
    """Nobody's due is served by it."""
    made = with_patience(crowded(budgets=STUCK[0]), 0)
    session = session_of(made)
    shield = BudgetShield()
    shield.begin(session)
    victim = session.workloads["default/small-0"]
    assert shield.filter(session, cause, None, victim) is not None
    assert shield.filter(session, "reclaim", None, victim) is None


REFUSED = RefusedEviction(workload="default/small-1", task="small-1-0", until=NOW + SECOND, message="no")


def test_what_was_refused_lately_is_left_alone_and_others_are_chosen():
    """A set that needs it is not planned; one that does not need it is; and it says until when."""
    made = replace(crowded(), refused_evictions=(REFUSED,))
    plan, _ = play(made)
    assert not plan.steps
    told = [r for r in plan.refused if r.shield == "eviction-refused"]
    assert {(r.workload, r.until) for r in told} == {("default/small-1", NOW + SECOND)}
    assert "refused to evict default/small-1 small-1-0: no" in told[0].message
    small = replace(made, workloads=(*made.workloads[:3], workload("big", of=spec(cpu=2), priority=50)))
    assert evicted(play(small)[0]) == ["small-0-0", "small-2-0"]
    over = replace(made, now=NOW + SECOND)
    assert len(evicted(play(over, NOW + SECOND)[0])) == 3
