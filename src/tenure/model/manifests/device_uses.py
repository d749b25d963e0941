"""The claims of a cluster on devices, read into what its tasks use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from tenure.model.cluster import Cluster
from tenure.model.device_resources import counts_of
from tenure.model.devices import MOST_RESULTS, DeviceClaim, DeviceClass, DeviceUse, ExactDevices
from tenure.model.manifests.devices import OF_TEMPLATE
from tenure.model.manifests.extended_resources import OF_CLASS, implied_uses, served_by, serves
from tenure.model.settings import Settings
from tenure.model.values.resources import GPU, MILLI, Amounts
from tenure.model.workload import Task, TaskSpec, Workload

LONGEST_EXPRESSION: Final = 10 * 1024
"""Characters of a selector's expression, as in Kubernetes."""

MOST_REQUESTS: Final = 32
"""Requests and constraints of a claim, alternatives of a request, selectors of each, as in Kubernetes."""


class DeviceUseResolver:
    """The maker of uses, from the claims (by namespace/name) and the classes of a cluster.

    ``settings`` say what a device of a class, or of its extended resource, counts for queues. ``served`` has the class
    that serves each extended resource; it is made of the classes where it is not known yet.
    """

    def __init__(
        self,
        claims: Mapping[str, DeviceClaim],
        classes: Mapping[str, DeviceClass],
        settings: Settings,
        served: Mapping[str, str] | None = None,
    ) -> None:
        self._claims = claims
        self._classes = classes
        self._settings = settings
        self.served = served_by(classes.values()) if served is None else served

    def of(self, key: str) -> DeviceUse:
        """Give what the claim of that namespace and name makes of placement."""
        name = key.partition("/")[2]
        claim = self._claims.get(key)
        if claim is None:
            return DeviceUse(claim=key, awaits=f"resource claim {name}, which is not there")
        return self.use_of(claim)

    def use_of(self, claim: DeviceClaim) -> DeviceUse:
        """Give what a claim makes of placement."""
        key, name = claim.key, claim.name
        if claim.is_going:
            return DeviceUse(claim=key, awaits=f"resource claim {name}, which is being deleted")
        if claim.allocation is not None:
            return DeviceUse(
                claim=key, requests=claim.requests, constraints=claim.constraints, allocation=claim.allocation,
                counted=self._counted(claim), payer=next(iter(claim.reserved_for), ""),
            )  # fmt: skip
        if claim.unsupported:
            return DeviceUse(claim=key, unsupported=f"resource claim {name} ({claim.unsupported})")
        for request in claim.requests:
            for _, asked in request.options:
                if asked.class_name not in self._classes:
                    missing = f"resource claim {name}: there is no device class {asked.class_name}"
                    return DeviceUse(claim=key, awaits=missing)
        return DeviceUse(
            claim=key, requests=claim.requests, constraints=claim.constraints, unsupported=_beyond(claim),
            counted=self._counted(claim),
        )  # fmt: skip

    def _counted(self, claim: DeviceClaim) -> Amounts:
        """Give what the devices of a claim count: those that it has; else the least that would meet its requests."""
        if claim.is_made:
            return ()  # the pod's requests count
        options = {name: asked for request in claim.requests for name, asked in request.options}
        if claim.allocation is not None:
            got = [d for d in claim.allocation.devices if not d.has_admin_access and d.request in options]
            return _sum((self._of(options[d.request].class_name, 1)) for d in got)
        least = [
            min((self._of(a.class_name, _fewest(a)) for _, a in request.options), key=lambda found: sum(found.values()))
            for request in claim.requests
            if request.options
        ]
        return _sum(least)

    def count_of(self, class_name: str) -> dict[str, int]:
        """Give what a device of a class counts."""
        return self._of(class_name, 1)

    def made_for(self, key: str, spec: TaskSpec) -> tuple[str, ...]:
        """Give the extended resources of a task that a claim serves; none for a claim that a user made."""
        claim = self._claims.get(key)
        return () if claim is None or not claim.is_made else serves(claim, spec)

    def _of(self, class_name: str, devices: int) -> dict[str, int]:
        counts = self._settings.device_classes.get(class_name)
        if counts is None:
            known = self._classes.get(class_name)
            name = "" if known is None else known.extended_resource
            counts = {**counts_of(name, self._settings), name: MILLI if name == GPU else 1} if name else {}
        return {name: amount * devices for name, amount in counts.items()}


def _fewest(asked: ExactDevices) -> int:
    return 0 if asked.has_admin_access or asked.mode == "All" else min(asked.count, MOST_RESULTS)


def _sum(parts: Iterable[Mapping[str, int]]) -> Amounts:
    found: dict[str, int] = {}
    for part in parts:
        for name, amount in part.items():
            found[name] = found.get(name, 0) + amount
    return tuple(sorted((name, amount) for name, amount in found.items() if amount))


def class_counts(classes: Iterable[DeviceClass], settings: Settings) -> dict[str, dict[str, int]]:
    """Give what a device of each class counts for queues, in their units."""
    resolver = DeviceUseResolver({}, {found.name: found for found in classes}, settings)
    found = {known.name: resolver.count_of(known.name) for known in classes}
    return {name: counts for name, counts in found.items() if counts}


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


def uses_of(claims: Iterable[DeviceClaim], classes: Iterable[DeviceClass], settings: Settings) -> DeviceUseResolver:
    """Give what makes uses of some claims."""
    known = {found.name: found for found in classes}
    return DeviceUseResolver({claim.key: claim for claim in claims}, known, settings)


def using_devices(spec: TaskSpec, uses: tuple[DeviceUse, ...], resolver: DeviceUseResolver, pod: str = "") -> TaskSpec:
    """Give the spec of a task that uses devices; ``pod`` is the uid of its pod, where that is known."""
    counted = [dict(use.counted) for use in uses if use.payer in ("", pod) or not pod]
    for name, amount in spec.requests:
        if name.startswith(OF_CLASS) and name in resolver.served:  # it counts for queues as what its class says
            each = resolver.count_of(resolver.served[name])
            counted.append({resource: many * amount for resource, many in each.items()})
    return replace(spec, device_uses=uses, counted=_sum(counted))


def with_device_uses(cluster: Cluster) -> Cluster:
    """Give a cluster whose tasks know what becomes of the claims on devices that they name."""
    resolver = uses_of(cluster.devices.claims, cluster.devices.classes, cluster.settings)
    return replace(cluster, workloads=using(cluster.workloads, resolver))


def using(
    workloads: Iterable[Workload], resolver: DeviceUseResolver, templates: Mapping[str, DeviceClaim] | None = None
) -> tuple[Workload, ...]:
    """Give workloads whose tasks know what becomes of the claims that they name; equal specs stay one object.

    ``templates`` are those of claims, by namespace/name: each task gets a claim of its own of one that it names.
    """
    known: dict[tuple[int, str], TaskSpec] = {}
    listed = tuple(workloads)

    def resolved(task: Task, namespace: str) -> Task:
        spec = task.spec
        if not concerns(spec, resolver):
            return task
        key = id(spec), namespace
        found = known.get(key)
        if found is None:
            uses = tuple(_use(resolver, templates or {}, namespace, task, name) for name in spec.resource_claims)
            names = tuple(use.claim.partition("/")[2] for use in uses)
            uses = tuple(replace(use, resources=resolver.made_for(use.claim, spec)) for use in uses)
            implied = _implied(resolver, namespace, task, uses)
            found = using_devices(replace(spec, resource_claims=names), (*uses, *implied), resolver)
            if names == spec.resource_claims and not implied:
                known[key] = found
        return replace(task, spec=found)

    def changed(workload: Workload) -> Workload:
        if not any(concerns(task.spec, resolver) for task in workload.tasks):
            return workload
        return replace(workload, tasks=tuple(resolved(task, workload.namespace) for task in workload.tasks))

    return tuple(map(changed, listed))


def concerns(spec: TaskSpec, resolver: DeviceUseResolver) -> bool:
    """Whether a task uses devices, by claims that it names or by extended resources."""
    served = resolver.served
    return bool(spec.resource_claims) or (bool(served) and any(name in served for name, _ in spec.requests))


def _implied(
    resolver: DeviceUseResolver, namespace: str, task: Task, uses: tuple[DeviceUse, ...]
) -> tuple[DeviceUse, ...]:
    """Give what a task uses beside the claims that it names, where none of these serves its extended resources."""
    if any(use.resources for use in uses):
        return ()
    return implied_uses(namespace, task.name, task.spec, resolver.served)


def _use(
    resolver: DeviceUseResolver, templates: Mapping[str, DeviceClaim], namespace: str, task: Task, name: str
) -> DeviceUse:
    """Give what a task uses by a claim that it names, or by the one that a template makes for it."""
    if not name.startswith(OF_TEMPLATE):
        return resolver.of(f"{namespace}/{name}")
    template, _, entry = name.removeprefix(OF_TEMPLATE).partition("/")
    made, key = templates.get(f"{namespace}/{template}"), f"{namespace}/{task.name}-{entry}"
    if made is None:
        return DeviceUse(claim=key, awaits=f"resource claim template {template}, which is not there")
    return resolver.use_of(replace(made, name=f"{task.name}-{entry}", namespace=namespace))
