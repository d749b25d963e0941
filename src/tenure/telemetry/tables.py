"""The fixed tables: every metric with its labels and their values, and every reason of an event.

An exporter and the documentation are made from these. Label values come from fixed sets: never names, never times.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tenure.model.settings import CAUSES
from tenure.nominators.contract import REASONS
from tenure.nominators.registry import BUILT_IN

OTHER = "other"
"""Stands for a nominator of another package: what these are called is not known here."""

PLUGINS = (*BUILT_IN, OTHER)
ACTIONS = ("bind", "nominate", "evict", "notice", "withdraw")
RESULTS = ("committed", "rolled_back")
QUOTA_STATES = ("armed", "waiting", "firing", "stuck")
QUOTA_KINDS = ("armed", "moved", "cleared", "fired")


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric: ``labels`` are its labels in order, each with all values that it can have."""

    name: str
    help: str
    kind: Literal["counter", "gauge"]
    labels: tuple[tuple[str, tuple[str, ...]], ...] = ()


METRICS = (
    Metric("tenure_cycles_total", "Cycles that were decided.", "counter"),
    Metric("tenure_plan_steps_total", "Steps of plans, by what they do.", "counter", (("action", ACTIONS),)),
    Metric(
        "tenure_planned_evictions_total", "Tasks that plans evict, by cause; those under notice count when they go.",
        "counter", (("cause", CAUSES),),
    ),
    Metric("tenure_notices_total", "Tasks that were told that they have to go.", "counter", (("cause", CAUSES),)),
    Metric("tenure_notices_withdrawn_total", "Tasks told to go that may stay.", "counter", (("cause", CAUSES),)),
    Metric("tenure_shadow_evictions_total", "Tasks that shadow would evict.", "counter", (("cause", CAUSES),)),
    Metric(
        "tenure_search_exhausted_total", "Searches for victims that search.maxScenarios cut off.", "counter",
        (("cause", CAUSES),),
    ),
    Metric(
        "tenure_requeue_nominations_total", "Workloads that could give way, by the plugin that says so.", "counter",
        (("plugin", PLUGINS),),
    ),
    Metric(
        "tenure_requeue_nomination_skipped_total", "Workloads that a plugin does not nominate, and why.", "counter",
        (("plugin", PLUGINS), ("reason", REASONS)),
    ),
    Metric(
        "tenure_requeue_transactions_total", "Candidates that were sent back to the queue, or run on.", "counter",
        (("result", RESULTS),),
    ),
    Metric("tenure_quota_events_total", "What happened to armed queues.", "counter", (("event", QUOTA_KINDS),)),
    Metric("tenure_unknown_starts", "Workloads that run, and nobody knows since when: nothing protects them.", "gauge"),
    Metric("tenure_noticed_tasks", "Tasks that run and were told that they have to go.", "gauge"),
    Metric("tenure_quota_queues", "Queues over their max, by state.", "gauge", (("state", QUOTA_STATES),)),
    Metric("tenure_quota_shortfall_queues", "Queues whose max cannot be enforced now.", "gauge"),
    Metric("tenure_quota_exhausted_queues", "Queues whose best victims were not all looked at.", "gauge"),
)  # fmt: skip
"""All metrics of a cycle."""

EVENTS = {
    "Nominated": "It has outstayed what it announced, or another nominator names it: it gives way if that helps.",
    "Requeued": "It goes back to the queue for somebody more deserving.",
    "Evicted": "It is evicted: why, and for whom.",
    "EvictionNotice": "It is told that it will be evicted, and by when.",
    "NoticeWithdrawn": "It was told that it will be evicted, and may stay.",
    "WouldEvict": "A cause in shadow would evict it.",
    "InvalidSetting": "A setting of its owner is wrong, and is not applied.",
    "Unsupported": "It asks for what is not evaluated here, so it is not placed.",
    "UnknownStart": "It runs, and nobody knows since when: minimum runtime does not protect it.",
    "QuotaPreemptionArmed": "The queue uses more than its max; from the deadline on, work is evicted.",
    "QuotaPreemptionMoved": "The queue's deadline has moved with its delay.",
    "QuotaPreemptionCleared": "The queue is within its max again, or is not to be brought under it any more.",
    "QuotaPreemptionFired": "Work of the queue is evicted because its deadline has passed.",
    "QuotaShortfall": "The queue cannot be brought under its max now, and what blocks that.",
    "SearchExhausted": "The search for victims was cut off and goes on in the next cycle.",
}
"""Every reason of an event, and what it says."""
