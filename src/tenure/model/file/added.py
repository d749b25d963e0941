"""What ``tenure plan --add`` reads: workloads as in a cluster file, or manifests of Pods and of what owns pods."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path as FilePath
from typing import Any

from tenure.model import rules as _rules  # noqa: F401  registers the checks of single values
from tenure.model.checks.cluster import check_cluster
from tenure.model.cluster import DEFAULT_QUEUE, Cluster
from tenure.model.devices import DeviceClaim
from tenure.model.documents.document import Document, problems_of
from tenure.model.documents.source import read_documents
from tenure.model.entries import API_VERSIONS, CLUSTER_KIND, EntryKind, workload_entry
from tenure.model.fields.containers import ListKind
from tenure.model.fields.kinds import ChoiceKind, describe
from tenure.model.fields.records import RecordField, record_of
from tenure.model.file.added_owners import OwnerManifestReader
from tenure.model.file.added_pods import QUEUE_LABELS, PodManifestReader, policy_of, queue_of
from tenure.model.file.expand import Expander, TaskCount
from tenure.model.manifests.claims import CLAIM, read_claim
from tenure.model.manifests.device_uses import uses_of, using
from tenure.model.manifests.devices import DEVICE_KINDS, RESOURCE_CLAIM_TEMPLATE, read_device_claim
from tenure.model.manifests.priority_classes import PriorityClasses
from tenure.model.manifests.runtime_classes import RUNTIME_CLASS, RuntimeClasses
from tenure.model.manifests.workload_kind import (
    WorkloadKind,
    WorkloadKinds,
    built_in_kinds,
)
from tenure.model.storage import mounting, resolver_of
from tenure.model.values.problems import InputProblem, InvalidInputError, shorten
from tenure.model.values.report import BAD, ProblemReport, Trail, trail_of, unroll
from tenure.model.volumes import VolumeClaim
from tenure.model.workload import ContenderPolicy, Task, Workload

MOST_ADDED = 100_000
"""Workloads that one file may add in thought: fewer than a cluster holds, for they come on top of these."""

POD_GROUP = "tenure.dev/pod-group"
"""Label of pods that form one workload."""

PRIORITY_CLASS = ("scheduling.k8s.io/v1", "PriorityClass")
_LIST = "List"
WORKLOAD_KINDS = tuple((version, "WorkloadKind") for version in API_VERSIONS)
_KINDS = (("v1", "Pod"), PRIORITY_CLASS, RUNTIME_CLASS, *WORKLOAD_KINDS, CLAIM, *DEVICE_KINDS)


def load_additions(path: str | FilePath, cluster: Cluster) -> tuple[Workload, ...]:
    """Load workloads that might be submitted to a cluster; they are created at the cluster's ``now``.

    The file holds ``workloads`` as a cluster file does, or manifests: Pods, Jobs, objects of all kinds of owners that
    are known or that a WorkloadKind in the file describes, lists of them, several documents. A Job becomes a workload
    of as many tasks as it runs in parallel, a Pod one of one task, unless the label ``tenure.dev/pod-group`` joins it
    with others. PriorityClasses beside them say what the classes that pods name stand for; the annotation by which a
    class asks to be spared holds for its pods, unless they have their own. RuntimeClasses add their overhead, node
    selector and tolerations to the pods that name them.
    PersistentVolumeClaims and ResourceClaims are there as if the cluster had them; a template makes a claim a task.

    Raises
    ------
    InvalidInputError
        With all problems of the file, also where it does not go with the cluster (a name that is taken, a queue or
        node that is not there).

    """
    documents = read_documents(path)
    classes, runtimes, made = PriorityClasses(), RuntimeClasses(), TaskCount()
    queues = {n.name: queue for n in cluster.namespaces if (queue := n.labels.get(QUEUE_LABELS[0]))}
    readers = [_Reader(document, cluster.now, classes, runtimes, made, queues) for document in documents]
    for reader in readers:
        reader.read_classes(reader.document.value, None)
    added_kinds = [kind for reader in readers for kind in reader.read_kinds()]
    for reader in readers:
        reader.kinds = built_in_kinds().with_others(added_kinds)
    for reader in readers:
        reader.read()
    groups = _join([pod for reader in readers for pod in reader.pods])
    added = [entry for reader in readers for entry in reader.added] + groups
    _check(cluster, added)
    problems = problems_of([(reader.document, reader.report) for reader in readers])
    if problems:
        raise InvalidInputError(problems)
    if not added:
        raise InvalidInputError(
            [InputProblem(str(path), 0, "", "adds nothing; it holds neither workloads nor Pods nor Jobs")]
        )
    claims = [claim for reader in readers for claim in reader.claims]
    there = {claim.key for claim in (*cluster.storage.claims, *claims)}
    claims += [claim for reader in readers for claim in reader.pod_reader.made_claims if claim.key not in there]
    device_claims = [claim for reader in readers for claim in reader.device_claims]
    templates = {claim.key: claim for reader in readers for claim in reader.templates}
    resolver = uses_of((*cluster.devices.claims, *device_claims), cluster.devices.classes, cluster.settings)
    found = mounting((entry.workload for entry in added), resolver_of(cluster.storage, claims))
    return using(found, resolver, templates)


@dataclass(frozen=True, slots=True)
class _Added:
    """A workload, and where it comes from. ``is_plain``: its parts stand there as in a cluster file."""

    workload: Workload
    reader: _Reader
    at: Trail
    is_plain: bool


@dataclass(frozen=True, slots=True)
class _Pod:
    """A Pod on its way into a workload."""

    group: str
    namespace: str
    queue: str
    priority: int
    preemption_policy: ContenderPolicy | None
    min_member: int | None
    task: Task
    labels: dict[str, str]
    annotations: dict[str, str]
    reader: _Reader
    at: Trail


@dataclass(slots=True)
class _Reader:
    """Reads one document of a file."""

    document: Document
    now: int
    classes: PriorityClasses
    runtimes: RuntimeClasses
    made: TaskCount
    namespace_queues: Mapping[str, str]
    kinds: WorkloadKinds = field(default_factory=lambda: WorkloadKinds(()))
    report: ProblemReport = field(default_factory=ProblemReport)
    expander: Expander = field(init=False)
    pod_reader: PodManifestReader = field(init=False)
    owner_reader: OwnerManifestReader = field(init=False)
    added: list[_Added] = field(default_factory=list)
    pods: list[_Pod] = field(default_factory=list)
    claims: list[VolumeClaim] = field(default_factory=list)
    device_claims: list[DeviceClaim] = field(default_factory=list)
    templates: list[DeviceClaim] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.expander = Expander(self.report, self.now, self.made)
        self.pod_reader = PodManifestReader(self.classes, self.runtimes, self.expander, self.report)
        self.owner_reader = OwnerManifestReader(self.pod_reader, self.now, self.namespace_queues)

    def read(self) -> None:
        """Read the document, whatever of the possible kinds it is."""
        value = self.document.value
        if isinstance(value, dict) and ("workloads" in value or value.get("kind") == CLUSTER_KIND):
            self._read_workloads(value)
        else:
            self._read_object(value, None)

    def read_classes(self, value: Any, at: Trail) -> None:
        """Read the classes of a document, of priorities and runtimes: pods may name those that come after them."""
        kind = (value.get("apiVersion"), value.get("kind")) if isinstance(value, dict) else None
        if kind == PRIORITY_CLASS:
            self.classes.read(value, at, self.report)
        elif kind == RUNTIME_CLASS:
            self.runtimes.read(value, at, self.report)
        elif isinstance(value, dict) and isinstance(value.get("items"), list):
            for index, item in enumerate(_items(value, value["items"])):
                self.read_classes(item, ((at, "items"), index))

    def read_kinds(self) -> Iterator[WorkloadKind]:
        """Read the kind of owners that a document describes, if it does."""
        value = self.document.value
        if isinstance(value, dict) and (value.get("apiVersion"), value.get("kind")) in WORKLOAD_KINDS:
            made = record_of(WorkloadKind).decode(value.get("spec"), (None, "spec"), self.report)
            if made is not BAD:
                yield made

    def _read_workloads(self, value: Any) -> None:
        entry = _additions_entry().decode(value, None, self.report)
        if entry is BAD:
            return
        self.expander.add_workloads(entry.values.get("workloads", ()))
        made = self.expander.result
        for workload, at in zip(made.workloads, made.workload_trails, strict=True):
            self.added.append(_Added(replace(workload, created_at=self.now), self, at, is_plain=True))

    def _read_object(self, value: Any, at: Trail) -> None:
        if not isinstance(value, dict) or "kind" not in value:
            message = f"is {describe(value)}, but workloads: […] or the manifest of a Pod or Job is expected"
            self.report.add(at, message)
            return
        version, kind = value.get("apiVersion"), value["kind"]
        if self._is_list(version, kind):
            self._read_list(value, at)
            return
        owner = self.kinds.of_object(value) if (version, kind) not in _KINDS else None
        if (version, kind) not in _KINDS and owner is None:
            what = f"{shorten(kind)} of {shorten(version)}"
            self.report.add(
                (at, "kind"),
                f"{what} cannot be added; Pod, PersistentVolumeClaim and List of v1, Job of batch/v1, PriorityClass "
                "of scheduling.k8s.io/v1, RuntimeClass of node.k8s.io/v1, ResourceClaim and ResourceClaimTemplate of "
                "resource.k8s.io/v1, workloads, or a kind that a WorkloadKind beside it describes can",
            )
        elif (version, kind) in (PRIORITY_CLASS, RUNTIME_CLASS, *WORKLOAD_KINDS):
            return  # read before
        elif (version, kind) == CLAIM:
            claim = read_claim(value, at, self.report)
            self.claims += [] if claim is None else [claim]
        elif (version, kind) in DEVICE_KINDS:
            made = read_device_claim(kind, value, at, self.report)
            known = self.templates if (version, kind) == RESOURCE_CLAIM_TEMPLATE else self.device_claims
            known += [] if made is None else [made]
        elif owner is not None:
            made_of_it = self.owner_reader.workloads(owner, value, at, self.kinds)
            self.added += [_Added(workload, self, at, is_plain=False) for workload in made_of_it]
        else:
            self._read_single_pod(value, at)

    def _is_list(self, version: Any, kind: Any) -> bool:
        """Whether it is a list of objects: one of any, or one of a kind that can be added."""
        if (version, kind) == ("v1", _LIST):
            return True
        one = {"apiVersion": version, "kind": kind.removesuffix(_LIST) if isinstance(kind, str) else kind}
        if one["kind"] == kind:
            return False
        return (version, one["kind"]) in _KINDS or self.kinds.of_object(one) is not None

    def _read_list(self, value: dict[str, Any], at: Trail) -> None:
        items, trail = value.get("items") or [], (at, "items")
        if not isinstance(items, list):
            self.report.add(trail, f"is {describe(items)}, but a list is expected")
            return
        for index, item in enumerate(_items(value, items)):
            self._read_object(item, (trail, index))

    def _read_single_pod(self, value: dict[str, Any], at: Trail) -> None:
        metadata = self.pod_reader.metadata(value, at)
        labels, namespace = metadata.values.get("labels", {}), metadata.values.get("namespace", "default")
        described = self.pod_reader.described(value, at, metadata, namespace)
        if described is None:
            return
        min_member, name = described.extra.pop("min_member", None), self.pod_reader.name(metadata)
        task = self.pod_reader.task(name, described, (at, "metadata"), metadata)
        task, given = self.pod_reader.mounting_own(task, described.own), described.given
        pod = _Pod(
            group=labels.get(POD_GROUP) or name,
            namespace=namespace,
            queue=queue_of(labels) or self.namespace_queues.get(namespace) or DEFAULT_QUEUE,
            priority=given.value,
            preemption_policy=given.preemption_policy,
            min_member=min_member,
            task=task,
            labels=labels,
            annotations=metadata.values.get("annotations", {}),
            reader=self,
            at=at,
        )
        self.pods.append(pod)


def _items(value: dict[str, Any], items: list[Any]) -> Iterator[Any]:
    """Give the items of a list; an API server names their kind with the list alone, where that is a list of one."""
    version, kind = value.get("apiVersion"), value.get("kind")
    known = {"apiVersion": version, "kind": kind.removesuffix(_LIST)} if isinstance(kind, str) and kind != _LIST else {}
    return ({**known, **item} if isinstance(item, dict) else item for item in items)


@cache
def _additions_entry() -> EntryKind:
    fields = (
        RecordField("apiVersion", "api_version", ChoiceKind(API_VERSIONS)),
        RecordField("kind", "kind", ChoiceKind((CLUSTER_KIND,))),
        RecordField("workloads", "workloads", ListKind(workload_entry(), most=MOST_ADDED)),
    )
    return EntryKind(Workload, fields, name="Additions")


def _join(pods: list[_Pod]) -> list[_Added]:
    """Make workloads of pods, one for each group."""
    groups: dict[tuple[str, str, bool], list[_Pod]] = {}
    for pod in pods:
        groups.setdefault((pod.namespace, pod.group, POD_GROUP in pod.labels), []).append(pod)
    return [added for members in groups.values() for added in _join_group(members)]


def _join_group(pods: list[_Pod]) -> Iterator[_Added]:
    first = pods[0]
    if POD_GROUP not in first.labels:
        for pod in pods:
            yield _Added(_workload([pod]), pod.reader, pod.at, is_plain=False)
        return
    for pod in pods:
        if pod.queue != first.queue:
            message = f"names queue {pod.queue}, but its group {pod.group} began with {first.queue}; name one for all"
            pod.reader.report.add(((pod.at, "metadata"), "labels"), message)
    yield _Added(_workload(pods), first.reader, first.at, is_plain=False)


def _workload(pods: list[_Pod]) -> Workload:
    first = pods[0]
    minima = [pod.min_member for pod in pods if pod.min_member is not None]
    return Workload(
        name=first.group,
        namespace=first.namespace,
        queue=first.queue,
        priority=max(pod.priority for pod in pods),
        preemption_policy=policy_of(pod.preemption_policy for pod in pods),
        min_member=max(minima) if minima else None,
        tasks=tuple(pod.task for pod in pods),
        created_at=first.reader.now,
        labels=first.labels,
        annotations={k: v for k, v in first.annotations.items() if all(p.annotations.get(k) == v for p in pods)},
    )


def _check(cluster: Cluster, added: list[_Added]) -> None:
    """Check the cluster with what is added, and note what is wrong with that where it stands in its file."""
    before = len(cluster.workloads)
    together = replace(cluster, workloads=(*cluster.workloads, *(entry.workload for entry in added)))
    for finding in check_cluster(together):
        section, *rest = finding.path
        if section != "workloads" or rest[0] < before or finding.is_warning:
            continue
        entry = added[rest[0] - before]
        steps = tuple(rest[1:]) if entry.is_plain else ()
        entry.reader.report.add(trail_of((*unroll(entry.at), *steps)), finding.message)
