"""A cluster at one moment: the content of a cluster file, of a snapshot, and the start of a simulation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from tenure.model.devices import DeviceInventory
from tenure.model.fields.containers import ListKind
from tenure.model.fields.kinds import CountOrPercent, DurationKind
from tenure.model.fields.vocabulary import Duration, FieldKey, NameText, Time, WeightedSeconds
from tenure.model.node import Node
from tenure.model.queue import Queue
from tenure.model.selectors import LabelSelector
from tenure.model.settings import PatientCause, Settings
from tenure.model.values.resources import Labels
from tenure.model.volumes import Storage, VolumeAttachment
from tenure.model.workload import Workload

DEFAULT_QUEUE = "default"
"""The queue of workloads that name none; it exists without being written down when no queue is configured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DisruptionBudget:
    """A PodDisruptionBudget.

    One of ``min_available`` and ``max_unavailable`` is set: a count, or a percentage as text. ``blocked_since`` (µs
    since the epoch) is since when it has allowed no eviction, as Kubernetes says; unset: it allows one, or is new.
    """

    name: NameText
    namespace: NameText = "default"
    selector: LabelSelector = field(default_factory=LabelSelector)
    min_available: Annotated[int | str | None, CountOrPercent()] = None
    max_unavailable: Annotated[int | str | None, CountOrPercent()] = None
    blocked_since: Time | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedEviction:
    """A task whose eviction the API server refused: until when nothing of the kind is tried again, and why.

    ``workload`` is namespace/name, ``until`` in µs since the epoch.
    """

    workload: str
    task: str
    until: Time
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Eviction:
    """A line of the eviction log. ``at`` in µs since the epoch; workloads as namespace/name.

    ``queue`` and ``beneficiary_queue`` are the leaf queues at that time, ``lost`` is in resource-µs by resource: what
    the ledger needs once the workloads have gone.
    """

    at: Time
    workload: str
    task: str
    cause: str
    beneficiary: Annotated[str | None, FieldKey("for")] = None
    from_node: Annotated[str | None, FieldKey("from")] = None
    to_node: Annotated[str | None, FieldKey("to")] = None
    labels: Labels = field(default_factory=dict)
    queue: str | None = None
    beneficiary_queue: Annotated[str | None, FieldKey("forQueue")] = None
    lost: dict[str, Duration] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EvictionOutcome:
    """What evictions of one cause came to, of which that became known by ``at`` (µs since the epoch).

    ``lost`` is what the victims lost and ``gained`` what the beneficiaries had of it, in weighted resource-seconds.
    """

    at: Time
    cause: PatientCause
    lost: WeightedSeconds = 0
    gained: WeightedSeconds = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedRuns:
    """For how long workloads ran that have finished, in µs, the last one last: all of a queue, or a user's in it."""

    queue: NameText
    user: NameText | None = None
    ran: Annotated[tuple[Duration, ...], ListKind(DurationKind(), most=10_000)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Namespace:
    """The labels of a namespace, for terms that choose namespaces by their labels.

    Every namespace has its name as ``kubernetes.io/metadata.name``, whether it is listed or not.
    """

    name: NameText
    labels: Labels = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """A cluster at one moment, with everything that a decision depends on. ``now`` in µs since the epoch."""

    now: Time
    settings: Settings = field(default_factory=Settings)
    nodes: tuple[Node, ...] = ()
    queues: tuple[Queue, ...] = ()
    workloads: tuple[Workload, ...] = ()
    disruption_budgets: tuple[DisruptionBudget, ...] = ()
    evictions: tuple[Eviction, ...] = ()
    refused_evictions: tuple[RefusedEviction, ...] = ()
    outcomes: tuple[EvictionOutcome, ...] = ()
    finished_runs: tuple[FinishedRuns, ...] = ()
    namespaces: tuple[Namespace, ...] = ()
    storage: Storage = field(default_factory=Storage)
    attachments: tuple[VolumeAttachment, ...] = ()
    devices: DeviceInventory = field(default_factory=DeviceInventory)
