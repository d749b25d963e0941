"""Metrics of the running scheduler, for Prometheus. Label values come from fixed sets: never names, never times."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from tenure.clusters.kubernetes.write.outcome import Outcome
from tenure.live.loop import CycleOutcome
from tenure.live.queue_metrics import QueueMetrics
from tenure.live.tables import METRICS
from tenure.telemetry.samples import samples_of
from tenure.telemetry.tables import METRICS as OF_PLANS

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class LiveMetrics:
    """The metrics of plans, and of what came of them."""

    def __init__(self, queues: Iterable[str] = ()) -> None:
        registry = self.registry = CollectorRegistry()
        self._of_plans: dict[str, Counter | Gauge] = {}
        for metric in OF_PLANS:
            make = Counter if metric.kind == "counter" else Gauge
            self._of_plans[metric.name] = make(
                metric.name, metric.help, [name for name, _ in metric.labels], registry=registry
            )
        self.cycles = _histogram("tenure_cycle_seconds", registry)
        self.deciding = _histogram("tenure_decision_seconds", registry)
        self.writes = _counter("tenure_writes_total", registry, "action", "result")
        self.evictions = _counter("tenure_evictions_total", registry, "cause")
        self.kept = _gauge("tenure_kept_nodes", registry)
        self.leads = _gauge("tenure_leader", registry)
        self.pending = _gauge("tenure_pending_workloads", registry)
        self.lists = _gauge("tenure_watch_lists", registry)
        self.queues = QueueMetrics(registry, queues)
        self.dropped = _gauge("tenure_events_dropped", registry)
        self.history_backlog = _gauge("tenure_history_backlog", registry)
        self.history_dropped = _counter("tenure_history_dropped_records_total", registry)
        self._dropped_before = 0
        self.history_away = _gauge("tenure_history_away", registry)
        self.faults = _counter("tenure_faults_total", registry, "stage")
        self.aside = _gauge("tenure_set_aside_workloads", registry)
        self.refused = _gauge("tenure_refused_evictions", registry)
        self.problems = _gauge("tenure_object_problems", registry)
        self.broken = _gauge("tenure_broken_watches", registry)

    def count(self, cycle: CycleOutcome) -> None:
        """Count a cycle."""
        self.cycles.observe(cycle.seconds)
        self.deciding.observe(cycle.deciding)
        for metric in OF_PLANS:
            if metric.kind == "gauge":
                self._of_plans[metric.name].clear()
        for sample in samples_of(cycle.plan, cycle.session):
            named = self._of_plans[sample.name]
            found = named.labels(*(value for _, value in sample.labels)) if sample.labels else named
            if isinstance(found, Gauge):
                found.set(sample.value)
            else:
                found.inc(sample.value)
        self._count_writes(cycle.outcome)
        self.queues.count(cycle.session, cycle.outcome.done, cycle.observed.cluster.workloads)
        if cycle.external is not None:
            self._count_writes(cycle.external.outcome)
        self.pending.set(len(cycle.session.waiting.all()))

    def _count_writes(self, outcome: Outcome) -> None:
        for step in outcome.done:
            self.writes.labels(step.action, "done").inc()
            if step.action == "evict":
                self.evictions.labels(step.cause or "").inc()
        for failure in outcome.failures:
            self.writes.labels(failure.action, "refused").inc()
        for step in outcome.skipped:
            self.writes.labels(step.action, "skipped").inc()

    def tell_of_history(self, backlog: int, dropped: int, *, away: bool) -> None:
        """Tell how far the history is behind, and how many records were dropped since the process began."""
        self.history_backlog.set(backlog)
        self.history_dropped.inc(dropped - self._dropped_before)
        self._dropped_before = dropped
        self.history_away.set(away)

    def text(self) -> tuple[int, str, bytes]:
        """Give all metrics as Prometheus reads them."""
        return 200, CONTENT_TYPE_PLAIN_0_0_4, generate_latest(self.registry)


def _histogram(name: str, registry: CollectorRegistry) -> Histogram:
    return Histogram(name, METRICS[name], registry=registry, buckets=_SECONDS)


def _counter(name: str, registry: CollectorRegistry, *labels: str) -> Counter:
    return Counter(name, METRICS[name], labels, registry=registry)


def _gauge(name: str, registry: CollectorRegistry) -> Gauge:
    return Gauge(name, METRICS[name], registry=registry)
