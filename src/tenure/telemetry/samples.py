"""Counters and gauges of one cycle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple

from tenure.engine.plan import Plan, PlanStep
from tenure.engine.state.session import Session
from tenure.model.cluster import EvictionOutcome
from tenure.model.settings import CAUSES
from tenure.telemetry.tables import METRICS, OTHER, PLUGINS

EXHAUSTED = "search-exhausted: search.maxScenarios was reached by"
"""How a plan's warning begins that says that a search was cut off."""


class Sample(NamedTuple):
    """A value of a metric: what a counter grows by, or what a gauge stands at."""

    name: str
    labels: tuple[tuple[str, str], ...]
    value: int


def samples_of(plan: Plan, session: Session) -> list[Sample]:
    """Give the samples of a cycle, in the order of the table.

    Parameters
    ----------
    plan
        What it decided.
    session
        The cluster as it is after that.
    """
    requeue = plan.requeue
    found: dict[str, Counter[tuple[str, ...]]] = {
        "tenure_cycles_total": Counter({(): 1}),
        "tenure_plan_steps_total": Counter((s.action,) for s in plan.steps),
        "tenure_planned_evictions_total": _by_cause(plan.steps, "evict"),
        "tenure_notices_total": _by_cause(plan.steps, "notice"),
        "tenure_notices_withdrawn_total": _by_cause(plan.steps, "withdraw"),
        "tenure_shadow_evictions_total": Counter((s.cause or "",) for s in plan.shadow),
        "tenure_search_exhausted_total": _exhausted(plan),
        "tenure_requeue_nominations_total": Counter((plugin(p),) for n in requeue.nominations for p in n.by),
        "tenure_requeue_nomination_skipped_total": Counter((plugin(s.plugin), s.reason) for s in requeue.skipped),
        "tenure_requeue_transactions_total": Counter(
            {("committed",): requeue.committed, ("rolled_back",): requeue.rolled_back}
        ),
        "tenure_quota_events_total": Counter((e.kind,) for e in plan.quota_events),
        "tenure_lost_weighted_seconds": _sums(session, lambda outcome: outcome.lost),
        "tenure_gained_weighted_seconds": _sums(session, lambda outcome: outcome.gained),
        "tenure_unknown_starts": Counter({(): len(unknown_starts(session))}),
        "tenure_noticed_tasks": Counter({(): len(session.noticed)}),
        "tenure_quota_queues": Counter((q.state,) for q in plan.quota),
        "tenure_quota_shortfall_queues": Counter({(): sum(bool(q.shortfall) for q in plan.quota)}),
        "tenure_quota_exhausted_queues": Counter({(): sum(q.exhausted for q in plan.quota)}),
    }
    samples = []
    for metric in METRICS:
        names = [name for name, _ in metric.labels]
        for values, number in sorted(found[metric.name].items()):
            if number:
                samples.append(Sample(metric.name, tuple(zip(names, values, strict=True)), number))
    return samples


def add_up(earlier: Iterable[Sample], later: Iterable[Sample]) -> list[Sample]:
    """Give counters added up over cycles, and gauges as they stand at the end; in the order of the table."""
    gauges = {m.name for m in METRICS if m.kind == "gauge"}
    order = {m.name: number for number, m in enumerate(METRICS)}
    total = Counter({(s.name, s.labels): s.value for s in earlier if s.name not in gauges})
    for sample in later:
        total[sample.name, sample.labels] += sample.value
    ranked = sorted(total.items(), key=lambda item: (order[item[0][0]], item[0][1]))
    return [Sample(name, labels, value) for (name, labels), value in ranked]


def _sums(session: Session, figure: Callable[[EvictionOutcome], int]) -> Counter[tuple[str, ...]]:
    """Sum outcomes up by cause, of what became known within the window that is looked at."""
    since = session.now - session.settings.worth.breaker.window
    found: Counter[tuple[str, ...]] = Counter()
    for outcome in session.outcomes:
        found[outcome.cause,] += figure(outcome) if outcome.at > since else 0
    return found


def plugin(name: str) -> str:
    """Give the label of a nominator: its name if it is one of this package's."""
    return name if name in PLUGINS else OTHER


def unknown_starts(session: Session) -> list[str]:
    """Name the running workloads with an unknown start."""
    return sorted(key for key, w in session.roster.unstarted.items() if w.started_at is None and w.occupied())


def exhausted(plan: Plan) -> dict[str, str]:
    """Give the workloads for which a search was cut off, each with the last cause that was."""
    return {
        key: str(reason.numbers.get("cause", ""))
        for key, reasons in sorted(plan.obstacles.items())
        for reason in reasons
        if reason.code == "SearchExhausted"
    }


def _exhausted(plan: Plan) -> Counter[tuple[str, ...]]:
    """Count by cause the contenders for which a search was cut off; where none is named, once."""
    found: Counter[tuple[str, ...]] = Counter((c,) for c in exhausted(plan).values())
    for cause in CAUSES:
        if not found[cause,] and any(w.startswith(f"{EXHAUSTED} {cause}") for w in plan.warnings):
            found[cause,] = 1
    return found


def _by_cause(steps: Iterable[PlanStep], action: str) -> Counter[tuple[str, ...]]:
    return Counter((s.cause or "",) for s in steps if s.action == action)
