"""The scheduler's settings: one schema for a cluster file, the scheduler's own file and a node pool.

Durations are in µs. Defaults are those of the documentation; every field has one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal, get_args

from tenure.model.fields.containers import ListKind, MapKind, OneOrMap
from tenure.model.fields.kinds import ChoiceKind, CountOrPercent, NameKind, NumberKind
from tenure.model.fields.vocabulary import (
    Count,
    Duration,
    FieldKey,
    MilliAmounts,
    NameText,
    Ordinal,
    PositiveDuration,
    Priority,
    ResourceNames,
    Share,
    SignedDuration,
    Weight,
)
from tenure.model.selectors import LabelSelector

SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE

Cause = Literal["stale-gang", "quota", "reclaim", "preempt", "requeue", "consolidate", "reschedule"]
CAUSES: tuple[Cause, ...] = get_args(Cause)
Action = Literal["stale-gang", "quota", "allocate", "consolidate", "reclaim", "preempt", "requeue", "reschedule"]
Mode = Literal["enforce", "shadow", "off"]
Policy = Literal["binpack", "spread", "fragmentation"]
POLICIES: tuple[Policy, ...] = get_args(Policy)
MinRuntimeMode = Literal["shield", "price"]
MIN_RUNTIME_MODES: tuple[MinRuntimeMode, ...] = get_args(MinRuntimeMode)
PatientCause = Literal["reclaim", "preempt", "requeue", "consolidate"]
PATIENT_CAUSES: tuple[PatientCause, ...] = get_args(PatientCause)
Objective = Literal["placement", "pack", "spread"]
OBJECTIVES: tuple[Objective, ...] = get_args(Objective)

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
    """The settings of minimum runtime: what it does and for which causes, how it is resolved, when its clock starts.

    ``mode`` is one, or one by cause; for a cause that a mapping leaves out it is a shield.
    """

    mode: Annotated[
        MinRuntimeMode | dict[Cause, MinRuntimeMode],
        OneOrMap(ChoiceKind(MIN_RUNTIME_MODES), MapKind(ChoiceKind(MIN_RUNTIME_MODES), ChoiceKind(CAUSES))),
    ] = "shield"
    method: Literal["lca", "queue"] = "lca"
    starts_at: Literal["allocated", "running"] = "allocated"
    applies_to: Annotated[tuple[Cause, ...], ListKind(ChoiceKind(CAUSES), distinct=True)] = DEFAULT_APPLIES_TO


@dataclass(frozen=True, slots=True, kw_only=True)
class PatienceRule:
    """How long a contender waits before others are evicted for it.

    Until ``factor`` times its waiting, in weighted resources times time, is worth what the eviction costs; ``at_most``
    so long: two days unless set, and by requeue without an end. ``ahead`` is what it counts as waiting beyond what it
    has waited. Durations in µs. ``surplus`` is the share that counts of a wait for what a queue would have beyond its
    guaranteed, by reclaim. ``trust`` says how far an estimate of its start is believed: at 0 not at all.
    """

    factor: Weight = 0.25
    ahead: Duration = 20 * MINUTE
    at_most: Duration | None = None
    surplus: Share = 0.25
    trust: Share = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingWeight:
    """What a second of waiting counts, for contenders of a queue and those below it, from a priority on."""

    queue: str | None = None
    min_priority: Priority | None = None
    weight: Weight


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerSettings:
    """Whether a cause of evictions pauses that lost more than was gained by them, in every ``window`` (µs)."""

    enabled: bool = False
    window: PositiveDuration = 24 * HOUR


@dataclass(frozen=True, slots=True, kw_only=True)
class SurvivalSettings:
    """Whether it is estimated by finished runs how long workloads go on; ``least`` have to be longer."""

    enabled: bool = False
    least: Count = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class LossSettings:
    """The most that may be lost to evictions in every ``window`` (µs) before what loses is protected; 0: no bound.

    ``workload`` is a share of the window, for all that the workload asks for, and is about what was lost beyond its
    first eviction in the window; ``queue`` is a share of what the whole cluster could have done in it.
    """

    workload: Share = 0.75
    queue: Share = 0.25
    window: PositiveDuration = 24 * HOUR


@dataclass(frozen=True, slots=True, kw_only=True)
class WorthSettings:
    """The settings for what an eviction has to be worth.

    Of ``weights`` the first that applies counts, else 1. ``repeat_factor``: by how many times what it costs an eviction
    is dearer for each earlier one. ``max_evictions`` 0: a workload may be evicted any number of times.
    ``forgotten_after`` is counted from its last eviction.
    """

    patience: dict[PatientCause, PatienceRule] = field(default_factory=dict)
    weights: tuple[WaitingWeight, ...] = ()
    repeat_factor: Weight = 0.0
    max_evictions: Ordinal = 32
    forgotten_after: PositiveDuration = 24 * HOUR
    max_lost: LossSettings = field(default_factory=LossSettings)
    breaker: BreakerSettings = field(default_factory=BreakerSettings)
    survival: SurvivalSettings = field(default_factory=SurvivalSettings)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequeueSettings:
    """The settings of requeue: which contenders it may serve, which candidates come first, and how many together."""

    contenders: Literal["more-deserving", "any"] = "more-deserving"
    order: Literal["overdue", "cost"] = "overdue"
    max_candidates: Count = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaPreemptionSettings:
    """The settings for whether and how a lowered maximum is enforced on running work."""

    enabled: bool = False
    inherit: bool = True
    overshoot: Literal["minimal", "never"] = "minimal"
    max_evictions_per_cycle: Count | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HistorySettings:
    """Time-based fairness: usage decays by ``half_life`` (µs) and counts with ``strength``."""

    half_life: PositiveDuration = 24 * HOUR
    strength: Weight = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FairnessSettings:
    """``history`` ``None``: shares do not look back."""

    history: HistorySettings | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchSettings:
    """Bounds of the victim search, in steps."""

    max_scenarios: Count = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetRule:
    """A disruption budget (SLO); every key is optional but the name. Durations in µs; percentages stay text.

    ``max_lost`` is in resource-µs by resource.
    """

    name: str
    namespace: str | None = None
    selector: LabelSelector | None = None
    queue: str | None = None
    side: Literal["victim", "beneficiary"] = "victim"
    each: Literal["workload"] | None = None
    causes: tuple[Cause, ...] | None = None
    max_evictions: Ordinal | None = None
    per: PositiveDuration | None = None
    max_unavailable: Annotated[int | str | None, CountOrPercent()] = None
    min_available: Annotated[int | str | None, CountOrPercent()] = None
    max_lost: dict[str, Duration] | None = None
    schedule: str | None = None
    duration: PositiveDuration | None = None
    time_zone: str = "UTC"


@dataclass(frozen=True, slots=True, kw_only=True)
class DisruptionSettings:
    """The settings for what an eviction costs, and for how many there may be.

    ``cost`` is by resource, per whole GPU, per core, else per unit, and second. ``max_opt_out`` holds for queues that
    set none, and none is set above.
    """

    cost: dict[str, Weight] = field(default_factory=lambda: {"nvidia.com/gpu": 1.0, "cpu": 0.05})
    assumed_checkpoint: PositiveDuration | None = None
    max_restart_overhead: Duration = 10 * MINUTE
    max_grace_period: PositiveDuration = 60 * MINUTE
    max_opt_out: Duration = 7 * 24 * HOUR
    budgets: tuple[BudgetRule, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactSettings:
    """Bounds of the exact planner.

    ``effort`` and ``time_limit`` (µs) are shared by all plans of a cycle, ``node_limit`` holds for each of them.
    """

    enabled: bool = True
    node_limit: Count = 10_000
    effort: Count = 500_000
    time_limit: PositiveDuration = 60 * SECOND


@dataclass(frozen=True, slots=True, kw_only=True)
class BackgroundSettings:
    """Improvement in the background; ``interval`` ``None`` switches it off.

    ``objective`` is one, or weights by objective. ``min_gain`` is in weighted resources for each weighted
    resource-second of disruption: the gain pays within 1 / ``min_gain`` seconds.
    """

    interval: PositiveDuration | None = None
    objective: Annotated[
        Objective | dict[Objective, float],
        OneOrMap(ChoiceKind(OBJECTIVES), MapKind(NumberKind(), ChoiceKind(OBJECTIVES))),
    ] = field(default_factory=lambda: {"placement": 1.0})
    min_gain: Weight = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class HotNodeSettings:
    """When a node counts as hot. ``hot`` is a share of its capacity."""

    enabled: bool = False
    hot: Share = 0.9
    for_: Duration = 5 * MINUTE


@dataclass(frozen=True, slots=True, kw_only=True)
class NewNodeSettings:
    """The settings for how long a node counts as new."""

    enabled: bool = False
    within: Duration = HOUR


@dataclass(frozen=True, slots=True, kw_only=True)
class ReschedulerSettings:
    """When running tasks are moved, and how. ``schedulers``: others whose pods may be moved as well."""

    schedulers: Annotated[tuple[NameText, ...], ListKind(NameKind(), distinct=True)] = ()
    pending_for: Duration = MINUTE
    settle: Duration = HOUR
    moves: Literal["evict-first", "reserve-first"] = "evict-first"
    exact: ExactSettings = field(default_factory=ExactSettings)
    background: BackgroundSettings = field(default_factory=BackgroundSettings)
    hot_nodes: HotNodeSettings = field(default_factory=HotNodeSettings)
    new_nodes: NewNodeSettings = field(default_factory=NewNodeSettings)


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleSettings:
    """The nominator of workloads whose GPUs stay idle. ``below`` is a share."""

    enabled: bool = False
    below: Share = 0.05
    for_: Duration = HOUR


@dataclass(frozen=True, slots=True, kw_only=True)
class NominatorSettings:
    """Nominators beside `expected-runtime`."""

    over_share: Annotated[bool, FieldKey("over-share")] = False
    idle: IdleSettings = field(default_factory=IdleSettings)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingSettings:
    """Whose a workload is, in the history: the labels that name its team and its user.

    Without ``team_label`` the team is the queue at the top; without ``user_label`` no user is written.
    """

    team_label: str | None = None
    user_label: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings under ``scheduler:``. ``placement`` is one policy, or weights by policy."""

    actions: Annotated[tuple[Action, ...], ListKind(ChoiceKind(DEFAULT_ACTIONS), distinct=True)] = DEFAULT_ACTIONS
    placement: Annotated[
        Policy | dict[Policy, float],
        OneOrMap(ChoiceKind(POLICIES), MapKind(NumberKind(), ChoiceKind(POLICIES))),
    ] = "binpack"
    backfill: Literal["none", "easy"] = "none"
    preempt_min_runtime: Duration = 0
    reclaim_min_runtime: Duration = 0
    min_runtime: MinRuntimeSettings = field(default_factory=MinRuntimeSettings)
    expected_runtime: Duration | None = None
    requeue_delay: Duration = 10 * MINUTE
    requeue: RequeueSettings = field(default_factory=RequeueSettings)
    preemption_delay: Duration = 0
    eviction_notice: Duration = 0
    modes: dict[Cause, Mode] = field(default_factory=dict)
    nomination_timeout: Duration = 5 * MINUTE
    staleness_grace_period: SignedDuration = 60 * SECOND
    max_consolidated_workloads: Ordinal = 16
    quota_preemption: QuotaPreemptionSettings = field(default_factory=QuotaPreemptionSettings)
    fairness: FairnessSettings = field(default_factory=FairnessSettings)
    victims: Literal["cost", "youngest", "oldest"] = "cost"
    worth: WorthSettings = field(default_factory=WorthSettings)
    search: SearchSettings = field(default_factory=SearchSettings)
    disruption: DisruptionSettings = field(default_factory=DisruptionSettings)
    rescheduler: ReschedulerSettings = field(default_factory=ReschedulerSettings)
    nominators: NominatorSettings = field(default_factory=NominatorSettings)
    history: RecordingSettings = field(default_factory=RecordingSettings)
    device_classes: dict[str, MilliAmounts] = field(default_factory=dict)
    device_resources: dict[ResourceNames, MilliAmounts] = field(default_factory=dict)
    device_binding_timeout: Duration = 10 * MINUTE
