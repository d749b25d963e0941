"""Pods that have ended for good in Jobs of an owner: each Job says it of its own, and their owner of whole Jobs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from tenure.clusters.kubernetes.cache.owners import OwnerLink
from tenure.clusters.kubernetes.cache.pod_records import PodRecord
from tenure.clusters.kubernetes.read.groups import GroupDeclaration
from tenure.model.manifests.workload_kind import JOB, OwnerShape
from tenure.model.workload import Phase

_ENDED = (Phase.SUCCEEDED, Phase.FAILED)


def with_ended_jobs(
    shape: OwnerShape, pods: Iterable[PodRecord], said_of: Callable[[OwnerLink], GroupDeclaration | None]
) -> OwnerShape:
    """Give what an owner says with the pods counted that have ended in those of its Jobs that go on.

    Of Jobs that have ended as a whole it says so itself. ``said_of`` gives what one of its Jobs says.
    """
    roles: dict[OwnerLink, int] = {}
    for pod in pods:
        job = next((link for link in pod.owners.links[: pod.owners.deciding] if link.kind == JOB), None)
        role = shape.role_of(pod.labels)
        if job is not None and role is not None and pod.task.phase not in _ENDED:
            roles[job] = role
    ended: Counter[int] = Counter()
    for job, role in roles.items():
        about = said_of(job)
        if about is not None and about.shape is not None:
            ended[role] += min(about.shape.ended, about.shape.together)
    return shape.with_ended(ended)
