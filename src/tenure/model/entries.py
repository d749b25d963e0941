"""The entries of a cluster file as they are written, with what only files have: ``count``, ``replicas``, short forms.

Each entry is read into the values that are there; `tenure.model.expand` makes nodes, workloads and tasks of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from tenure.model.cluster import Cluster, DisruptionBudget, Eviction, Namespace
from tenure.model.containers import Listing, QuantityKind
from tenure.model.kinds import Choice, Integer, Kind
from tenure.model.node import Node
from tenure.model.queue import Queue
from tenure.model.records import Field, Record, fields_of, kind_of, record_of
from tenure.model.report import BAD, Report, Trail
from tenure.model.resources import GPU
from tenure.model.selectors import HostPort
from tenure.model.settings import Settings
from tenure.model.vocabulary import Bytes, Count, Ordinal
from tenure.model.workload import Phase, Task, TaskSpec, Workload

API_VERSION = "tenure.dev/v1alpha1"
CLUSTER_KIND = "Cluster"
SETTINGS_KIND = "SchedulerConfig"

SHARE_ATTRIBUTES = ("gpu_fraction", "gpu_memory", "gpu_devices")
"""What files write instead of ``TaskSpec.gpu_share``."""


class Read(NamedTuple):
    """The values of an entry by attribute, and where it stands."""

    at: Trail
    values: dict[str, Any]


class Entry(Record):
    """A record that is read but not made into an object yet."""

    def decode(self, value: Any, at: Trail, report: Report) -> Any:
        """Read the values that are there."""
        values = self.read(value, at, report)
        return values if values is BAD else Read(at, values)


class PortKind(Kind):
    """A host port: as in a pod's spec, or just its number."""

    def decode(self, value: Any, at: Trail, report: Report) -> Any:
        """Read the port."""
        return record_of(HostPort).decode({"hostPort": value} if isinstance(value, int) else value, at, report)

    def encode(self, value: Any) -> dict[str, Any]:
        """Write the port as in a pod's spec."""
        return record_of(HostPort).encode(value)

    def schema(self, definitions: dict[str, Any]) -> dict[str, Any]:
        """Describe both forms."""
        return {"anyOf": [{"type": "integer"}, record_of(HostPort).schema(definitions)]}


@cache
def node_entry() -> Entry:
    """Give the entry of a node, or of ``count`` equal ones."""
    return Entry(Node, (*fields_of(Node), Field("count", "count", kind_of(Count))))


@cache
def queue_entry() -> Entry:
    """Give the entry of a queue."""
    return Entry(Queue)


@cache
def task_entry() -> Entry:
    """Give the entry of a task: what it asks for stands beside its other fields."""
    return Entry(Task, (*fields_of(Task, skip=("spec",)), *_spec_fields()))


@cache
def workload_entry() -> Entry:
    """Give the entry of a workload; what it asks for holds for each of its tasks."""
    own = tuple(fields_of(Workload, skip=("tasks",)))
    taken = {field.key for field in own}
    extra = (
        Field("tasks", "tasks", Listing(task_entry())),
        Field("replicas", "replicas", kind_of(Ordinal)),
        Field("phase", "phase", Choice((Phase.PENDING, Phase.GATED), Phase)),
    )
    return Entry(Workload, (*own, *(field for field in _spec_fields() if field.key not in taken), *extra))


@cache
def file_entry() -> Entry:
    """Give the whole file."""
    sections = {"nodes": node_entry(), "queues": queue_entry(), "workloads": workload_entry()}
    fields = [
        Field("apiVersion", "api_version", Choice((API_VERSION,))),
        Field("kind", "kind", Choice((CLUSTER_KIND,))),
        Field("now", "now", next(fields_of(Cluster)).kind),
        Field("scheduler", "settings", record_of(Settings)),
        *(Field(name, name, Listing(entry)) for name, entry in sections.items()),
        Field("disruptionBudgets", "disruption_budgets", Listing(Entry(DisruptionBudget))),
        Field("evictions", "evictions", Listing(record_of(Eviction))),
        Field("namespaces", "namespaces", Listing(record_of(Namespace))),
    ]
    return Entry(Cluster, fields)


@cache
def settings_entry() -> Entry:
    """Give the scheduler's own file."""
    fields = (
        Field("apiVersion", "api_version", Choice((API_VERSION,))),
        Field("kind", "kind", Choice((SETTINGS_KIND,))),
        Field("scheduler", "settings", record_of(Settings)),
    )
    return Entry(Settings, fields, name=SETTINGS_KIND)


def _spec_fields() -> Iterator[Field]:
    for field in fields_of(TaskSpec, skip=("gpu_share",)):
        if field.attribute == "host_ports":
            yield Field(field.key, field.attribute, Listing(PortKind()), field.default)
        else:
            yield field
    yield Field("gpuFraction", "gpu_fraction", QuantityKind(GPU, milli=True))
    yield Field("gpuMemory", "gpu_memory", kind_of(Bytes))
    yield Field("gpuDevices", "gpu_devices", Integer(1, 1024))
