"""What stands on nodes of other pools, for constraints that look across the border of a pool.

A zone has nodes of several pools. So a pod of another pool counts for anti-affinity, affinity and spread by zone, as it
does for kube-scheduler. Nothing is placed there, and nothing of it is decided.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Final

from tenure.clusters.kubernetes.cache.handlers import GroupKey
from tenure.clusters.kubernetes.cache.pod_records import PodRecord
from tenure.model.cluster import DEFAULT_QUEUE
from tenure.model.node import Node
from tenure.model.selectors import Affinity, PodAffinity
from tenure.model.values.resources import PODS
from tenure.model.workload import Phase, Task, TaskSpec, Workload

OUTSIDE: Final = "other-pool"
"""Scheduler of what stands on nodes of other pools."""

_NAME: Final = ":outside"
"""Name of such workloads, one in each namespace; no pod and no group can have it."""

_HOST: Final = "kubernetes.io/hostname"
_THERE: Final = frozenset({Phase.BOUND, Phase.RUNNING, Phase.TERMINATING})


class Outside:
    """Keeps by group what looks across the border, and what stands beyond it."""

    def __init__(self) -> None:
        self._tasks: dict[GroupKey, tuple[Task, ...]] = {}
        self._looking: set[GroupKey] = set()
        self._repelling: set[GroupKey] = set()

    def take(self, group: GroupKey, own: Iterable[PodRecord], others: Iterable[PodRecord]) -> None:
        """Take a group as it is now: its pods in the pool, and those on nodes of other pools."""
        beyond = tuple(_task(record) for record in others if record.task.phase in _THERE)
        _keep(self._looking, group, holds=any(_looks_far(record.task.spec) for record in own))
        _keep(self._repelling, group, holds=any(task.spec.affinity is not None for task in beyond))
        if beyond:
            self._tasks[group] = beyond
        else:
            self._tasks.pop(group, None)

    def nodes(self, nodes: Mapping[str, Node], inside: Collection[str]) -> tuple[Node, ...]:
        """Give the nodes of other pools where anything looks across the border; else none."""
        if not self._looking and not self._repelling:
            return ()
        return tuple(
            replace(node, outside=True, drain=False, allocatable={PODS: 0}, gpu_memory=None)
            for name, node in sorted(nodes.items())
            if name not in inside
        )

    def workloads(self, nodes: Iterable[Node]) -> tuple[Workload, ...]:
        """Give what stands on these nodes, as one workload for each namespace."""
        names = {node.name for node in nodes}
        if not names:
            return ()
        found: dict[str, list[Task]] = {}
        for group, tasks in sorted(self._tasks.items()):
            found.setdefault(group[0], []).extend(task for task in tasks if task.node in names)
        return tuple(
            Workload(
                name=_NAME,
                namespace=namespace,
                tasks=tuple(tasks),
                queue=DEFAULT_QUEUE,
                scheduler_name=OUTSIDE,
                created_at=0,
                min_member=1,
            )
            for namespace, tasks in found.items()
            if tasks
        )


def _keep(groups: set[GroupKey], group: GroupKey, *, holds: bool) -> None:
    if holds:
        groups.add(group)
    else:
        groups.discard(group)


def _looks_far(spec: TaskSpec) -> bool:
    """Whether anything that a task asks for looks at more than one node: terms, a claim that it uses alone."""
    if any(mount.is_exclusive for mount in spec.mounts):
        return True
    if any(constraint.topology_key != _HOST for constraint in spec.spread):
        return True
    affinity = spec.affinity
    kinds = () if affinity is None else (affinity.pod, affinity.pod_anti)
    terms = (term for kind in kinds if kind is not None for term in (*kind.required, *(p.term for p in kind.preferred)))
    return any(term.topology_key != _HOST for term in terms)


def _task(record: PodRecord) -> Task:
    """Give the task with what others can see of it: its labels, whom it keeps away, and what it uses alone."""
    task, affinity = record.task, None
    anti = task.spec.affinity.pod_anti if task.spec.affinity is not None else None
    far = tuple(term for term in anti.required if term.topology_key != _HOST) if anti is not None else ()
    if far:
        affinity = Affinity(pod_anti=PodAffinity(required=far))
    alone = tuple(mount for mount in task.spec.mounts if mount.is_exclusive)
    spec = TaskSpec(labels=task.spec.labels, affinity=affinity, mounts=alone)
    return Task(
        name=task.name,
        spec=spec,
        phase=task.phase,
        node=task.node,
        terminating_since=task.terminating_since,
        grace_period=task.grace_period,
    )
