"""The CustomResourceDefinitions: ``Queue``, ``PodGroup``, ``DisruptionBudget``, ``NodePool`` and ``WorkloadKind``.

Their specs are described by the same definitions that cluster files are read by, so a queue reads the same in both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from tenure.clusters.kubernetes.install import crd_rules
from tenure.clusters.kubernetes.install.crd_status import STATUS
from tenure.clusters.kubernetes.install.structural import Structural, rule
from tenure.model.entries import API_VERSION, API_VERSIONS
from tenure.model.fields.descriptions import add_descriptions
from tenure.model.fields.kinds import Definitions, Schema
from tenure.model.fields.records import RecordField, RecordKind, fields_of, kind_of, record_of
from tenure.model.manifests.workload_kind import WorkloadKind
from tenure.model.queue import Queue
from tenure.model.settings import BudgetRule, Settings
from tenure.model.workload import Checkpoint, Workload

GROUP: Final = API_VERSION.partition("/")[0]
VERSION: Final = API_VERSION.partition("/")[2]
VERSIONS: Final = tuple(version.partition("/")[2] for version in API_VERSIONS)
"""The versions that are served, the stored one first. They have one schema: to convert is to change the name."""

_OWN_TO_FILES: Final = (
    "name", "namespace", "uid", "tasks", "priority", "created_at", "started_at", "last_evicted_at", "evictions",
    "stale_since", "requeue_not_before", "awaits_nodes_until", "checkpoint", "owner_kind", "scheduler_name", "labels",
    "annotations",
)  # fmt: skip
"""What a workload of a cluster file has and a PodGroup's spec has not: metadata, status, and what its pods say."""


@dataclass(frozen=True, slots=True)
class PrinterColumn:
    """A column of ``kubectl get``. ``wide``: only with ``-o wide``."""

    name: str
    path: str
    type: str = "string"
    wide: bool = False


@dataclass(frozen=True, slots=True)
class Resource:
    """A custom resource of Tenure."""

    kind: str
    plural: str
    short: tuple[str, ...]
    namespaced: bool
    summary: str
    columns: tuple[PrinterColumn, ...]


_AGE: Final = PrinterColumn("Age", ".metadata.creationTimestamp", "date")
_ACCEPTED: Final = PrinterColumn("Accepted", '.status.conditions[?(@.type=="Accepted")].status')

RESOURCES: Final = (
    Resource(
        "Queue",
        "queues",
        ("tq",),
        namespaced=False,
        summary="A queue of the tree that shares the cluster; workloads live in its leaves.",
        columns=(
            PrinterColumn("Parent", ".spec.parent"),
            PrinterColumn("Guaranteed", ".spec.guaranteed"),
            PrinterColumn("Max", ".spec.max"),
            PrinterColumn("Allocated", ".status.allocated"),
            PrinterColumn("Running", ".status.runningWorkloads", "integer"),
            PrinterColumn("Pending", ".status.pendingWorkloads", "integer"),
            PrinterColumn("Priority", ".spec.priority", "integer", wide=True),
            PrinterColumn("Deadline", ".status.quotaPreemption.deadline", "date", wide=True),
            _ACCEPTED,
            _AGE,
        ),
    ),
    Resource(
        "PodGroup",
        "podgroups",
        ("tpg",),
        namespaced=True,
        summary="Pods that start together: those of its namespace that name it in the label tenure.dev/pod-group.",
        columns=(
            PrinterColumn("Queue", ".spec.queue"),
            PrinterColumn("Min", ".spec.minMember", "integer"),
            PrinterColumn("Phase", ".status.phase"),
            PrinterColumn("Running", ".status.running", "integer"),
            PrinterColumn("Pending", ".status.pending", "integer"),
            PrinterColumn("Evicted", ".status.lastEvictedAt", "date", wide=True),
            _ACCEPTED,
            _AGE,
        ),
    ),
    Resource(
        "DisruptionBudget",
        "disruptionbudgets",
        ("tdb",),
        namespaced=False,
        summary="A rule that bounds evictions; all rules have to allow one.",
        columns=(
            PrinterColumn("Evictions", ".spec.maxEvictions", "integer"),
            PrinterColumn("Per", ".spec.per"),
            PrinterColumn("Used", ".status.evictions", "integer"),
            PrinterColumn("Allowed", ".status.allowed", "integer"),
            PrinterColumn("Next", ".status.nextAt", "date", wide=True),
            PrinterColumn("Down", ".spec.maxUnavailable"),
            PrinterColumn("Queue", ".spec.queue", wide=True),
            PrinterColumn("Schedule", ".spec.schedule", wide=True),
            _ACCEPTED,
            _AGE,
        ),
    ),
    Resource(
        "NodePool",
        "nodepools",
        ("tnp",),
        namespaced=False,
        summary="Settings of the scheduler for the nodes whose label tenure.dev/node-pool names it.",
        columns=(
            PrinterColumn("Nodes", ".status.nodes", "integer"),
            PrinterColumn("Leader", ".status.leader"),
            PrinterColumn("Paused until", ".status.pausedUntil", "date"),
            _ACCEPTED,
            _AGE,
        ),
    ),
    Resource(
        "WorkloadKind",
        "workloadkinds",
        ("twk",),
        namespaced=False,
        summary="A kind of objects that own pods: which of their pods belong together, and how many start together.",
        columns=(
            PrinterColumn("API group", ".spec.group"),
            PrinterColumn("Version", ".spec.version"),
            PrinterColumn("Kind", ".spec.kind"),
            PrinterColumn("Unit", ".spec.unit"),
            _ACCEPTED,
            _AGE,
        ),
    ),
)


def custom_resource_definitions() -> list[dict[str, Any]]:
    """Give the definitions as objects for the API server."""
    return [_definition(resource) for resource in RESOURCES]


@cache
def spec_record(kind: str) -> RecordKind:
    """Give the record by which the spec of one of these kinds is read and described."""
    if kind == "Queue":
        return RecordKind(Queue, fields_of(Queue, skip=("name", "created_at", "status")), name="QueueSpec")
    if kind == "PodGroup":
        return RecordKind(Workload, _pod_group_fields(), name="PodGroupSpec")
    if kind == "DisruptionBudget":
        return RecordKind(BudgetRule, fields_of(BudgetRule, skip=("name",)), name="DisruptionBudgetSpec")
    if kind == "WorkloadKind":
        return RecordKind(WorkloadKind, name="WorkloadKindSpec")
    assert kind == "NodePool"
    return RecordKind(Settings, [RecordField("scheduler", "scheduler", record_of(Settings))], name="NodePoolSpec")


def _pod_group_fields() -> Iterator[RecordField]:
    yield from fields_of(Workload, skip=_OWN_TO_FILES)
    yield RecordField("priorityClassName", "priority_class_name", kind_of(str))
    checkpoint = RecordKind(Checkpoint, fields_of(Checkpoint, skip=("last_at",)), name="CheckpointSpec")
    yield RecordField("checkpoint", "checkpoint", checkpoint)


def _definition(resource: Resource) -> dict[str, Any]:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{resource.plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced" if resource.namespaced else "Cluster",
            "names": {
                "kind": resource.kind,
                "listKind": f"{resource.kind}List",
                "plural": resource.plural,
                "singular": resource.kind.lower(),
                "shortNames": list(resource.short),
                "categories": ["tenure"],
            },
            "conversion": {"strategy": "None"},
            "versions": [
                {
                    "name": version,
                    "served": True,
                    "storage": version == VERSION,
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": list(_columns(resource.columns)),
                    "schema": {"openAPIV3Schema": _schema(resource)},
                }
                for version in VERSIONS
            ],
        },
    }


def _columns(columns: Iterable[PrinterColumn]) -> Iterator[dict[str, Any]]:
    for column in columns:
        priority = {"priority": 1} if column.wide else {}
        yield {"name": column.name, "type": column.type, "jsonPath": column.path, **priority}


def _schema(resource: Resource) -> Schema:
    definitions: Definitions = {}
    record = spec_record(resource.kind)
    record.schema(definitions)
    spec = Structural(add_descriptions(definitions), crd_rules.BY_DEFINITION).of(record.name)
    made: Schema = {
        "type": "object",
        "description": resource.summary,
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": {**spec, "description": f"What is wanted. {resource.summary}"},
            "status": STATUS[resource.kind],
        },
    }
    if resource.kind == "Queue":
        made["x-kubernetes-validations"] = [
            rule("!has(self.spec.parent) || self.spec.parent != self.metadata.name", "a queue is not its own parent")
        ]
    return made
