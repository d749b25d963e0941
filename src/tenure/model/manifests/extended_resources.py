"""Extended resources that devices serve where no device plugin does (KEP-5004): pods ask for them as for any resource.

A class says the name of its resource; each class is also asked for by a name of its own. Semantics are those of
Kubernetes 1.37: on a node that has none of the resource by itself, devices of the class are given to a claim that the
scheduler makes for the pod.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any, Final

from tenure.model.devices import DeviceClaim, DeviceClass, DeviceRequest, DeviceUse, ExactDevices, ExtendedRequest
from tenure.model.manifests.pod_requests import asked_by, values_of
from tenure.model.workload import TaskSpec

OF_CLASS: Final = "deviceclass.resource.kubernetes.io/"
"""What begins the resource by which every class may be asked for."""

_NATIVE: Final = "kubernetes.io/"
_QUOTA: Final = "requests."
_NANO: Final = 10**9
_LONGEST_NAME: Final = 253 - len("-extended-resources-") - 8


def is_extended(resource: str) -> bool:
    """Whether a resource is one that a class of devices may serve."""
    if resource.startswith(OF_CLASS):
        return True
    return "/" in resource and _NATIVE not in resource and not resource.startswith(_QUOTA)


def served_by(classes: Iterable[DeviceClass]) -> dict[str, str]:
    """Give the class that serves each resource: of several with one name the newest, then the first by name."""
    found: dict[str, str] = {}
    listed = list(classes)
    for known in sorted(listed, key=lambda c: (-(c.created_at or 0), c.name)):
        if known.extended_resource:
            found.setdefault(known.extended_resource, known.name)
    return found | {f"{OF_CLASS}{known.name}": known.name for known in listed}


def extended_requests(spec: Mapping[str, Any]) -> Iterator[ExtendedRequest]:
    """Give what the containers of a pod ask for of extended resources, as requests of a claim would name it.

    A request is named by the places of its container and of the resource in it. Init containers run one after the
    other: they use what later containers have, and of what they need beyond that the most counts.
    """
    first = values_of(spec.get("initContainers", ()))
    containers = [*first, *values_of(spec.get("containers", ()))]
    asked = [asked_by(container) for container in containers]
    lasting = [n >= len(first) or c.get("restartPolicy") == "Always" for n, c in enumerate(containers)]
    names = [str(c.get("name", "")) for c in containers]
    for resource in sorted({name for amounts in asked for name in amounts if is_extended(name)}):
        yield from _of_resource(resource, asked, lasting, names)


def _of_resource(
    resource: str, asked: Sequence[Mapping[str, int]], lasting: Sequence[bool], names: Sequence[str]
) -> Iterator[ExtendedRequest]:
    counts = [_whole(amounts.get(resource, 0)) for amounts in asked]
    titles = [
        f"container-{n}-request-{sorted(a).index(resource)}" if resource in a else "" for n, a in enumerate(asked)
    ]
    users: dict[int, list[str]] = {n: [names[n]] for n, count in enumerate(counts) if count and lasting[n]}
    beyond: dict[int, int] = {}
    for number, count in enumerate(counts):
        if not count or lasting[number]:
            continue
        for other in range(number, len(counts)):
            if other in users and count > 0:
                users[other].append(names[number])
                count -= counts[other]  # noqa: PLW2901  what is left to be met
        if count > 0:
            beyond[number] = count
    for number, using in users.items():
        yield ExtendedRequest(resource, titles[number], counts[number], tuple(using))
    if beyond:
        most = max(beyond, key=lambda n: (beyond[n], -n))
        yield ExtendedRequest(resource, titles[most], beyond[most], tuple(names[n] for n in beyond))


def _whole(nano: int) -> int:
    return nano // _NANO if nano % _NANO == 0 else 0


def asked_of(spec: TaskSpec, served: Mapping[str, str]) -> tuple[ExtendedRequest, ...]:
    """Give what a task asks for of served resources; where its containers are not known, as one that asks for all."""
    if spec.extended:
        return tuple(request for request in spec.extended if request.resource in served)
    names = sorted(name for name, _ in spec.requests)
    return tuple(
        ExtendedRequest(name, f"container-0-request-{names.index(name)}", amount)
        for name, amount in spec.requests
        if amount and name in served
    )


def name_of_implied(pod: str, number: int) -> str:
    """Give the name that stands for a claim that is made for a pod when it is bound; no object can be called so."""
    return f"{pod}-extended-resources-{number}-"


def made_claim_name(pod: str, uid: str) -> str:
    """Give the name of the claim that Tenure makes for a pod: always the same, so that none is made twice."""
    number = int.from_bytes(sha256(uid.encode()).digest()[:4], "big")
    return f"{pod[:_LONGEST_NAME]}-extended-resources-{number:08x}"


def is_implied(claim: str) -> bool:
    """Whether a claim is one that is made for a pod when it is bound, by its name with or without its namespace."""
    return claim.endswith("-")


def implied_uses(namespace: str, pod: str, spec: TaskSpec, served: Mapping[str, str]) -> tuple[DeviceUse, ...]:
    """Give what a pod that is placed nowhere yet uses of devices for the served resources that it asks for."""
    by_resource: dict[str, list[ExtendedRequest]] = {}
    for request in asked_of(spec, served):
        by_resource.setdefault(request.resource, []).append(request)
    return tuple(
        DeviceUse(
            claim=f"{namespace}/{name_of_implied(pod, number)}",
            requests=tuple(device_request(request, served[resource]) for request in requests),
            resources=(resource,),
        )
        for number, (resource, requests) in enumerate(sorted(by_resource.items()))
    )


def device_request(request: ExtendedRequest, class_name: str) -> DeviceRequest:
    """Give the request of a claim for what containers ask for."""
    return DeviceRequest(name=request.name, exactly=ExactDevices(class_name=class_name, count=request.count))


def serves(claim: DeviceClaim, spec: TaskSpec) -> tuple[str, ...]:
    """Give the extended resources of a task that a claim which was made for it serves."""
    names = {request.name for request in claim.requests}
    found = {request.resource for request in spec.extended if request.name in names}
    return tuple(sorted(found or {name for name, _ in spec.requests if is_extended(name)}))
