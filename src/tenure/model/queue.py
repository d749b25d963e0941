"""Queues."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from tenure.model.fields.vocabulary import Duration, MilliAmounts, NameText, Priority, Time, Weight
from tenure.model.selectors import LabelSelector
from tenure.model.settings import MinRuntimeMode, PatienceRule, PatientCause

PreemptionPolicy = Literal["default", "fence", "disabled"]

DEFAULT_QUEUE_PRIORITY = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaStatus:
    """The armed deadline of quota preemption, with what it belongs to. Times in µs since the epoch, ``delay`` in µs."""

    armed_at: Time
    delay: Duration
    deadline: Time
    max: MilliAmounts = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueStatus:
    """The status of a queue, as the scheduler wrote it.

    ``usage``: decayed resource-seconds by resource, for time-based fairness, as they were at ``usage_at`` (µs since
    the epoch; unset: now). GPUs count in whole ones, CPU in cores.
    """

    quota_preemption: QuotaStatus | None = None
    usage: dict[str, float] = field(default_factory=dict)
    usage_at: Time | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """A node of the queue tree; workloads live in leaf queues only.

    Amounts are in the units of `tenure.model.values.resources`, GPUs in milli-GPU. A resource that is missing in
    ``max`` is unlimited, one missing in ``guaranteed`` is not guaranteed. Durations are in µs; ``None`` means unset,
    which is not the same as 0. ``weight`` is a number, or a map by resource. ``namespace_selector`` says which
    namespaces of a cluster may use it and the queues below it; unset: all.
    """

    name: NameText
    parent: NameText | None = None
    guaranteed: MilliAmounts = field(default_factory=dict)
    max: MilliAmounts = field(default_factory=dict)
    weight: Weight | dict[str, Weight] = 1.0
    priority: Priority = DEFAULT_QUEUE_PRIORITY
    preempt_min_runtime: Duration | None = None
    reclaim_min_runtime: Duration | None = None
    min_runtime_mode: MinRuntimeMode | None = None
    patience: dict[PatientCause, PatienceRule] = field(default_factory=dict)
    expected_runtime: Duration | None = None
    requeue_delay: Duration | None = None
    quota_preemption_delay: Duration | None = None
    preemption_policy: PreemptionPolicy = "default"
    max_eviction_notice: Duration | None = None
    eviction_notice: Duration | None = None
    max_opt_out: Duration | None = None
    namespace_selector: LabelSelector | None = None
    dynamic: bool = False
    created_at: Time | None = None
    status: QueueStatus | None = None

    def weight_of(self, resource: str) -> float:
        """Give the weight for one resource."""
        if isinstance(self.weight, dict):
            return self.weight.get(resource, 1.0)
        return self.weight
