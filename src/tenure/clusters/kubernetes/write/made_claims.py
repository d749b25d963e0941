"""Claims that are made for pods whose extended resources devices serve: one a pod, when the pod is bound.

A claim is called the same whenever it is made, so that after a crash the next leader finds the one that is there. It
belongs to its pod and goes with it. The pod's status says which claim it is, and which request each container uses.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from tenure.clusters.kubernetes import api
from tenure.clusters.kubernetes.cache.handlers import owners_of
from tenure.clusters.kubernetes.cache.informers import InformerCache
from tenure.clusters.kubernetes.cache.pod_records import PodRecord
from tenure.clusters.kubernetes.client.requests import MERGE, ApiError, Client
from tenure.clusters.kubernetes.decoding import decode
from tenure.clusters.kubernetes.write import patches
from tenure.engine.plan import ClaimedDevices
from tenure.model.devices import DeviceAllocation, DeviceUse
from tenure.model.manifests.devices import MADE
from tenure.model.manifests.extended_resources import is_implied, made_claim_name
from tenure.model.selectors import common_nodes

CLAIMS: Final = "resourceclaims"
FINALIZER: Final = "resource.kubernetes.io/delete-protection"
_GONE: Final = 404
_CONFLICT: Final = 409


def claim_path(namespace: str, name: str = "") -> str:
    """Give the path of a claim, or of all in a namespace."""
    path = f"/apis/resource.k8s.io/v1/namespaces/{namespace}/{CLAIMS}"
    return f"{path}/{name}" if name else path


def newest_claim(client: Client, namespace: str, name: str) -> tuple[api.ApiObject, bytes]:
    """Ask for a claim as it is now, by the right to list claims; gives it with what the API server would send of it.

    Raises
    ------
    ApiError
        If it is gone.
    """
    answer = client.get(claim_path(namespace), fieldSelector=f"metadata.name={name}")
    listed = decode(answer, _Listed).items
    if not listed:
        raise ApiError(_GONE, "NotFound", f"resource claim {name} is gone")
    return decode(listed[0], api.ApiObject), bytes(listed[0])


class _Listed(msgspec.Struct):
    items: list[msgspec.Raw] = []


class MadeClaims:
    """The writer of claims that are made for pods."""

    def __init__(self, client: Client, informers: InformerCache) -> None:
        self._client = client
        self._informers = informers

    def settled(self, claims: Iterable[ClaimedDevices], pod: PodRecord) -> list[ClaimedDevices]:
        """Give what the claims of a pod get, with the claim that is made for it in place of those that stand for it.

        Raises
        ------
        ApiError
            If the claim cannot be made.
        """
        listed = list(claims)
        implied = {found.claim: found for found in listed if is_implied(found.claim)}
        kept = [found for found in listed if found.claim not in implied]
        if not implied:
            return kept
        uses = [use for use in pod.task.spec.device_uses if use.claim in implied]
        item = self._made(pod, _body(pod, uses))
        devices = tuple(device for use in uses for device in implied[use.claim].allocation.devices)
        nodes = common_nodes(found.allocation.nodes for found in implied.values())
        name = f"{pod.namespace}/{item.metadata.name}"
        return [*kept, ClaimedDevices(name, DeviceAllocation(devices=devices, nodes=nodes))]

    def tell(self, claim: str, pod: PodRecord) -> None:
        """Say in a pod's status which claim serves its extended resources, if it is the one that was made for it."""
        name = claim.partition("/")[2]
        if name != made_claim_name(pod.name, pod.uid) or pod.made_claim == name:
            return
        asked = {request["name"] for request in _requests(self._item(pod, name))}
        mappings = [
            {"containerName": container, "resourceName": request.resource, "requestName": request.name}
            for request in pod.task.spec.extended
            if request.name in asked
            for container in request.containers
        ]
        status = {"extendedResourceClaimStatus": {"resourceClaimName": name, "requestMappings": mappings}}
        body = {"metadata": {"uid": pod.uid}, "status": status}
        self._client.patch(patches.pod_path(pod, "status"), body, MERGE)

    def delete(self, item: api.ApiObject) -> None:
        """Delete a claim, whatever devices it has."""
        meta = item.metadata
        path = claim_path(meta.namespace, meta.name)
        try:
            if meta.finalizers:
                body = {"metadata": {"uid": meta.uid, "finalizers": None}}
                self._informers.wrote(CLAIMS, self._client.patch(path, body, MERGE))
            self._client.delete(path, {"preconditions": {"uid": meta.uid}})
        except ApiError as error:
            if error.status not in (_GONE, _CONFLICT):
                raise

    def _item(self, pod: PodRecord, name: str) -> api.ApiObject | None:
        return self._informers.objects[CLAIMS].items.get((pod.namespace, name))

    def _made(self, pod: PodRecord, body: Mapping[str, Any]) -> api.ApiObject:
        """Give the claim of a pod that asks for what it should ask for; one that asks for anything else is deleted."""
        name = body["metadata"]["name"]
        item = self._item(pod, name)
        if item is None:
            item = self._created(pod, body)
        if pod.uid not in owners_of(item.metadata):
            raise ApiError(_CONFLICT, "Conflict", f"resource claim {name} was not made for this pod")
        if item.metadata.deletion_timestamp or _requests(item) != _requests_of(body["spec"]):
            self.delete(item)
            item = self._created(pod, body)
        return item

    def _created(self, pod: PodRecord, body: Mapping[str, Any]) -> api.ApiObject:
        try:
            answer = self._client.create(claim_path(pod.namespace), body)
        except ApiError as error:
            if error.status != _CONFLICT:
                raise
            _, answer = newest_claim(self._client, pod.namespace, body["metadata"]["name"])
        self._informers.wrote(CLAIMS, answer, is_new=True)
        return decode(answer, api.ApiObject)


def _body(pod: PodRecord, uses: Iterable[DeviceUse]) -> dict[str, Any]:
    requests = sorted((request for use in uses for request in use.requests), key=lambda request: request.name)
    written = [
        {
            "name": request.name,
            "exactly": {
                "deviceClassName": request.exactly.class_name,
                "allocationMode": request.exactly.mode,
                "count": request.exactly.count,
            },
        }
        for request in requests
        if request.exactly is not None
    ]
    owner = {"apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": pod.uid, "controller": True}
    meta = {
        "name": made_claim_name(pod.name, pod.uid), "namespace": pod.namespace, "annotations": {MADE: "true"},
        "ownerReferences": [owner], "finalizers": [FINALIZER],
    }  # fmt: skip
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": meta,
        "spec": {"devices": {"requests": written}},
    }


def _requests(item: api.ApiObject | None) -> list[dict[str, Any]]:
    return _requests_of(item.spec if item is not None and isinstance(item.spec, dict) else {})


def _requests_of(spec: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Give names, classes and counts of a claim's requests."""
    found = []
    for request in (spec.get("devices") or {}).get("requests") or ():
        exactly = request.get("exactly") or {}
        told = {"class": exactly.get("deviceClassName"), "count": exactly.get("count")}
        found.append({"name": request.get("name"), **told})
    return found
