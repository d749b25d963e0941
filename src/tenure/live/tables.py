"""What only the running scheduler tells: metrics of what came of plans, and events beside those of the plans."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from tenure.telemetry.tables import EVENTS as OF_PLANS

ACTIONS: Final = ("bind", "nominate", "evict", "notice", "withdraw", "expire", "promise", "stale", "hold", "release")
RESULTS: Final = ("done", "refused", "skipped")

METRICS: Final = {
    "tenure_cycle_seconds": "Length of a cycle, its writes included.",
    "tenure_decision_seconds": "Time that a cycle took to observe and to decide.",
    "tenure_writes_total": "Steps of plans on the API server, by action and by what came of them.",
    "tenure_evictions_total": "Evictions that the API server accepted, by cause.",
    "tenure_kept_nodes": "Nodes that are kept free by a taint for pods which another scheduler binds.",
    "tenure_leader": "Whether this replica leads.",
    "tenure_pending_workloads": "Workloads with tasks that wait.",
    "tenure_watch_lists": "How often something was listed anew, over all watches.",
    "tenure_history_backlog": "Records of the history that wait to be written.",
    "tenure_history_dropped_records": "Records of the history that were dropped because too many waited.",
    "tenure_history_away": "Whether the store of the history cannot be written.",
    "tenure_events_dropped": "Events that were not written: too many, or refused.",
    "tenure_faults_total": "Faults that cost nothing but what they were about, by where they happened.",
    "tenure_set_aside_workloads": "Workloads set aside: deciding about them failed, or their place was refused.",
    "tenure_object_problems": "How often something was found to be wrong with an object.",
    "tenure_broken_watches": "Watches that do not work.",
}


class QueueMetric(NamedTuple):
    """A metric by queue: its labels are a queue (named, or ``other``), a cause, a resource."""

    name: str
    help: str
    kind: Literal["gauge", "counter"]
    labels: tuple[str, ...]


QUEUE_METRICS: Final = (
    QueueMetric("tenure_queue_allocated", "What a queue is allocated: GPUs, cores, bytes.", "gauge",
                ("queue", "resource")),
    QueueMetric("tenure_queue_guaranteed", "What a queue is guaranteed.", "gauge", ("queue", "resource")),
    QueueMetric("tenure_queue_pending_workloads", "Workloads of a queue with tasks that wait.", "gauge", ("queue",)),
    QueueMetric("tenure_queue_evictions_total", "Tasks of a queue that were evicted, by cause.", "counter",
                ("queue", "cause")),
    QueueMetric("tenure_queue_lost_resource_seconds_total",
                "What evictions destroyed of a queue's work, by cause: seconds of GPUs, cores, GiB.", "counter",
                ("queue", "cause", "resource")),
    QueueMetric("tenure_queue_caused_resource_seconds_total",
                "What was destroyed for a queue's workloads, by cause: seconds of GPUs, cores, GiB.", "counter",
                ("queue", "cause", "resource")),
)  # fmt: skip
"""Metrics by queue; dashboards and alerts are made of these and of the other tables."""

EVENTS: Final = {
    "Started": "All of its core is bound.",
    "Promised": "Room that is about to be free is promised to its tasks.",
    "HoleKept": "A node is kept free for its pods, which another scheduler binds, until what is in the way has left.",
    "HoleFilled": "It has its place; the node that was kept for it is free for everybody again.",
    "HoleGivenUp": "No node is kept for it any more: its time is over, or no move helps or is allowed.",
    "HoleRefused": "No node can be kept for it: a right or the admission policy is missing, or a write was refused.",
    "Invalid": "Something that the object says cannot be read, or does not go with the rest; it is not applied.",
}

ALL_EVENTS: Final = frozenset({*EVENTS, *OF_PLANS})
WARNINGS: Final = frozenset(
    {"Evicted", "EvictionNotice", "HoleGivenUp", "HoleRefused", "Invalid", "InvalidSetting", "Unsupported",
     "QuotaPreemptionArmed", "QuotaPreemptionFired", "QuotaShortfall", "SearchExhausted"}
)  # fmt: skip
"""Events that are warnings."""
