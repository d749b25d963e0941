"""Metrics of the running scheduler. Labels come from fixed sets: never names of workloads, never times."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.openmetrics.exposition import CONTENT_TYPE_LATEST

from tenure.live.loop import Cycle

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class LiveMetrics:
    """What is counted of cycles and writes."""

    def __init__(self) -> None:
        registry = self.registry = CollectorRegistry()
        self.cycles = Histogram("tenure_cycle_seconds", "Length of a cycle, writes included.", registry=registry,
                                buckets=_SECONDS)  # fmt: skip
        self.deciding = Histogram("tenure_decision_seconds", "Time that a cycle took to observe and decide.",
                                  registry=registry, buckets=_SECONDS)  # fmt: skip
        self.steps = Counter("tenure_steps_total", "Steps of plans, by what came of them.", ["action", "result"],
                             registry=registry)  # fmt: skip
        self.evictions = Counter("tenure_evictions_total", "Evictions that were carried out.", ["cause"],
                                 registry=registry)  # fmt: skip
        self.leads = Gauge("tenure_leader", "Whether this replica leads.", registry=registry)
        self.pending = Gauge("tenure_pending_workloads", "Workloads with tasks that wait.", registry=registry)
        self.lists = Gauge("tenure_watch_lists", "How often everything was listed anew, over all watches.",
                           registry=registry)  # fmt: skip
        self.requeue: dict[str, Counter] = {}

    def count(self, cycle: Cycle) -> None:
        """Count a cycle."""
        self.cycles.observe(cycle.seconds)
        self.deciding.observe(cycle.deciding)
        for step in cycle.outcome.done:
            self.steps.labels(step.action, "done").inc()
            if step.action == "evict":
                self.evictions.labels(step.cause or "").inc()
        for failure in cycle.outcome.failures:
            self.steps.labels(failure.action, "refused").inc()
        for step in cycle.outcome.skipped:
            self.steps.labels(step.action, "skipped").inc()
        for name, labels, value in cycle.plan.requeue.counts():
            counter = self.requeue.get(name)
            if counter is None:
                counter = self.requeue[name] = Counter(name, "See the events of requeueing.", [k for k, _ in labels],
                                                       registry=self.registry)  # fmt: skip
            counter.labels(*(v for _, v in labels)).inc(value)

    def text(self) -> tuple[int, str, bytes]:
        """Give all metrics as Prometheus reads them."""
        return (
            200,
            CONTENT_TYPE_LATEST.replace("application/openmetrics-text", "text/plain"),
            generate_latest(self.registry),
        )
