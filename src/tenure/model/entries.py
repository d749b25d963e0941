"""The entries of a cluster file as they are written, with what only files have: ``count``, ``replicas``, short forms.

Each entry is read into the values that are there; `tenure.model.file.expand` makes nodes, workloads and tasks of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from tenure.model.cluster import Cluster, DisruptionBudget, Eviction, EvictionOutcome, FinishedRuns, Namespace
from tenure.model.devices import DeviceClaim, DeviceClass, DeviceSlice
from tenure.model.fields.containers import ListKind, QuantityKind
from tenure.model.fields.kinds import ChoiceKind, IntegerKind, ValueKind
from tenure.model.fields.records import RecordField, RecordKind, fields_of, kind_of, record_of
from tenure.model.fields.vocabulary import Bytes, Count, Ordinal
from tenure.model.node import Node
from tenure.model.queue import Queue
from tenure.model.selectors import HostPort
from tenure.model.settings import Settings
from tenure.model.values.report import BAD, ProblemReport, Trail
from tenure.model.values.resources import GPU
from tenure.model.volumes import StorageCapacity, StorageClass, StorageDriver, Volume, VolumeAttachment, VolumeClaim
from tenure.model.workload import Phase, Task, TaskSpec, Workload

API_VERSION = "tenure.dev/v1beta1"
API_VERSIONS = (API_VERSION, "tenure.dev/v1alpha1")
"""The versions that are read: the one that is written first. A document of any of them says the same in all."""

CLUSTER_KIND = "Cluster"
SETTINGS_KIND = "SchedulerConfig"

MOST = {
    "nodes": 100_000, "queues": 100_000, "workloads": 300_000, "tasks": 300_000, "disruptionBudgets": 10_000,
    "evictions": 500_000, "outcomes": 100_000, "finishedRuns": 100_000, "namespaces": 100_000,
    "volumes": 300_000, "claims": 300_000,
    "storageClasses": 10_000, "csiDrivers": 10_000, "storageCapacities": 100_000, "attachments": 300_000,
    "resourceSlices": 100_000, "deviceClasses": 10_000, "resourceClaims": 300_000,
}  # fmt: skip
"""Entries of each section, and of the tasks of a workload, that are read; a few bytes each could fill the memory."""

SHARE_ATTRIBUTES = ("gpu_fraction", "gpu_memory", "gpu_devices")
"""What files write instead of ``TaskSpec.gpu_share``."""


class EntryValues(NamedTuple):
    """The values of an entry by attribute, and where it stands."""

    at: Trail
    values: dict[str, Any]


class EntryKind(RecordKind):
    """A record that is read but not made into an object yet."""

    def decode(self, value: Any, at: Trail, report: ProblemReport) -> Any:
        """Read the values that are there."""
        values = self.read(value, at, report)
        return values if values is BAD else EntryValues(at, values)


class PortKind(ValueKind):
    """A host port: as in a pod's spec, or just its number."""

    def decode(self, value: Any, at: Trail, report: ProblemReport) -> Any:
        """Read the port."""
        return record_of(HostPort).decode({"hostPort": value} if isinstance(value, int) else value, at, report)

    def encode(self, value: Any) -> dict[str, Any]:
        """Write the port as in a pod's spec."""
        return record_of(HostPort).encode(value)

    def schema(self, definitions: dict[str, Any]) -> dict[str, Any]:
        """Describe both forms."""
        return {"anyOf": [{"type": "integer"}, record_of(HostPort).schema(definitions)]}


@cache
def node_entry() -> EntryKind:
    """Give the entry of a node, or of ``count`` equal ones."""
    return EntryKind(Node, (*fields_of(Node), RecordField("count", "count", kind_of(Count))))


@cache
def queue_entry() -> EntryKind:
    """Give the entry of a queue."""
    return EntryKind(Queue)


@cache
def task_entry() -> EntryKind:
    """Give the entry of a task: what it asks for stands beside its other fields."""
    return EntryKind(Task, (*fields_of(Task, skip=("spec",)), *_spec_fields()))


@cache
def workload_entry() -> EntryKind:
    """Give the entry of a workload; what it asks for holds for each of its tasks."""
    own = tuple(fields_of(Workload, skip=("tasks",)))
    taken = {field.key for field in own}
    extra = (
        RecordField("tasks", "tasks", ListKind(task_entry(), most=MOST["tasks"])),
        RecordField("replicas", "replicas", kind_of(Ordinal)),
        RecordField("phase", "phase", ChoiceKind((Phase.PENDING, Phase.GATED), Phase)),
    )
    return EntryKind(Workload, (*own, *(field for field in _spec_fields() if field.key not in taken), *extra))


@cache
def file_entry() -> EntryKind:
    """Give the whole file."""
    sections: dict[str, tuple[str, ValueKind]] = {
        "nodes": ("nodes", node_entry()),
        "queues": ("queues", queue_entry()),
        "workloads": ("workloads", workload_entry()),
        "disruptionBudgets": ("disruption_budgets", EntryKind(DisruptionBudget)),
        "evictions": ("evictions", record_of(Eviction)),
        "outcomes": ("outcomes", record_of(EvictionOutcome)),
        "finishedRuns": ("finished_runs", record_of(FinishedRuns)),
        "namespaces": ("namespaces", record_of(Namespace)),
        "volumes": ("volumes", record_of(Volume)),
        "claims": ("claims", record_of(VolumeClaim)),
        "storageClasses": ("storage_classes", record_of(StorageClass)),
        "csiDrivers": ("drivers", record_of(StorageDriver)),
        "storageCapacities": ("capacities", record_of(StorageCapacity)),
        "attachments": ("attachments", record_of(VolumeAttachment)),
        "resourceSlices": ("device_slices", record_of(DeviceSlice)),
        "deviceClasses": ("device_classes", record_of(DeviceClass)),
        "resourceClaims": ("device_claims", record_of(DeviceClaim)),
    }
    fields = [
        RecordField("apiVersion", "api_version", ChoiceKind(API_VERSIONS)),
        RecordField("kind", "kind", ChoiceKind((CLUSTER_KIND,))),
        RecordField("now", "now", next(fields_of(Cluster)).kind),
        RecordField("scheduler", "settings", record_of(Settings)),
        *(RecordField(key, name, ListKind(kind, most=MOST[key])) for key, (name, kind) in sections.items()),
    ]
    return EntryKind(Cluster, fields)


@cache
def settings_entry() -> EntryKind:
    """Give the scheduler's own file."""
    fields = (
        RecordField("apiVersion", "api_version", ChoiceKind(API_VERSIONS)),
        RecordField("kind", "kind", ChoiceKind((SETTINGS_KIND,))),
        RecordField("scheduler", "settings", record_of(Settings)),
    )
    return EntryKind(Settings, fields, name=SETTINGS_KIND)


def _spec_fields() -> Iterator[RecordField]:
    for field in fields_of(TaskSpec, skip=("gpu_share", "mounts", "device_uses", "counted", "extended")):
        if field.attribute == "host_ports":
            yield RecordField(field.key, field.attribute, ListKind(PortKind()), field.default)
        else:
            yield field
    yield RecordField("gpuFraction", "gpu_fraction", QuantityKind(GPU, milli=True))
    yield RecordField("gpuMemory", "gpu_memory", kind_of(Bytes))
    yield RecordField("gpuDevices", "gpu_devices", IntegerKind(1, 1024))
