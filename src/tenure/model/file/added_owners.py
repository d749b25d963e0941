"""Objects that own pods, on their way into workloads that might be submitted: what they make of their templates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from tenure.model.cluster import DEFAULT_QUEUE
from tenure.model.entries import EntryValues
from tenure.model.file.added_pods import OwnClaim, PodManifestReader, policy_of, queue_of
from tenure.model.manifests.claims import read_template
from tenure.model.manifests.pods import read_annotations
from tenure.model.manifests.priority_classes import PriorityClass
from tenure.model.manifests.workload_kind import MOST_ROLES, OwnerShape, WorkloadKind, WorkloadKinds, shape_of
from tenure.model.values.report import Trail, trail_of, unroll
from tenure.model.workload import Phase, Task, Workload

_INSTEAD = "add what it makes: Pods, Jobs or workloads"
_STATEFUL_SET = "StatefulSet"


class OwnerManifestReader:
    """Reads objects that own pods, with the pods of their templates. ``now`` is in µs since the epoch."""

    def __init__(self, pods: PodManifestReader, now: int, namespace_queues: Mapping[str, str]) -> None:
        self.pods = pods
        self.report = pods.report
        self.now = now
        self.namespace_queues = namespace_queues

    def workloads(
        self, kind: WorkloadKind, value: dict[str, Any], at: Trail, kinds: WorkloadKinds
    ) -> Iterator[Workload]:
        """Give what an object makes, as it would be read on a cluster."""
        metadata = self.pods.metadata(value, at)
        shape = shape_of(kind, value, kinds, with_templates=True).with_roles(range(MOST_ROLES))
        for place, message in shape.problems:
            self.report.add(trail_of((*unroll(at), *place)), message)
        roles = list(self._roles(kind, shape, at, metadata.values.get("namespace", "default")))
        if not roles or shape.problems:
            return
        name, extra = self.pods.name(metadata), read_annotations(metadata, self.report)
        made = _OwnedWorkload(kind, shape, name, metadata, tuple(roles), extra.get("min_member"))
        count = made.units(value)
        if not self.pods.expander.takes(count * sum(shape.roles[role.number].replicas for role in roles), (at, "spec")):
            return
        of_set = self._of_set(kind, value, metadata, at)
        for found in made.workloads(count, self.now, self.namespace_queues):
            tasks = [self.pods.mounting_own(t, (*made.own_of(t), *of_set)) for t in found.tasks]
            yield replace(found, tasks=tuple(tasks))

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
        inner = self.pods.metadata(role.template, at)
        pod = self.pods.described(role.template, at, inner, namespace)
        if pod is None:
            return None
        pod.extra.pop("min_member", None)
        task = self.pods.task(role.name, pod, inner.at, inner)
        if shape.suspended:
            task = replace(task, phase=Phase.GATED)
        name = role.name.lower() if is_named else ""
        return _OwnedRole(number, name, task, pod.given, inner.values.get("labels", {}), pod.own)

    def _of_set(self, kind: WorkloadKind, value: dict[str, Any], metadata: EntryValues, at: Trail) -> list[OwnClaim]:
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
                found.append(OwnClaim(f"{name or number}-" + "{0}", claim))
        return found


class _OwnedRole(NamedTuple):
    """The pods of one role: its number among the roles, its name where there are several, and what each pod is like."""

    number: int
    name: str
    task: Task
    given: PriorityClass
    labels: dict[str, str]
    own: tuple[OwnClaim, ...]


@dataclass(frozen=True, slots=True)
class _OwnedWorkload:
    """What an owner makes, on its way into workloads."""

    kind: WorkloadKind
    shape: OwnerShape
    name: str
    metadata: EntryValues
    roles: tuple[_OwnedRole, ...]
    min_member: int | None

    def own_of(self, task: Task) -> tuple[OwnClaim, ...]:
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
        of_pods = next((queue for role in self.roles if (queue := queue_of(role.labels))), "")
        queue = of_pods or self.shape.queue or queue_of(labels) or namespace_queues.get(namespace) or DEFAULT_QUEUE
        given = min((role.given for role in self.roles), key=lambda one: one.value)
        base = Workload(
            name=self.name, namespace=namespace, queue=queue, priority=given.value, created_at=now,
            preemption_policy=policy_of(role.given.preemption_policy for role in self.roles),
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
