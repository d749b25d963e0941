"""Counters, events and the log: what a cycle tells, in words and labels from fixed sets."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.actions.helpers import MINUTE, NOW, cluster, play, queue, runs, waits
from tests.actions.test_modes import CASES
from tests.notices.test_properties import with_notices
from tests.properties.contention import contended

from tenure.cycle import Scheduler
from tenure.engine.plan import Plan
from tenure.engine.requeued import Nominated, RequeueOutcome, Skipped
from tenure.engine.snapshot import session_of
from tenure.model.settings import CAUSES, NominatorSettings, SearchSettings
from tenure.report.plans.plan_json import plan_json
from tenure.telemetry.document import document
from tenure.telemetry.events import events_of, records_of
from tenure.telemetry.samples import Sample, add_up, samples_of
from tenure.telemetry.tables import EVENTS, METRICS

PAGE = Path(__file__).parents[2] / "docs" / "metrics-and-events.md"


def told(state):
    """What one cycle on a cluster tells: its counters by name and labels, and its events."""
    session = session_of(state)
    plan = Scheduler(session).cycle(state.now)
    counts = {(s.name, *(v for _, v in s.labels)): s.value for s in samples_of(plan, session)}
    return counts, events_of(plan, session)


def reasons(events, name):
    return [e.reason for e in events if e.name in (name, f"default/{name}")]


def test_the_page_is_what_the_tables_say():
    """Whoever adds a metric or an event makes the page anew."""
    assert PAGE.read_text(encoding="utf-8") == document()


def test_names_are_unique_and_say_what_they_are():
    assert len({m.name for m in METRICS}) == len(METRICS)
    for metric in METRICS:
        assert metric.name.startswith("tenure_")
        assert metric.name.endswith("_total") is (metric.kind == "counter")
        assert metric.help.endswith(".")


@pytest.mark.parametrize("cause", CAUSES)
def test_evictions_notices_and_shadow_are_counted_by_cause(cause):
    """Tasks, under the cause that takes them, whether it does, announces it, or only would."""
    state = CASES[cause]()
    number = sum(s.action == "evict" for s in play(state).steps)
    counts, events = told(state)
    assert counts["tenure_planned_evictions_total", cause] == number
    assert "Requeued" in reasons(events, "x") if cause == "requeue" else "Evicted" in reasons(events, "x")
    counts, events = told(replace(state, settings=replace(state.settings, eviction_notice=MINUTE)))
    assert (counts["tenure_notices_total", cause], counts["tenure_noticed_tasks",]) == (number, number)
    assert "EvictionNotice" in reasons(events, "x")
    counts, events = told(replace(state, settings=replace(state.settings, modes={cause: "shadow"})))
    assert counts["tenure_shadow_evictions_total", cause] == number
    assert ("tenure_planned_evictions_total", cause) not in counts
    assert "WouldEvict" in reasons(events, "x")


def test_what_requeue_found_out_is_counted_under_the_names_of_this_package():
    """A nominator of another package counts as other: nobody chooses label values."""
    requeue = RequeueOutcome(
        [Nominated("default/z", ("expected-runtime", "my-own"))],
        [Skipped("default/w", "my-own", "cooldown"), Skipped("default/v", "idle", "not_running")],
        committed=2, rolled_back=1,
    )  # fmt: skip
    samples = samples_of(Plan(NOW, requeue=requeue), session_of(cluster([queue("a")], [])))
    found = {(s.name.removeprefix("tenure_requeue_"), *dict(s.labels).values()): s.value for s in samples}
    assert found == {
        ("tenure_cycles_total",): 1,
        ("nominations_total", "expected-runtime"): 1, ("nominations_total", "other"): 1,
        ("nomination_skipped_total", "other", "cooldown"): 1, ("nomination_skipped_total", "idle", "not_running"): 1,
        ("transactions_total", "committed"): 2, ("transactions_total", "rolled_back"): 1,
    }  # fmt: skip
    assert records_of(Plan(NOW, requeue=requeue))[0] == (
        "requeue-skip", {"workload": "default/w", "plugin": "my-own", "reason": "cooldown"}
    )  # fmt: skip


def test_what_runs_and_nobody_knows_since_when_is_counted():
    """It is told as well: nothing protects it."""
    lost = runs("x", "a", ["n0"])
    lost = replace(lost, started_at=None, tasks=tuple(replace(t, started_at=None) for t in lost.tasks))
    counts, events = told(cluster([queue("a")], [lost, runs("y", "a", ["n0"])]))
    assert counts["tenure_unknown_starts",] == 1
    assert reasons(events, "x") == ["UnknownStart"]
    assert reasons(events, "y") == []


def test_what_is_unsupported_says_so():
    odd = waits("x", "a")
    odd = replace(odd, tasks=tuple(replace(t, spec=replace(t.spec, unsupported=("volumes",))) for t in odd.tasks))
    assert reasons(told(cluster([queue("a")], [odd]))[1], "x") == ["Unsupported"]


def test_a_queue_tells_when_it_is_armed_fires_and_falls_short():
    """The deadline, what goes, and what blocks the rest."""
    counts, events = told(CASES["quota"]())
    assert counts["tenure_quota_events_total", "fired"] == 1
    assert counts["tenure_quota_queues", "firing"] == 1
    assert reasons(events, "a") == ["QuotaPreemptionFired"]
    state = CASES["quota"]()
    fixed = replace(state, workloads=tuple(replace(w, preemptible=False) for w in state.workloads))
    counts, events = told(fixed)
    assert counts["tenure_quota_shortfall_queues",] == 1
    (event,) = [e for e in events if e.reason == "QuotaShortfall"]
    assert (event.kind, event.name) == ("queue", "a")
    assert "over its max by 2 GPUs" in event.message
    assert "preemptib" in event.message
    fresh = replace(state, queues=(replace(state.queues[0], status=None),))
    assert reasons(told(fresh)[1], "a") == ["QuotaPreemptionArmed"]


def test_a_withdrawn_notice_is_counted_and_told():
    state = replace(CASES["reclaim"](), settings=replace(CASES["reclaim"]().settings, eviction_notice=5 * MINUTE))
    after = play(state).after
    gone = replace(after, workloads=tuple(w for w in after.workloads if w.name != "c"))
    counts, events = told(gone)
    assert counts["tenure_notices_withdrawn_total", "reclaim"] == 4
    assert reasons(events, "x") == ["NoticeWithdrawn"]


def test_a_search_that_is_cut_off_is_counted():
    """Wherever a plan warns of it, and nowhere else."""
    seen = 0
    for seed in range(60):
        state = contended(seed)
        played = play(replace(state, settings=replace(state.settings, search=SearchSettings(max_scenarios=1))))
        counted = [s for s in played.counters if s.name == "tenure_search_exhausted_total"]
        assert bool(counted) is any(w.startswith("search-exhausted") for w in played.warnings)
        seen += bool(counted)
    assert seen > 2


def test_counters_add_up_over_cycles_and_gauges_stand_as_of_the_last():
    one = [Sample("tenure_cycles_total", (), 1), Sample("tenure_noticed_tasks", (), 3)]
    two = [Sample("tenure_cycles_total", (), 1), Sample("tenure_unknown_starts", (), 2)]
    assert add_up(one, two) == [Sample("tenure_cycles_total", (), 2), Sample("tenure_unknown_starts", (), 2)]


def test_the_plan_as_json_has_both():
    found = plan_json(play(CASES["reclaim"](), cycles=3))
    assert {"name": "tenure_cycles_total", "labels": {}, "value": 3} in found["counters"]
    assert {"name": "tenure_planned_evictions_total", "labels": {"cause": "reclaim"}, "value": 4} in found["counters"]
    (event,) = [e for e in found["events"] if e["reason"] == "Evicted"]
    assert (event["cycle"], event["on"], event["name"]) == (0, "workload", "default/x")


@given(st.integers(0, 1 << 32))
@settings(max_examples=60)
def test_labels_and_reasons_come_from_the_tables(seed):
    """Whatever happens: every name is known, every label has one of its values, every reason is in the table."""
    rng, state = random.Random(seed), with_notices(seed)
    modes = {c: rng.choice(["enforce", "enforce", "shadow", "off"]) for c in CAUSES}
    nominators = NominatorSettings(over_share=rng.random() < 0.5)
    state = replace(state, settings=replace(state.settings, modes=modes, nominators=nominators))
    known = {m.name: m for m in METRICS}
    played = play(state, cycles=4, every=MINUTE)
    for sample in played.counters:
        metric = known[sample.name]
        assert [n for n, _ in sample.labels] == [n for n, _ in metric.labels]
        assert all(v in values for (_, v), (_, values) in zip(sample.labels, metric.labels, strict=True))
        assert sample.value > 0
    for event in played.events:
        assert event.reason in EVENTS
        assert event.message
        of_queues = event.reason.startswith("Quota") or event.reason == "ShieldWithoutCheckpoints"
        assert of_queues is (event.kind == "queue")
