"""The fixed tables: every metric with its labels and their values, and every reason of an event.

An exporter and the documentation are made from these. Label values come from fixed sets: never names, never times.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tenure.model.settings import CAUSES, PATIENT_CAUSES
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
    Metric("tenure_plan_steps_total", "Steps of plans, by action.", "counter", (("action", ACTIONS),)),
    Metric(
        "tenure_planned_evictions_total", "Tasks that plans evict, by cause; those under notice count once evicted.",
        "counter", (("cause", CAUSES),),
    ),
    Metric("tenure_notices_total", "Tasks that got an eviction notice.", "counter", (("cause", CAUSES),)),
    Metric("tenure_notices_withdrawn_total", "Eviction notices that were withdrawn.", "counter", (("cause", CAUSES),)),
    Metric(
        "tenure_shadow_evictions_total", "Tasks that a cause in shadow would evict.", "counter", (("cause", CAUSES),),
    ),
    Metric(
        "tenure_search_exhausted_total", "Searches for victims that search.maxScenarios cut off.", "counter",
        (("cause", CAUSES),),
    ),
    Metric(
        "tenure_requeue_nominations_total", "Workloads that were nominated for requeue, by nominator.", "counter",
        (("plugin", PLUGINS),),
    ),
    Metric(
        "tenure_requeue_nomination_skipped_total", "Workloads that a nominator skipped, and why.", "counter",
        (("plugin", PLUGINS), ("reason", REASONS)),
    ),
    Metric(
        "tenure_requeue_transactions_total", "Candidates that were requeued, or that run on.", "counter",
        (("result", RESULTS),),
    ),
    Metric("tenure_quota_events_total", "Events of armed queues.", "counter", (("event", QUOTA_KINDS),)),
    Metric(
        "tenure_lost_weighted_seconds", "What evictions lost within worth.breaker.window, as far as it is known.",
        "gauge", (("cause", PATIENT_CAUSES),),
    ),
    Metric(
        "tenure_gained_weighted_seconds", "What was gained by these evictions.", "gauge", (("cause", PATIENT_CAUSES),),
    ),
    Metric("tenure_unknown_starts", "Workloads with an unknown start: no minimum runtime protects them.", "gauge"),
    Metric("tenure_noticed_tasks", "Tasks that run under an eviction notice.", "gauge"),
    Metric("tenure_quota_queues", "Queues over their max, by state.", "gauge", (("state", QUOTA_STATES),)),
    Metric("tenure_quota_shortfall_queues", "Queues whose max cannot be enforced at present.", "gauge"),
    Metric("tenure_quota_exhausted_queues", "Queues for which the search for the best victims was cut off.", "gauge"),
)  # fmt: skip
"""All metrics of a cycle."""

EVENTS = {
    "Nominated": "A nominator, such as expected-runtime, names the workload: it is requeued if that helps.",
    "Requeued": "The workload is requeued for a more deserving workload.",
    "Evicted": "Tasks of the workload are evicted; the message says why, and for which workload.",
    "EvictionNotice": "Tasks of the workload will be evicted; the message says by when.",
    "NoticeWithdrawn": "An eviction notice was withdrawn; the tasks run on.",
    "WouldEvict": "A cause in shadow would evict tasks of the workload.",
    "InvalidSetting": "A setting of the workload is wrong and is not applied.",
    "Unsupported": "The workload asks for something that Tenure does not evaluate; it is not placed.",
    "UnknownStart": "The start of the workload is unknown, so no minimum runtime protects it.",
    "ShieldWithoutCheckpoints": "A minimum runtime shields workloads of the queue whose checkpoints are not known.",
    "CauseLoses": "Evictions by a cause lost more than was gained; the message says whether it is paused for that.",
    "QuotaPreemptionArmed": "The queue uses more than its max; after the deadline, tasks are evicted.",
    "QuotaPreemptionMoved": "The queue's deadline has moved with its delay.",
    "QuotaPreemptionCleared": "The queue is within its max again, or no longer has to be brought under it.",
    "QuotaPreemptionFired": "Tasks of the queue are evicted because its deadline has passed.",
    "QuotaShortfall": "The queue cannot be brought under its max at present; the message says what blocks it.",
    "SearchExhausted": "The search for victims was cut off and continues in the next cycle.",
}
"""Every reason of an event, and what it says."""
