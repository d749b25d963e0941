"""What ``tenure plan --add`` reads: workloads as in a cluster file, or manifests of Pods and of what owns pods."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path as FilePath
from typing import Any, NamedTuple

from tenure.model import rules as _rules  # noqa: F401  registers the checks of single values
from tenure.model.checks.cluster import check_cluster
from tenure.model.cluster import DEFAULT_QUEUE, Cluster
from tenure.model.devices import DeviceClaim
from tenure.model.documents.document import Document, problems_of
from tenure.model.documents.source import read_documents
from tenure.model.entries import API_VERSIONS, CLUSTER_KIND, EntryKind, EntryValues, workload_entry
from tenure.model.fields.containers import ListKind
from tenure.model.fields.kinds import ChoiceKind, describe
from tenure.model.fields.records import RecordField, record_of
from tenure.model.file.expand import Expander, TaskCount
from tenure.model.manifests.claims import CLAIM, read_claim, read_template
from tenure.model.manifests.device_uses import uses_of, using
from tenure.model.manifests.devices import DEVICE_KINDS, RESOURCE_CLAIM_TEMPLATE, read_device_claim
from tenure.model.manifests.pods import PodFields, metadata_entry, pod_entry, read_annotations, read_pod
from tenure.model.manifests.priority_classes import PriorityClass, PriorityClasses
from tenure.model.manifests.runtime_classes import RUNTIME_CLASS, RuntimeClasses
from tenure.model.manifests.workload_kind import (
    MOST_ROLES,
    OwnerShape,
    WorkloadKind,
    WorkloadKinds,
    built_in_kinds,
    shape_of,
)
from tenure.model.storage import mounting, resolver_of
from tenure.model.values.problems import InputProblem, InvalidInputError, shorten
from tenure.model.values.report import BAD, ProblemReport, Trail, trail_of, unroll
from tenure.model.volumes import VolumeClaim
from tenure.model.workload import NEVER, ContenderPolicy, Phase, Task, Workload

MOST_ADDED = 100_000
"""Workloads that one file may add in thought: fewer than a cluster holds, for they come on top of these."""

POD_GROUP = "tenure.dev/pod-group"
"""Label of pods that form one workload."""

QUEUE_LABELS = ("tenure.dev/queue", "kai.scheduler/queue", "queue")
"""Labels that name a queue; the first that is there counts."""

PRIORITY_CLASS = ("scheduling.k8s.io/v1", "PriorityClass")
_LIST = "List"
_STATEFUL_SET = "StatefulSet"
WORKLOAD_KINDS = tuple((version, "WorkloadKind") for version in API_VERSIONS)
_KINDS = (("v1", "Pod"), PRIORITY_CLASS, RUNTIME_CLASS, *WORKLOAD_KINDS, CLAIM, *DEVICE_KINDS)
_INSTEAD = "add what it makes: Pods, Jobs or workloads"


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
    claims += [claim for reader in readers for claim in reader.made_claims if claim.key not in there]
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
    added: list[_Added] = field(default_factory=list)
    pods: list[_Pod] = field(default_factory=list)
    claims: list[VolumeClaim] = field(default_factory=list)
    made_claims: list[VolumeClaim] = field(default_factory=list)
    device_claims: list[DeviceClaim] = field(default_factory=list)
    templates: list[DeviceClaim] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.expander = Expander(self.report, self.now, self.made)

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
            self._read_owner(owner, value, at)
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
        metadata = self._metadata(value, at)
        spec = self._pod(value.get("spec"), (at, "spec"), metadata)
        if spec is None:
            return
        extra, labels = read_annotations(metadata, self.report), metadata.values.get("labels", {})
        min_member = extra.pop("min_member", None)
        name = self._name(metadata)
        given = self._class_of(spec, (at, "spec"))
        task = self._task(name, spec, given, extra, (at, "metadata"), metadata)
        namespace = metadata.values.get("namespace", "default")
        task = self._mounting_own(task, self._ephemeral(spec, namespace, at))
        pod = _Pod(
            group=labels.get(POD_GROUP) or name,
            namespace=namespace,
            queue=_queue(labels) or self.namespace_queues.get(namespace) or DEFAULT_QUEUE,
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

    def _read_owner(self, kind: WorkloadKind, value: dict[str, Any], at: Trail) -> None:
        """Read what owns pods, as it would be read on a cluster."""
        metadata = self._metadata(value, at)
        shape = shape_of(kind, value, self.kinds, with_templates=True).with_roles(range(MOST_ROLES))
        for place, message in shape.problems:
            self.report.add(trail_of((*unroll(at), *place)), message)
        roles = list(self._roles(kind, shape, at, metadata.values.get("namespace", "default")))
        if not roles or shape.problems:
            return
        name, extra = self._name(metadata), read_annotations(metadata, self.report)
        made = _OwnedWorkload(kind, shape, name, metadata, tuple(roles), extra.get("min_member"))
        count = made.units(value)
        if not self.expander.takes(count * sum(shape.roles[role.number].replicas for role in roles), (at, "spec")):
            return
        of_set = self._of_set(kind, value, metadata, at)
        for found in made.workloads(count, self.now, self.namespace_queues):
            tasks = [self._mounting_own(t, (*made.own_of(t), *of_set)) for t in found.tasks]
            workload = replace(found, tasks=tuple(tasks))
            self.added.append(_Added(workload, self, at, is_plain=False))

    def _roles(self, kind: WorkloadKind, shape: OwnerShape, at: Trail, namespace: str) -> Iterator[_OwnedRole]:
        """Read the templates of all roles that have pods."""
        if not any(role.replicas for role in shape.roles):
            self.report.add((at, "spec"), f"makes no pods, as far as a {kind.kind} says it; {_INSTEAD}")
        for number, role in enumerate(shape.roles):
            if role.replicas and role.template is None and role.place:
                self.report.add(trail_of((*unroll(at), *role.place)), "is missing; it is required")
            elif role.replicas and role.template is None:
                what = f"of role {role.name}, " if role.name else ""
                self.report.add(
                    (at, "spec"), f"holds no template {what}from which pods of a {kind.kind} are made; {_INSTEAD}"
                )
            elif role.replicas:
                made = self._role(
                    number, shape, trail_of((*unroll(at), *role.place)), namespace, is_named=len(shape.roles) > 1
                )
                if made is not None:
                    yield made

    def _role(self, number: int, shape: OwnerShape, at: Trail, namespace: str, *, is_named: bool) -> _OwnedRole | None:
        role = shape.roles[number]
        inner = self._metadata(role.template, at)
        spec = self._pod(role.template.get("spec"), (at, "spec"), inner)
        if spec is None:
            return None
        extra, given = read_annotations(inner, self.report), self._class_of(spec, (at, "spec"))
        extra.pop("min_member", None)
        task = self._task(role.name, spec, given, extra, inner.at, inner)
        if shape.suspended:
            task = replace(task, phase=Phase.GATED)
        own = self._ephemeral(spec, namespace, at)
        name = role.name.lower() if is_named else ""
        return _OwnedRole(number, name, task, given, inner.values.get("labels", {}), own)

    def _ephemeral(self, spec: PodFields, namespace: str, at: Trail) -> tuple[_OwnClaim, ...]:
        """Read the claims of which a pod gets one each with its volumes."""
        found = []
        for number, name, template in spec.own_claims:
            trail = trail_of((*unroll(at), "spec", "volumes", number, "ephemeral", "volumeClaimTemplate"))
            claim = read_template(template, namespace, trail, self.report)
            if claim is not None:
                found.append(_OwnClaim("{0}-" + name, claim))
        return tuple(found)

    def _of_set(self, kind: WorkloadKind, value: dict[str, Any], metadata: EntryValues, at: Trail) -> list[_OwnClaim]:
        """Read the claims of which each pod of a StatefulSet gets one."""
        spec = value.get("spec")
        listed = spec.get("volumeClaimTemplates") if kind.kind == _STATEFUL_SET and isinstance(spec, dict) else None
        namespace, trail = metadata.values.get("namespace", "default"), ((at, "spec"), "volumeClaimTemplates")
        found = []
        for number, template in enumerate(listed if isinstance(listed, list) else ()):
            claim = read_template(template, namespace, (trail, number), self.report)
            named = template.get("metadata") if isinstance(template, dict) else None
            name = named.get("name") if isinstance(named, dict) else None
            if claim is not None:
                found.append(_OwnClaim(f"{name or number}-" + "{0}", claim))
        return found

    def _mounting_own(self, task: Task, own: Iterable[_OwnClaim]) -> Task:
        """Give a task that mounts claims of its own, which are there as it is."""
        names = []
        for named, claim in own:
            names.append(named.replace("{0}", task.name))
            self.made_claims.append(replace(claim, name=names[-1]))
        mounted = tuple(dict.fromkeys((*task.spec.claims, *names)))
        return replace(task, spec=replace(task.spec, claims=mounted)) if names else task

    def _metadata(self, value: dict[str, Any], at: Trail) -> EntryValues:
        trail = (at, "metadata")
        read = metadata_entry().decode(value.get("metadata") or {}, trail, self.report)
        return EntryValues(trail, {}) if read is BAD else read

    def _name(self, metadata: EntryValues) -> str:
        name = metadata.values.get("name") or metadata.values.get("generateName", "").rstrip("-")
        if not name:
            self.report.add((metadata.at, "name"), "is missing; it is required")
        return name or "unnamed"

    def _pod(self, value: Any, at: Trail, metadata: EntryValues) -> PodFields | None:
        if value is None:
            self.report.add(at, "is missing; it is required")
            return None
        read = pod_entry().decode(value, at, self.report)
        return (
            None if read is BAD else read_pod(self.runtimes.added_to(read, self.report), metadata.values, self.report)
        )

    def _class_of(self, spec: PodFields, at: Trail) -> PriorityClass:
        """Give what a pod has from its priority class; a priority of its own counts before that of the class."""
        found = self.classes.of(spec.priority_class)
        if found is None and spec.priority is None:
            self.report.add(
                (at, "priorityClassName"),
                f"priority class {spec.priority_class} is not known here; add its value as priority: N, or the class",
            )
        found = found or PriorityClass()
        found = found if spec.preemption_policy is None else replace(found, preemption_policy=spec.preemption_policy)
        return found if spec.priority is None else replace(found, value=spec.priority)

    def _task(
        self, name: str, spec: PodFields, given: PriorityClass, extra: dict[str, Any], at: Trail, metadata: EntryValues
    ) -> Task:
        made = self.expander.spec({**spec.asked, **extra}, (at, "annotations"))
        phase = Phase.GATED if spec.is_gated else Phase.PENDING
        annotations = {**given.annotations, **metadata.values.get("annotations", {})}
        return Task(name=name, spec=made, phase=phase, grace_period=spec.grace_period, annotations=annotations)


def _items(value: dict[str, Any], items: list[Any]) -> Iterator[Any]:
    """Give the items of a list; an API server names their kind with the list alone, where that is a list of one."""
    version, kind = value.get("apiVersion"), value.get("kind")
    known = {"apiVersion": version, "kind": kind.removesuffix(_LIST)} if isinstance(kind, str) and kind != _LIST else {}
    return ({**known, **item} if isinstance(item, dict) else item for item in items)


class _OwnClaim(NamedTuple):
    """A claim that each of some pods gets: how it is called, with ``{0}`` for the pod's name, and what it is like."""

    named: str
    claim: VolumeClaim


class _OwnedRole(NamedTuple):
    """The pods of one role: its number among the roles, its name where there are several, and what each pod is like."""

    number: int
    name: str
    task: Task
    given: PriorityClass
    labels: dict[str, str]
    own: tuple[_OwnClaim, ...]


@dataclass(frozen=True, slots=True)
class _OwnedWorkload:
    """What an owner makes, on its way into workloads."""

    kind: WorkloadKind
    shape: OwnerShape
    name: str
    metadata: EntryValues
    roles: tuple[_OwnedRole, ...]
    min_member: int | None

    def own_of(self, task: Task) -> tuple[_OwnClaim, ...]:
        """Give the claims that a task gets with its volumes."""
        return next((role.own for role in self.roles if role.task.spec is task.spec), ())

    def units(self, value: Any) -> int:
        """Give how many workloads an object makes of each of its pods, or of all of them together."""
        stated = self.kind.units.first(value) if self.kind.units is not None else None
        return stated if type(stated) is int and stated > 0 else 1

    def workloads(self, count: int, now: int, namespace_queues: Mapping[str, str]) -> Iterator[Workload]:
        """Give the workloads."""
        labels = self.metadata.values.get("labels", {})
        namespace = self.metadata.values.get("namespace", "default")
        of_pods = next((queue for role in self.roles if (queue := _queue(role.labels))), "")
        queue = of_pods or self.shape.queue or _queue(labels) or namespace_queues.get(namespace) or DEFAULT_QUEUE
        given = min((role.given for role in self.roles), key=lambda one: one.value)
        base = Workload(
            name=self.name, namespace=namespace, queue=queue, priority=given.value, created_at=now,
            preemption_policy=_policy(role.given.preemption_policy for role in self.roles),
            owner_kind=self.kind.kind, topology=self.shape.topology,
            labels=labels, annotations=self.metadata.values.get("annotations", {}),
        )  # fmt: skip
        groups = self.shape.as_sub_groups() if self.min_member is None and self.kind.unit != "pod" else ()
        together = None if groups else self.min_member or self.shape.together
        for number in range(count):
            name = f"{self.name}-{number}" if self.kind.unit == "label" else self.name
            tasks = tuple(self._tasks(name, grouped=bool(groups)))
            if self.kind.unit == "pod":
                yield from (replace(base, name=task.name, tasks=(replace(task, order=None),)) for task in tasks)
            else:
                yield replace(base, name=name, tasks=tasks, sub_groups=groups, min_member=together)

    def _tasks(self, name: str, *, grouped: bool) -> Iterator[Task]:
        ordered = []
        for role in self.roles:
            stem = f"{name}-{role.name}" if role.name else name
            group = (self.shape.roles[role.number].name or None) if grouped else None
            for number in range(self.shape.roles[role.number].replicas):
                order = self.shape.order_of(role.number, number) if role.name else None
                ordered.append(replace(role.task, name=f"{stem}-{number}", order=order, sub_group=group))
        yield from sorted(ordered, key=lambda task: task.order or 0)


@cache
def _additions_entry() -> EntryKind:
    fields = (
        RecordField("apiVersion", "api_version", ChoiceKind(API_VERSIONS)),
        RecordField("kind", "kind", ChoiceKind((CLUSTER_KIND,))),
        RecordField("workloads", "workloads", ListKind(workload_entry(), most=MOST_ADDED)),
    )
    return EntryKind(Workload, fields, name="Additions")


def _queue(labels: dict[str, str]) -> str:
    return next((labels[key] for key in QUEUE_LABELS if labels.get(key)), "")


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
        preemption_policy=_policy(pod.preemption_policy for pod in pods),
        min_member=max(minima) if minima else None,
        tasks=tuple(pod.task for pod in pods),
        created_at=first.reader.now,
        labels=first.labels,
        annotations={k: v for k, v in first.annotations.items() if all(p.annotations.get(k) == v for p in pods)},
    )


def _policy(stated: Iterable[ContenderPolicy | None]) -> ContenderPolicy | None:
    """Give the policy of a workload: nothing is evicted for it where one of its pods says so."""
    return "Never" if any(policy == NEVER for policy in stated) else None


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
