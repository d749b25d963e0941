"""What requeue writes, and tells: not-before, the plan as data, counters, events, the owner's explanation."""

from __future__ import annotations

from dataclasses import replace

from tests.builders import NOW, SECOND
from tests.requeue.clusters import one_node, overdue, queue, requeued, waiting

from tenure.clusters.embedded import EmbeddedCluster
from tenure.cycle import Scheduler
from tenure.engine.snapshot import session_of
from tenure.explanation.explain import explain_workload
from tenure.model.settings import BudgetRule, DisruptionSettings, PatienceRule, WorthSettings
from tenure.model.workload import Phase
from tenure.playthrough import play
from tenure.report.plans.plan_json import plan_json

MINUTE, HOUR = 60 * SECOND, 3600 * SECOND


def test_requeue_delay_inherits_and_a_bad_one_means_the_default_and_is_reported():
    tree = [queue("q", requeue_delay=HOUR)]
    old, new = replace(overdue(), queue="q"), replace(waiting(), queue="q")

    def until(candidate):
        played = play(one_node(candidate, new, queues=tree))
        return played.after.workloads[0].requeue_not_before - NOW, played.warnings

    assert until(old)[0] == HOUR
    assert until(replace(old, requeue_delay=2 * HOUR))[0] == 2 * HOUR
    assert until(replace(old, requeue_delay=HOUR, annotations={"kai.scheduler/requeue-delay": "3h"}))[0] == 3 * HOUR
    delay, warnings = until(replace(old, annotations={"tenure.dev/requeue-delay": "soon"}))
    assert delay == 10 * MINUTE
    assert any("requeue-delay" in w for w in warnings)
    assert until(replace(old, annotations={"tenure.dev/requeue-delay": "10000000w"}))[0] > 0


def test_what_is_written_wins_over_an_older_annotation():
    old = replace(overdue(), annotations={"volcano.sh/requeue-not-before": "2020-01-01T00:00:00Z"})
    after = play(one_node(old, waiting())).after
    assert session_of(after).workloads["default/old"].not_before == NOW + 10 * MINUTE


def test_a_crash_between_the_two_writes_loses_nothing():
    """The cooldown is written, the eviction is not: the workload runs on, and is not requeued before its time."""
    given = one_node(overdue(), waiting())
    plan = Scheduler(session_of(given)).cycle(NOW)
    embedded = EmbeddedCluster(given)
    embedded.write_not_before(plan)
    crashed = embedded.observe()
    assert [t.phase for w in crashed.workloads for t in w.tasks] == [Phase.RUNNING, Phase.PENDING]
    assert not requeued(play(replace(crashed, now=NOW + 9 * MINUTE)))
    assert requeued(play(replace(crashed, now=NOW + 10 * MINUTE))) == {"old": "new"}


def test_a_requeued_workload_starts_a_new_run():
    """It may start again at once where there is room, its clock starts anew, and its cooldown bars nothing else."""
    given = one_node(overdue(), waiting())
    first = play(given, cycles=2, every=MINUTE).after
    emptied = replace(first, workloads=tuple(w for w in first.workloads if w.name == "old"), now=NOW + 2 * MINUTE)
    again = play(emptied, cycles=2, every=MINUTE).after
    old = again.workloads[0]
    assert old.tasks[0].phase is Phase.RUNNING
    assert old.started_at == NOW + 2 * MINUTE


def test_the_plan_says_what_was_found_as_json():
    tree = [queue("a"), queue("b")]
    cooling = replace(overdue("cooling", gpu=1), requeue_not_before=NOW + HOUR, queue="a")
    fine = replace(overdue("fine", gpu=3, preemptible=True), queue="a")
    result = plan_json(play(one_node(cooling, fine, replace(waiting(gpu=2), queue="b"), queues=tree)))
    assert result["requeue"] == {
        "nominations": [{"workload": "default/fine", "by": ["expected-runtime"]}],
        "skipped": [{"workload": "default/cooling", "plugin": "expected-runtime", "reason": "cooldown"}],
        "committed": 1,
        "rolledBack": 0,
    }


def test_counters_have_labels_from_fixed_sets():
    requeue = play(
        one_node(overdue(gpu=2), replace(overdue("c", gpu=2), requeue_not_before=NOW + 1), waiting(gpu=4))
    ).requeue
    assert [(c.name, dict(c.labels), c.value) for c in requeue.counts()] == [
        ("tenure_requeue_nominations_total", {"plugin": "expected-runtime"}, 1),
        ("tenure_requeue_nomination_skipped_total", {"plugin": "expected-runtime", "reason": "cooldown"}, 1),
        ("tenure_requeue_transactions_total", {"result": "rolled_back"}, 1),
    ]


def test_events_say_who_was_nominated_and_for_whom_who_was_requeued():
    requeue = play(one_node(overdue(), waiting())).requeue
    told = {(e.workload, e.reason): e.message for e in requeue.events()}
    assert (
        told["default/old", "Nominated"]
        == "it has run for 2 h and was expected to run for 1 h; nominated by expected-runtime"
    )
    assert (
        told["default/old", "Requeued"] == "it gives way to default/new; not requeued again before 2027-01-15T08:10:00Z"
    )


def test_explain_tells_the_owner_since_when_it_is_eligible():
    given = one_node(overdue(), waiting(priority=0))
    story = "\n".join(explain_workload(play(given), given.workloads[0]).lines())
    assert "eligible since 2027-01-15T07:00:00Z" in story
    assert "it still runs because no more deserving workload would start" in story


def why_it_runs(given, name="old"):
    """Why a workload that may be requeued runs on, as its owner is told."""
    played = play(given)
    item = next(w for w in played.after.workloads if w.name == name)
    (reason,) = [r for r in explain_workload(played, item).reasons if r.code == "RequeueEligible"]
    return reason.message.partition("it still runs because ")[2]


PATIENT = WorthSettings(patience={"requeue": PatienceRule()})


def test_explain_names_who_waits_until_an_eviction_pays_for_each_whose_place_it_could_take():
    """Of two that may be requeued the reason of who waits names one, and the other could go for it as well."""
    given = one_node(overdue("a", gpu=2), overdue("b", gpu=2, ran=7300), waiting(gpu=2), worth=PATIENT)
    (reason,) = [r for p in play(given).pending for r in p.reasons if r.code == "NotWorthYet"]
    for name in "ab":
        assert why_it_runs(given, name) == f"default/new, which could take its place, has to wait: {reason.message}"
    given = one_node(overdue("a", gpu=4), overdue("up", gpu=2, on="m", priority=60), waiting(gpu=2), worth=PATIENT)
    given = replace(given, nodes=(*given.nodes, replace(given.nodes[0], name="m", allocatable={"nvidia.com/gpu": 2})))
    assert why_it_runs(given, "up") == "no more deserving workload would start"


def test_explain_says_what_else_keeps_a_more_deserving_workload_from_its_place():
    delayed = one_node(overdue(), replace(waiting(), preemption_delay=HOUR))
    assert "default/new, which could take its place, has to wait: its preemption delay of 1h" in why_it_runs(delayed)
    assert "PreemptionDelay" in [r.code for p in play(delayed).pending for r in p.reasons]
    budget = DisruptionSettings(budgets=(BudgetRule(name="none", max_evictions=0, per=HOUR),))
    assert why_it_runs(one_node(overdue(), waiting(), disruption=budget)) == "budget protects it from default/new"
    shadow = one_node(overdue(), waiting(), modes={"requeue": "shadow"})
    assert why_it_runs(shadow) == "requeue is in shadow, and evicts nothing"
    told = one_node(replace(overdue(), eviction_notice=MINUTE), waiting())
    assert why_it_runs(told) == "its notice is not over"
