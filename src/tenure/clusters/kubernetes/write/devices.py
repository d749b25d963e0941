"""Claims on devices: what is written before the pod that uses them is bound, and what is given back.

A claim gets a finalizer, then its devices and the pod that they are reserved for in one write; then the pod is bound.
After a crash between two of these the next leader finds what was written. It places the pod where its devices are, or
gives them back where the pod has no place there; of a pod that is gone, the controller of claims gives them back.
What devices serve of a pod's extended resources is given to a claim that is made for it first.
"""

from __future__ import annotations

import uuid
from collections.abc import Container, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from tenure.clusters.kubernetes import api
from tenure.clusters.kubernetes.cache.informers import InformerCache
from tenure.clusters.kubernetes.cache.pod_records import TENURE, PodRecord
from tenure.clusters.kubernetes.client.requests import MERGE, ApiError, Client
from tenure.clusters.kubernetes.decoding import decode
from tenure.clusters.kubernetes.read.device_inventory import claim_of
from tenure.clusters.kubernetes.read.storage import ConvertedObjects
from tenure.clusters.kubernetes.write.made_claims import (
    CLAIMS,
    FINALIZER,
    MadeClaims,
    claim_path,
    newest_claim,
)
from tenure.engine.plan import ClaimedDevices, PlanStep
from tenure.model.device_readiness import readiness
from tenure.model.devices import AllocatedDevice, DeviceAllocation, DeviceClaim
from tenure.model.fields.records import record_of
from tenure.model.manifests.extended_resources import is_implied, made_claim_name
from tenure.model.selectors import NodeSelector
from tenure.model.values.duration import format_time
from tenure.model.values.quantity import format_nano
from tenure.model.workload import Phase

_GONE: Final = 404
_CONFLICT: Final = 409
_TRIES: Final = 5


class DeviceWriter:
    """The writer of the devices of claims, and of the pods that they are reserved for."""

    def __init__(self, client: Client, informers: InformerCache) -> None:
        self._client = client
        self._informers = informers
        self._claims = ConvertedObjects(lambda: informers.objects[CLAIMS], claim_of)
        self._made = MadeClaims(client, informers)

    def give(self, claims: Iterable[ClaimedDevices], pod: PodRecord, now: int) -> None:
        """Write what the claims of a pod get at ``now``, unless that stands there, and reserve it for the pod.

        Raises
        ------
        ApiError
            If that is refused, or if a claim has other devices by now.
        """
        for claim, allocation in self._made.settled(claims, pod):
            namespace, _, name = claim.partition("/")
            given = allocation if allocation.at is not None else replace(allocation, at=now)
            self._retried((namespace, name), lambda item, a=given: self._give(item, a, pod))
            self._made.tell(claim, pod)

    def _retried(self, key: tuple[str, str], write: Any) -> None:
        """Write on a claim, once more on its newest state where it has changed meanwhile."""
        item = self._informers.objects[CLAIMS].items.get(key)
        for attempt in range(_TRIES):
            if item is None:
                raise ApiError(_GONE, "NotFound", f"resource claim {key[1]} is gone")
            try:
                write(item)
            except ApiError as error:
                if error.status != _CONFLICT or attempt == _TRIES - 1:
                    raise
                item = self._newest(key)
            else:
                return

    def _newest(self, key: tuple[str, str]) -> api.ApiObject:
        item, answer = newest_claim(self._client, *key)
        self._informers.wrote(CLAIMS, answer)
        return item

    def _give(self, item: api.ApiObject, allocation: DeviceAllocation, pod: PodRecord) -> None:
        status = item.status if isinstance(item.status, dict) else {}
        reserved = list(status.get("reservedFor") or ())
        told: dict[str, Any] = {}
        if status.get("allocation") is None:
            if FINALIZER not in (item.metadata.finalizers or ()):
                item = self._patched(item, {"finalizers": [*(item.metadata.finalizers or ()), FINALIZER]})
            told["allocation"] = self._written(item, allocation)
        elif _devices_of(status["allocation"]) != sorted(d.key for d in allocation.devices):
            raise ApiError(0, "Conflict", f"resource claim {item.metadata.name} has other devices by now")
        if all(one.get("uid") != pod.uid for one in reserved):
            told["reservedFor"] = [*reserved, {"resource": "pods", "name": pod.name, "uid": pod.uid}]
        if told:
            self._patched(item, {}, told)

    def _patched(
        self, item: api.ApiObject, meta: dict[str, Any], status: dict[str, Any] | None = None
    ) -> api.ApiObject:
        """Change a claim of that version, or its status."""
        body: dict[str, Any] = {"metadata": {"resourceVersion": item.metadata.resource_version, **meta}}
        path = claim_path(item.metadata.namespace, item.metadata.name)
        if status is not None:
            body["status"], path = status, f"{path}/status"
        answer = self._client.patch(path, body, MERGE)
        self._informers.wrote(CLAIMS, answer)
        return decode(answer, api.ApiObject)

    def _written(self, item: api.ApiObject, allocation: DeviceAllocation) -> dict[str, Any]:
        """Give an allocation as the API has it, with what drivers are to be told."""
        devices = item.spec.get("devices") or {}
        asked = _requests_of(devices)
        classes = self._informers.objects["deviceclasses"].items
        names = dict.fromkeys(d.request for d in allocation.devices)
        config: list[dict[str, Any]] = []
        for found, requests in _by_class(names, asked).items():
            known = classes.get(("", found))
            spec = known.spec if known is not None and isinstance(known.spec, dict) else {}
            config += [{"source": "FromClass", "requests": requests, **c} for c in spec.get("config") or ()]
        for own in devices.get("config") or ():
            of = own.get("requests") or []
            if not of or any(name in of or name.partition("/")[0] in of for name in names):
                config.append({"source": "FromClaim", **own})
        results = [_result(d, asked.get(d.request, {})) for d in allocation.devices]
        found_devices = {"results": results, **({"config": config} if config else {})}
        nodes = allocation.nodes
        selector = {} if nodes is None else {"nodeSelector": record_of(NodeSelector).encode(nodes)}
        at = {} if allocation.at is None else {"allocationTimestamp": format_time(allocation.at)}
        return {"devices": found_devices, **selector, **at}

    # -- what has to be prepared --------------------------------------------------------------------------------------

    def awaited(self, step: PlanStep, pod: PodRecord, now: int, timeout: int) -> str:
        """Say what a pod waits for of the devices that it is to get; empty where all of them are ready."""
        for claim, allocation in step.claims:
            if not any(device.binding_conditions for device in allocation.devices):
                continue
            namespace, _, name = claim.partition("/")
            known = self._claims.get(f"{namespace}/{made_claim_name(pod.name, pod.uid) if is_implied(name) else name}")
            has_them = known is not None and known.allocation is not None
            found = known if known is not None and has_them else DeviceClaim(name=name, allocation=allocation)
            awaited = readiness(found, now, timeout).awaits
            if awaited or not has_them:
                return awaited
        return ""

    def failed(self, claims: Iterable[DeviceClaim], now: int, timeout: int) -> dict[str, str]:
        """Say of claims why their devices are given up, where their drivers report that, or nothing for too long."""
        looked = ((claim.key, readiness(claim, now, timeout).failed) for claim in claims)
        return {key: why for key, why in looked if why}

    # -- what is given back -----------------------------------------------------------------------------------------

    def give_back(self, claims: Iterable[DeviceClaim], steps: Iterable[PlanStep], failed: Container[str] = ()) -> None:
        """Take the devices from those claims of which all pods wait, and get no place by these steps.

        Those that ``failed`` lose them whatever the steps are.
        """
        placed = {(step.workload.partition("/")[0], step.task) for step in steps if step.action in ("bind", "nominate")}
        for claim in claims:
            key = claim.namespace, claim.name
            item = self._informers.objects[CLAIMS].items.get(key)
            status = item.status if item is not None and isinstance(item.status, dict) else {}
            reserved = status.get("reservedFor") or ()
            if item is None or status.get("allocation") is None or not reserved:
                continue
            if all(self._waits(key[0], one, () if claim.key in failed else placed) for one in reserved):
                try:
                    if claim.is_made:
                        self._made.delete(item)
                    else:
                        self._patched(item, {}, {"allocation": None, "reservedFor": None, "devices": None})
                except ApiError as error:
                    if error.status not in (_CONFLICT, _GONE):
                        raise

    def _waits(self, namespace: str, pod: Mapping[str, Any], placed: Container[tuple[str, str]]) -> bool:
        pods, key = self._informers.pods, (namespace, str(pod.get("name", "")))
        record = pods.assumed.get(key) or pods.records.get(key)  # its binding may be under way
        return (
            record is not None
            and record.uid == pod.get("uid")
            and record.scheduler == TENURE
            and record.task.node is None
            and record.task.phase is Phase.PENDING
            and (namespace, record.task.name) not in placed
        )


def _devices_of(allocation: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    results = (allocation.get("devices") or {}).get("results") or ()
    return sorted((str(r.get("driver")), str(r.get("pool")), str(r.get("device"))) for r in results)


def _requests_of(devices: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Give what a claim asks for by the names under which devices are given out."""
    found: dict[str, Mapping[str, Any]] = {}
    for request in devices.get("requests") or ():
        name = str(request.get("name", ""))
        if request.get("exactly"):
            found[name] = request["exactly"]
        for option in request.get("firstAvailable") or ():
            found[f"{name}/{option.get('name', '')}"] = option
    return found


def _by_class(names: Iterable[str], asked: Mapping[str, Mapping[str, Any]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name in names:
        found.setdefault(str(asked.get(name, {}).get("deviceClassName", "")), []).append(name)
    return found


def _result(device: AllocatedDevice, asked: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "request": device.request, "driver": device.driver, "pool": device.pool, "device": device.device,
    }  # fmt: skip
    if device.has_admin_access:
        found["adminAccess"] = True
    if asked.get("tolerations"):
        found["tolerations"] = asked["tolerations"]
    if device.binding_conditions:
        found["bindingConditions"] = list(device.binding_conditions)
        found["bindingFailureConditions"] = list(device.binding_failure_conditions)
    if device.consumed:
        found["shareID"] = str(uuid.uuid4())
        found["consumedCapacity"] = {name: format_nano(amount) for name, amount in device.consumed.items()}
    return found
