"""The storage of a cluster, read into what its tasks mount."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tenure.model.cluster import Cluster
from tenure.model.mounts import MountResolver
from tenure.model.volumes import Storage, VolumeClaim
from tenure.model.workload import Task, TaskSpec, Workload


def resolver_of(storage: Storage, more: Iterable[VolumeClaim] = ()) -> MountResolver:
    """Give what makes mounts of the claims of a cluster, and of ``more``."""
    return MountResolver(
        {claim.key: claim for claim in (*storage.claims, *more)},
        {volume.name: volume for volume in storage.volumes},
        {found.name: found for found in storage.storage_classes},
        {driver.name: driver for driver in storage.drivers},
        storage.capacities,
    )


def with_mounts(cluster: Cluster) -> Cluster:
    """Give a cluster whose tasks know what becomes of the claims that they name."""
    return replace(cluster, workloads=mounting(cluster.workloads, resolver_of(cluster.storage)))


def mounting(workloads: Iterable[Workload], resolver: MountResolver) -> tuple[Workload, ...]:
    """Give workloads whose tasks know what becomes of the claims that they name; equal specs stay one object."""
    known: dict[tuple[int, str], TaskSpec] = {}
    listed = tuple(workloads)

    def resolved(spec: TaskSpec, namespace: str) -> TaskSpec:
        if not spec.claims:
            return spec
        key = id(spec), namespace
        found = known.get(key)
        if found is None:
            mounts = tuple(resolver.of(f"{namespace}/{name}") for name in spec.claims)
            found = known[key] = replace(spec, mounts=mounts)
        return found

    def changed(workload: Workload) -> Workload:
        if not any(task.spec.claims for task in workload.tasks):
            return workload
        return replace(workload, tasks=tuple(_with(t, resolved(t.spec, workload.namespace)) for t in workload.tasks))

    return tuple(map(changed, listed))


def _with(task: Task, spec: TaskSpec) -> Task:
    return task if spec is task.spec else replace(task, spec=spec)
