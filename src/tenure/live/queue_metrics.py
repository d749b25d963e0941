"""Metrics by queue, for the queues that were named: so that there are never more of them than somebody asked for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge

from tenure.engine.plan import PlanStep
from tenure.engine.state.cost import lost_amounts
from tenure.engine.state.session import Session
from tenure.live.tables import QUEUE_METRICS
from tenure.model.amounts import UNITS
from tenure.model.cluster import DEFAULT_QUEUE
from tenure.model.settings import Settings
from tenure.model.values.resources import CPU, GPU, MEMORY
from tenure.model.workload import Workload

OTHER: Final = "other"
"""Stands for all queues that were not named, and for resources beside CPU, memory and GPUs."""

MOST: Final = 200
"""Queues that may be named."""

_SHOWN: Final = (CPU, MEMORY, GPU)
_SECOND: Final = 1_000_000
_NOBODY: Final = "none"


class QueueMetrics:
    """What queues hold and are guaranteed, how many wait in them, and what was lost and caused, by cause.

    Parameters
    ----------
    registry
        Where they are told.
    names
        Leaf queues that have a line of their own, at most `MOST`.
    """

    def __init__(self, registry: CollectorRegistry, names: Iterable[str]) -> None:
        self.names = frozenset(list(dict.fromkeys(names))[:MOST])
        self.gauges: dict[str, Gauge] = {}
        self.counters: dict[str, Counter] = {}
        for metric in QUEUE_METRICS:
            if metric.kind == "gauge":
                self.gauges[metric.name] = Gauge(metric.name, metric.help, metric.labels, registry=registry)
            else:
                self.counters[metric.name] = Counter(metric.name, metric.help, metric.labels, registry=registry)

    def label(self, queue: str | None) -> str:
        """Give the label of a queue."""
        return queue if queue in self.names else OTHER if queue is not None else _NOBODY

    def count(self, session: Session, done: Sequence[PlanStep], workloads: Iterable[Workload]) -> None:
        """Count a cycle: how queues stand after it, and what was carried out in it."""
        self._stand(session)
        evictions = [step for step in done if step.action == "evict"]
        if evictions:
            self._lose(evictions, {w.key: w for w in workloads}, session.settings)

    def _stand(self, session: Session) -> None:
        queues = session.queues
        parents = {queue.parent for queue in queues.queues}
        held: dict[tuple[str, str], float] = {}
        due: dict[tuple[str, str], float] = {}
        waiting: dict[str, int] = {}
        for number, queue in enumerate(queues.queues):
            if queue.name in parents:
                continue
            label = self.label(queue.name)
            waiting.setdefault(label, 0)
            for resource, amount in zip(queues.resources, queues.allocated[number], strict=True):
                if resource in _SHOWN:
                    key = label, resource
                    held[key] = held.get(key, 0) + amount / UNITS.get(resource, 1)
                    due[key] = due.get(key, 0) + queue.guaranteed.get(resource, 0) / UNITS.get(resource, 1)
        for workload in session.waiting.all():
            label = self.label(queues.queues[workload.leaf].name)
            waiting[label] = waiting.get(label, 0) + 1
        self._set("tenure_queue_allocated", held)
        self._set("tenure_queue_guaranteed", due)
        self._set("tenure_queue_pending_workloads", {(label,): float(number) for label, number in waiting.items()})

    def _set(self, name: str, values: dict[tuple[str, str], float] | dict[tuple[str], float]) -> None:
        gauge = self.gauges[name]
        gauge.clear()
        for labels, value in values.items():
            gauge.labels(*labels).set(value)

    def _lose(self, steps: Sequence[PlanStep], workloads: dict[str, Workload], settings: Settings) -> None:
        for step in steps:
            victim, other = workloads.get(step.workload), workloads.get(step.beneficiary or "")
            if victim is None:
                continue
            own = self.label(victim.queue or DEFAULT_QUEUE)
            author = self.label(None if other is None else other.queue or DEFAULT_QUEUE)
            cause = step.cause or ""
            self.counters["tenure_queue_evictions_total"].labels(own, cause).inc()
            spec = victim.tasks[step.task_index].spec
            lost = lost_amounts(spec, step.lost, settings) if step.lost > 0 else {}
            for resource, time in lost.items():
                shown = resource if resource in _SHOWN else OTHER
                value = time / _SECOND
                self.counters["tenure_queue_lost_resource_seconds_total"].labels(own, cause, shown).inc(value)
                self.counters["tenure_queue_caused_resource_seconds_total"].labels(author, cause, shown).inc(value)
