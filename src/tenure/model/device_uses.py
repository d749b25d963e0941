"""The claims of a cluster on devices, read into what its tasks use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from tenure.model.cluster import Cluster
from tenure.model.devices import DeviceClaim, DeviceClass, DeviceUse, ExactDevices
from tenure.model.workload import Task, TaskSpec, Workload

LONGEST_EXPRESSION: Final = 10 * 1024
"""Characters of a selector's expression, as in Kubernetes."""

MOST_REQUESTS: Final = 32
"""Requests and constraints of a claim, alternatives of a request, selectors of each, as in Kubernetes."""


class DeviceUseResolver:
    """The maker of uses, from the claims (by namespace/name) and the classes of a cluster."""

    def __init__(self, claims: Mapping[str, DeviceClaim], classes: Mapping[str, DeviceClass]) -> None:
        self._claims = claims
        self._classes = classes

    def of(self, key: str) -> DeviceUse:
        """Give what the claim of that namespace and name makes of placement."""
        name = key.partition("/")[2]
        claim = self._claims.get(key)
        if claim is None:
            return DeviceUse(claim=key, awaits=f"resource claim {name}, which is not there")
        if claim.is_going:
            return DeviceUse(claim=key, awaits=f"resource claim {name}, which is being deleted")
        if claim.allocation is not None:
            return DeviceUse(
                claim=key, requests=claim.requests, constraints=claim.constraints, allocation=claim.allocation
            )
        if claim.unsupported:
            return DeviceUse(claim=key, unsupported=f"resource claim {name} ({claim.unsupported})")
        for request in claim.requests:
            for _, asked in request.options:
                if asked.class_name not in self._classes:
                    missing = f"resource claim {name}: there is no device class {asked.class_name}"
                    return DeviceUse(claim=key, awaits=missing)
        return DeviceUse(claim=key, requests=claim.requests, constraints=claim.constraints, unsupported=_beyond(claim))


def _beyond(claim: DeviceClaim) -> str:
    """Say which bound a claim exceeds; empty if none."""
    asked = [exactly for request in claim.requests for _, exactly in request.options]
    lists = (
        claim.requests,
        claim.constraints,
        *(r.first_available for r in claim.requests),
        *(a.selectors for a in asked),
    )
    if any(len(listed) > MOST_REQUESTS for listed in lists):
        return f"resource claim {claim.name} (more than {MOST_REQUESTS} requests, constraints or selectors)"
    if any(_is_long(a) for a in asked):
        return f"resource claim {claim.name} (a selector of more than {LONGEST_EXPRESSION:,} characters)"
    return ""


def _is_long(asked: ExactDevices) -> bool:
    return any(len(selector.cel.expression) > LONGEST_EXPRESSION for selector in asked.selectors)


def uses_of(claims: Iterable[DeviceClaim], classes: Iterable[DeviceClass]) -> DeviceUseResolver:
    """Give what makes uses of some claims."""
    return DeviceUseResolver({claim.key: claim for claim in claims}, {found.name: found for found in classes})


def with_device_uses(cluster: Cluster) -> Cluster:
    """Give a cluster whose tasks know what becomes of the claims on devices that they name."""
    resolver = uses_of(cluster.devices.claims, cluster.devices.classes)
    return replace(cluster, workloads=using(cluster.workloads, resolver))


def using(workloads: Iterable[Workload], resolver: DeviceUseResolver) -> tuple[Workload, ...]:
    """Give workloads whose tasks know what becomes of the claims that they name; equal specs stay one object."""
    known: dict[tuple[int, str], TaskSpec] = {}
    listed = tuple(workloads)

    def resolved(task: Task, namespace: str) -> Task:
        spec = task.spec
        if not spec.resource_claims:
            return task
        key = id(spec), namespace
        found = known.get(key)
        if found is None:
            uses = tuple(resolver.of(f"{namespace}/{name}") for name in spec.resource_claims)
            found = known[key] = replace(spec, device_uses=uses)
        return replace(task, spec=found)

    def changed(workload: Workload) -> Workload:
        if not any(task.spec.resource_claims for task in workload.tasks):
            return workload
        return replace(workload, tasks=tuple(resolved(task, workload.namespace) for task in workload.tasks))

    return tuple(map(changed, listed))
