"""The scheduler's settings: one schema for a cluster file, the scheduler's own file and a node pool.

Durations are in µs. Defaults are those of the documentation; every field has one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE

Cause = Literal["stale-gang", "quota", "reclaim", "preempt", "requeue", "consolidate", "reschedule"]
Action = Literal["stale-gang", "quota", "allocate", "consolidate", "reclaim", "preempt", "requeue", "reschedule"]
Mode = Literal["enforce", "shadow", "off"]
Policy = Literal["binpack", "spread", "fragmentation"]

DEFAULT_ACTIONS: tuple[Action, ...] = (
    "stale-gang", "quota", "allocate", "consolidate", "reclaim", "preempt", "requeue", "reschedule",
)  # fmt: skip
DEFAULT_APPLIES_TO: tuple[Cause, ...] = (
    "reclaim",
    "preempt",
    "requeue",
    "consolidate",
    "reschedule",
    "quota",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MinRuntimeSettings:
    """How minimum runtime is resolved, when its clock starts, and which causes respect it."""

    method: Literal["lca", "queue"] = "lca"
    starts_at: Literal["allocated", "running"] = "allocated"
    applies_to: tuple[Cause, ...] = DEFAULT_APPLIES_TO


@dataclass(frozen=True, slots=True, kw_only=True)
class RequeueSettings:
    """Whom a requeue may serve, and how many candidates it may take together."""

    contenders: Literal["more-deserving", "any"] = "more-deserving"
    max_candidates: int = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaPreemptionSettings:
    """Whether and how a lowered maximum is enforced on running work."""

    enabled: bool = False
    inherit: bool = True
    overshoot: Literal["minimal", "never"] = "minimal"
    max_evictions_per_cycle: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HistorySettings:
    """Time-based fairness: usage decays by ``half_life`` (µs) and counts with ``strength``."""

    half_life: int = 24 * HOUR
    strength: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FairnessSettings:
    """``history`` ``None``: shares do not look back."""

    history: HistorySettings | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchSettings:
    """Bounds of the victim search, in steps."""

    max_scenarios: int = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetRule:
    """One disruption SLO; every key is optional but the name. Durations in µs; percentages stay text.

    ``max_lost`` is in resource-µs by resource.
    """

    name: str
    namespace: str | None = None
    selector: dict[str, object] | None = None
    queue: str | None = None
    side: Literal["victim", "beneficiary"] = "victim"
    each: Literal["workload"] | None = None
    causes: tuple[Cause, ...] | None = None
    max_evictions: int | None = None
    per: int | None = None
    max_unavailable: int | str | None = None
    min_available: int | str | None = None
    max_lost: dict[str, int] | None = None
    schedule: str | None = None
    duration: int | None = None
    time_zone: str = "UTC"


@dataclass(frozen=True, slots=True, kw_only=True)
class DisruptionSettings:
    """What an eviction costs, and how many there may be.

    ``cost`` is by resource, per whole GPU, per core, else per unit, and second.
    """

    cost: dict[str, float] = field(default_factory=lambda: {"nvidia.com/gpu": 1.0, "cpu": 0.05})
    assumed_checkpoint: int | None = None
    max_restart_overhead: int = 10 * MINUTE
    budgets: tuple[BudgetRule, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactSettings:
    """Bounds of the exact planner."""

    enabled: bool = True
    node_limit: int = 10_000
    time_limit: int = 60 * SECOND


@dataclass(frozen=True, slots=True, kw_only=True)
class BackgroundSettings:
    """Improvement in the background; ``interval`` ``None`` switches it off."""

    interval: int | None = None
    objective: dict[str, float] = field(default_factory=lambda: {"placement": 1.0})
    min_gain: float = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class HotNodeSettings:
    """When a node counts as hot. ``hot`` is a share of its capacity."""

    enabled: bool = False
    hot: float = 0.9
    for_: int = 5 * MINUTE


@dataclass(frozen=True, slots=True, kw_only=True)
class NewNodeSettings:
    """How long a node counts as new."""

    enabled: bool = False
    within: int = HOUR


@dataclass(frozen=True, slots=True, kw_only=True)
class ReschedulerSettings:
    """When running tasks are moved, and how."""

    pending_for: int = MINUTE
    settle: int = HOUR
    moves: Literal["evict-first", "reserve-first"] = "evict-first"
    exact: ExactSettings = field(default_factory=ExactSettings)
    background: BackgroundSettings = field(default_factory=BackgroundSettings)
    hot_nodes: HotNodeSettings = field(default_factory=HotNodeSettings)
    new_nodes: NewNodeSettings = field(default_factory=NewNodeSettings)


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleSettings:
    """The nominator of workloads whose GPUs stay idle. ``below`` is a share."""

    enabled: bool = False
    below: float = 0.05
    for_: int = HOUR


@dataclass(frozen=True, slots=True, kw_only=True)
class NominatorSettings:
    """Nominators beside `expected-runtime`."""

    over_share: bool = False
    idle: IdleSettings = field(default_factory=IdleSettings)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything under ``scheduler:``. ``placement`` is one policy, or weights by policy."""

    actions: tuple[Action, ...] = DEFAULT_ACTIONS
    placement: Policy | dict[Policy, float] = "binpack"
    backfill: Literal["none", "easy"] = "none"
    preempt_min_runtime: int = 0
    reclaim_min_runtime: int = 0
    min_runtime: MinRuntimeSettings = field(default_factory=MinRuntimeSettings)
    expected_runtime: int | None = None
    requeue_delay: int = 10 * MINUTE
    requeue: RequeueSettings = field(default_factory=RequeueSettings)
    preemption_delay: int = 0
    eviction_notice: int = 0
    modes: dict[Cause, Mode] = field(default_factory=dict)
    nomination_timeout: int = 5 * MINUTE
    staleness_grace_period: int = 60 * SECOND
    max_consolidated_workloads: int = 16
    quota_preemption: QuotaPreemptionSettings = field(default_factory=QuotaPreemptionSettings)
    fairness: FairnessSettings = field(default_factory=FairnessSettings)
    victims: Literal["cost", "youngest", "oldest"] = "cost"
    search: SearchSettings = field(default_factory=SearchSettings)
    disruption: DisruptionSettings = field(default_factory=DisruptionSettings)
    rescheduler: ReschedulerSettings = field(default_factory=ReschedulerSettings)
    nominators: NominatorSettings = field(default_factory=NominatorSettings)
