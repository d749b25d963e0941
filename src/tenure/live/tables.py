"""What only the running scheduler tells: metrics of what came of plans, and events beside those of the plans."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from tenure.telemetry.tables import EVENTS as OF_PLANS

ACTIONS: Final = ("bind", "nominate", "evict", "notice", "withdraw", "expire", "promise", "stale", "hold", "release")
RESULTS: Final = ("done", "refused", "skipped")

METRICS: Final = {
    "tenure_cycle_seconds": "Duration of a cycle, including its writes.",
    "tenure_decision_seconds": "Duration of observing and deciding in a cycle.",
    "tenure_writes_total": "Steps of plans that were written to the API server, by action and result.",
    "tenure_evictions_total": "Evictions that the API server accepted, by cause.",
    "tenure_kept_nodes": "Nodes that a taint keeps free for pods of another scheduler.",
    "tenure_leader": "Whether this replica leads.",
    "tenure_pending_workloads": "Workloads with pending tasks.",
    "tenure_watch_lists": "Lists that watches had to repeat.",
    "tenure_history_backlog": "Records of the history that are not written yet.",
    "tenure_history_dropped_records_total": "Records of the history that were dropped because too many waited.",
    "tenure_history_away": "Whether the store of the history is unavailable.",
    "tenure_events_dropped": "Events that were dropped: too many, or refused.",
    "tenure_faults_total": "Faults that affected only one object, by the stage at which they happened.",
    "tenure_set_aside_workloads": "Workloads that are set aside because deciding about them, or binding them, failed.",
    "tenure_refused_evictions": "Tasks that are left alone for a while because their eviction was refused.",
    "tenure_object_problems": "Problems found in objects.",
    "tenure_broken_watches": "Watches that are broken.",
}


class QueueMetric(NamedTuple):
    """A metric by queue: its labels are a queue (named, or ``other``), a cause, a resource."""

    name: str
    help: str
    kind: Literal["gauge", "counter"]
    labels: tuple[str, ...]


QUEUE_METRICS: Final = (
    QueueMetric("tenure_queue_allocated", "Allocated resources of a queue: GPUs, cores, bytes.", "gauge",
                ("queue", "resource")),
    QueueMetric("tenure_queue_guaranteed", "Guaranteed resources of a queue: GPUs, cores, bytes.", "gauge",
                ("queue", "resource")),
    QueueMetric("tenure_queue_pending_workloads", "Workloads of a queue with pending tasks.", "gauge", ("queue",)),
    QueueMetric("tenure_queue_evictions_total", "Evicted tasks of a queue, by cause.", "counter",
                ("queue", "cause")),
    QueueMetric("tenure_queue_lost_resource_seconds_total",
                "Work of a queue that evictions destroyed, by cause, in GPU-, core- and GiB-seconds.", "counter",
                ("queue", "cause", "resource")),
    QueueMetric("tenure_queue_caused_resource_seconds_total",
                "Work that was destroyed for a queue's workloads, by cause, in GPU-, core- and GiB-seconds.", "counter",
                ("queue", "cause", "resource")),
)  # fmt: skip
"""Metrics by queue; dashboards and alerts are made of these and of the other tables."""

EVENTS: Final = {
    "Started": "The whole core of the workload is bound.",
    "Promised": "Tasks of the workload are nominated to room that becomes free soon.",
    "HoleKept": "A node is kept free for pods that another scheduler binds, while other pods leave it.",
    "HoleFilled": "The workload has its place; the node is no longer kept for it.",
    "HoleGivenUp": "No node is kept any more: the time is over, or no move helps or is allowed.",
    "HoleRefused": "No node can be kept: a right or the admission policy is missing, or a write was refused.",
    "EvictionRefused": "The API server refused an eviction of the workload; it is left alone, and others are chosen.",
    "Invalid": "A value of the object cannot be read, or contradicts other values; it is not applied.",
}

ALL_EVENTS: Final = frozenset({*EVENTS, *OF_PLANS})
WARNINGS: Final = frozenset(
    {"CauseLoses",
     "Evicted", "EvictionNotice", "EvictionRefused", "HoleGivenUp", "HoleRefused", "Invalid", "InvalidSetting",
     "ShieldWithoutCheckpoints", "Unsupported", "QuotaPreemptionArmed", "QuotaPreemptionFired", "QuotaShortfall",
     "SearchExhausted"}
)  # fmt: skip
"""Events that are warnings."""
