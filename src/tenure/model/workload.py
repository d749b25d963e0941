"""Workloads, their subgroups and tasks."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Literal

from tenure.model.devices import DeviceUse, ExtendedRequest
from tenure.model.fields.containers import AmountsKind, PairsKind
from tenure.model.fields.kinds import ConstantKind
from tenure.model.fields.vocabulary import (
    Count,
    Duration,
    FieldKey,
    MilliAmounts,
    NameText,
    Ordinal,
    Priority,
    SignedDuration,
    Time,
)
from tenure.model.mounts import ClaimMount
from tenure.model.selectors import Affinity, HostPort, NodeSelector, SpreadConstraint, Toleration, Topology
from tenure.model.values.resources import Amounts, Labels, Pairs

PREEMPTIBLE_BELOW = 100
"""A workload of lower priority is preemptible unless it says otherwise."""

NODE_OWNERS = {"DaemonSet": "a DaemonSet", "Node": "the node itself"}
"""Kinds of owners whose pods belong to the node that they run on, and are never evicted; each as a sentence says it."""

DEFAULT_GRACE_PERIOD = 30_000_000
"""µs that a terminating task has, where it names no grace period."""

OPT_OUT = "yunikorn.apache.org/allow-preemption"
"""Annotation of a workload, a pod or its priority class that asks to be spared (``false``)."""

SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"
"""Annotation that asks to be spared (``false``)."""

DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"
"""Annotation that asks to be spared (``true``, or a duration: for so long after the start)."""

PREFER_NO_EVICTION = "descheduler.alpha.kubernetes.io/prefer-no-eviction"
"""Annotation that asks to be spared by being there, whatever it says but ``false``."""

SPARING = (OPT_OUT, SAFE_TO_EVICT, DO_NOT_DISRUPT, PREFER_NO_EVICTION)
"""Annotations of workloads and pods that ask to be spared."""

NEVER = "Never"
"""Policy of a workload for which nothing is evicted."""

ContenderPolicy = Literal["PreemptLowerPriority", "Never"]

SAVING = 1_000_000
"""How long, in µs, what makes checkpoints takes to make one when it is told to go; assumed where it is not measured."""


def remembered(evictions: int, last_evicted_at: int | None, now: int, span: int) -> int:
    """Give how often a workload was evicted; 0 from ``span`` (µs) after the last time on.

    Times are in µs since the epoch. ``span`` is `WorthSettings.forgotten_after`.
    """
    if not evictions or last_evicted_at is None or now - last_evicted_at >= span:
        return 0
    return evictions


class Phase(StrEnum):
    """Phase of a task."""

    PENDING = "Pending"
    GATED = "Gated"
    BOUND = "Bound"
    RUNNING = "Running"
    TERMINATING = "Terminating"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuShare:
    """A part of a GPU, of each of ``devices`` devices of one node.

    Either ``milli`` (1 to 1000 milli-GPU) or ``memory`` (bytes of the device's memory) is positive.
    """

    milli: int = 0
    memory: int = 0
    devices: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSpec:
    """The requests and constraints of a task. Tasks with equal specs are interchangeable.

    ``requests`` holds whole GPUs; a part of a GPU stands in ``gpu_share`` instead. ``unsupported`` names
    constraints that are not evaluated (some volumes): such a task is never placed. ``awaits`` names
    what it mounts and is not there yet: until it is, the task is not placed. ``features`` are what the kubelet of its
    node has to declare. ``volume_nodes`` are, for each of its volumes that not all nodes reach, those that do.
    ``claims`` are the claims that it mounts, by name in its namespace, and ``mounts`` what the cluster's storage makes
    of them; ``resource_claims`` are those of devices that it uses, and ``device_uses`` what becomes of these;
    ``counted`` is what their devices count for the queue, beside the requests and with GPUs in milli-GPU. ``extended``
    is what its containers ask for of extended resources.
    """

    requests: Annotated[Amounts, AmountsKind(pairs=True)] = ()
    gpu_share: GpuShare | None = None
    labels: Annotated[Pairs, PairsKind()] = ()
    node_selector: Annotated[Pairs, PairsKind()] = ()
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    spread: Annotated[tuple[SpreadConstraint, ...], FieldKey("topologySpreadConstraints")] = ()
    host_ports: tuple[HostPort, ...] = ()
    unsupported: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    volume_nodes: tuple[NodeSelector, ...] = ()
    awaits: tuple[str, ...] = ()
    claims: tuple[NameText, ...] = ()
    mounts: tuple[ClaimMount, ...] = ()
    resource_claims: tuple[NameText, ...] = ()
    device_uses: tuple[DeviceUse, ...] = ()
    counted: Amounts = ()
    extended: tuple[ExtendedRequest, ...] = ()

    @property
    def is_placeable(self) -> bool:
        """Whether nothing but room and its constraints decides whether it is placed."""
        return (
            not self.unsupported
            and not self.awaits
            and all(m.is_ready for m in self.mounts)
            and all(u.is_ready for u in self.device_uses)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Nomination:
    """A hole promised to a task since ``at`` (µs since the epoch)."""

    node: NameText
    devices: tuple[Ordinal, ...] = ()
    at: Time = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """An eviction that was announced ``at``: by ``deadline`` (both µs since the epoch), cause, beneficiary."""

    deadline: Time
    cause: str
    beneficiary: Annotated[str | None, FieldKey("for")] = None
    at: Time | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A pod. Times are µs since the epoch, durations µs. ``order``: lower starts first and leaves last.

    ``usage`` counts GPUs in milli-GPU. ``annotations`` are the task's own; those of its workload hold for it as well.
    Either all tasks of a workload have an ``order`` or none has.
    """

    name: NameText
    spec: TaskSpec = field(default_factory=TaskSpec)
    phase: Phase = Phase.PENDING
    node: NameText | None = None
    devices: tuple[Ordinal, ...] = ()
    sub_group: NameText | None = None
    order: Priority | None = None
    created_at: Time | None = None
    started_at: Time | None = None
    terminating_since: Time | None = None
    grace_period: Duration | None = None
    nominated: Nomination | None = None
    notice: Notice | None = None
    ready: bool = True
    role: str | None = None
    never_terminates: Annotated[bool, FieldKey("terminates"), ConstantKind("never")] = False
    usage: MilliAmounts | None = None
    usage_for: Duration | None = None
    annotations: Labels = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SubGroup:
    """A node of the tree of subgroups: a leaf has ``min_member``, an inner one ``sub_groups`` and ``min_sub_group``.

    ``min_member`` ``None`` means all tasks of the group, ``min_sub_group`` ``None`` all of its subgroups; 0: the
    workload starts without it.
    """

    name: NameText
    min_member: Ordinal | None = None
    sub_groups: tuple[SubGroup, ...] = ()
    min_sub_group: Ordinal | None = None
    topology: Topology | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """The checkpoints of a workload, as the workload reports them.

    Durations in µs, ``last_at`` in µs since the epoch.
    """

    interval: Duration | None = None
    last_at: Time | None = None
    restart_overhead: Duration = 0

    @property
    def made(self) -> bool:
        """Whether it makes any: one that only says what a restart takes makes none."""
        return self.interval is not None or self.last_at is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """The unit of scheduling: tasks that start together, identified by namespace and name.

    Times are µs since the epoch, durations µs; ``None`` means unset. ``tasks`` are in the order in which they start.
    ``min_member`` ``None`` means all tasks. ``scheduler_name`` other than ``tenure`` marks pods of another scheduler:
    they hold room on their nodes, belong to no queue and are never touched. Until ``awaits_nodes_until`` nodes are on
    their way for it, and nothing is evicted for it.
    """

    name: NameText
    namespace: NameText = "default"
    uid: str = ""
    queue: str = ""
    priority: Priority = 0
    preemptible: bool | None = None
    min_member: Count | None = None
    tasks: tuple[Task, ...] = ()
    sub_groups: tuple[SubGroup, ...] = ()
    min_sub_group: Count | None = None
    topology: Topology | None = None
    staleness_grace_period: SignedDuration | None = None
    created_at: Time = 0
    started_at: Time | None = None
    last_evicted_at: Time | None = None
    evictions: Ordinal = 0
    stale_since: Time | None = None
    expected_runtime: Duration | None = None
    requeue_delay: Duration | None = None
    requeue_not_before: Time | None = None
    preemption_delay: Duration | None = None
    awaits_nodes_until: Time | None = None
    checkpoint: Checkpoint | None = None
    preemption_policy: ContenderPolicy | None = None
    allow_preemption: bool = True
    allow_preemption_until: Time | None = None
    eviction_notice: Duration | None = None
    owner_kind: str | None = None
    scheduler_name: str = "tenure"
    labels: Labels = field(default_factory=dict)
    annotations: Labels = field(default_factory=dict)

    @property
    def key(self) -> str:
        """Namespace and name, the workload's identity."""
        return f"{self.namespace}/{self.name}"

    @property
    def core(self) -> int:
        """How many of its tasks have to run together, where no subgroups say so; it may have fewer as yet."""
        return len(self.tasks) if self.min_member is None else self.min_member

    @property
    def least(self) -> int:
        """How many tasks of those that it has make it run: its core, one where nothing has to run together."""
        return max(1, min(self.core, len(self.tasks)))

    def times_evicted(self, now: int, span: int) -> int:
        """Give how often it lost all that it ran to an eviction, as far as that is remembered; see `remembered`."""
        return remembered(self.evictions, self.last_evicted_at, now, span)

    @property
    def asks_to_be_spared(self) -> bool:
        """Whether anything of it asks for it, for whatever time."""
        if not self.allow_preemption or (self.annotations and not self.annotations.keys().isdisjoint(SPARING)):
            return True
        return any(
            t.role is not None or (t.annotations and not t.annotations.keys().isdisjoint(SPARING)) for t in self.tasks
        )

    @property
    def is_preemptible(self) -> bool:
        """Whether it says that it may be evicted, else whether its priority does; what belongs to its nodes may not."""
        if self.owner_kind in NODE_OWNERS:
            return False
        return self.priority < PREEMPTIBLE_BELOW if self.preemptible is None else self.preemptible
