"""The single writes by which room is kept for pods of another scheduler."""

from __future__ import annotations

from typing import Any, Final

from tenure.clusters.kubernetes import api
from tenure.clusters.kubernetes.cache.informers import Options
from tenure.clusters.kubernetes.cache.pod_records import PodRecord
from tenure.clusters.kubernetes.client.requests import ApiError, Client
from tenure.clusters.kubernetes.decoding import decode
from tenure.clusters.kubernetes.external import reservations
from tenure.clusters.kubernetes.external.reservations import NodeReservation
from tenure.clusters.kubernetes.external.seen import SeenReservation
from tenure.clusters.kubernetes.write import patches

JSON_PATCH: Final = "application/json-patch+json"
CONFLICT: Final = 409
"""What the API server answers to a write of a version that is not the newest, or of what is there already."""

_INVALID: Final = 422
_TRIES: Final = 3


class ReservationWrites:
    """The writes that a node reservation takes, each of which raises where the API server refuses it.

    Their order, on which it depends what is left where this process ends between two of them, is the controller's.
    """

    def __init__(self, client: Client, options: Options, seen: SeenReservation) -> None:
        self._client = client
        self._options = options
        self._seen = seen

    def write_record(self, hole: NodeReservation) -> None:
        """Write the record; refused where it is not as the watch shows it."""
        path, options, item = self._maps(), self._options, self._seen.item()
        if item is None:
            self._client.create(path, reservations.body_of(hole, options.pool))
        else:
            body = reservations.body_of(hole, options.pool, item.metadata.resource_version)
            self._client.replace(f"{path}/{item.metadata.name}", body)

    def drop_record(self) -> None:
        """Delete the record as the watch shows it, if there is one."""
        item = self._seen.item()
        if item is not None:
            conditions = {"uid": item.metadata.uid, "resourceVersion": item.metadata.resource_version}
            self._client.delete(f"{self._maps()}/{item.metadata.name}", {"preconditions": conditions})

    def taint(self, name: str, id_: str | None) -> None:
        """Set or take off the taint, on what the node is now: the list is written as a whole."""
        path = f"/api/v1/nodes/{name}"
        for attempt in range(_TRIES):
            node = decode(self._client.get(path), api.ApiNode)
            before = node.spec.taints or []
            taints = reservations.with_taint(before, id_)
            if taints == before:
                return
            body = {"metadata": {"resourceVersion": node.metadata.resource_version}, "spec": {"taints": taints}}
            try:
                self._client.patch(path, body)
            except ApiError as error:
                if error.status != CONFLICT or attempt == _TRIES - 1:
                    raise
            else:
                return

    def tolerate(self, pod: PodRecord, id_: str) -> None:
        """Add a toleration to a pod: the one change of what it asks for that the API server takes."""
        same = {"op": "test", "path": "/metadata/uid", "value": pod.uid}
        added = reservations.toleration(id_)
        try:
            self._patch_pod(pod, [same, {"op": "add", "path": "/spec/tolerations/-", "value": added}])
        except ApiError as error:
            if error.status != _INVALID:
                raise
            self._patch_pod(pod, [same, {"op": "add", "path": "/spec/tolerations", "value": [added]}])

    def _patch_pod(self, pod: PodRecord, patch: list[dict[str, Any]]) -> None:
        self._client.patch(patches.pod_path(pod), patch, JSON_PATCH)

    def make_anew(self, pod: PodRecord) -> None:
        """Let what recreates a pod make it anew: nothing of it runs, and what it asks for cannot be changed."""
        self._client.create(patches.pod_path(pod, "eviction"), patches.eviction(pod, pod.version))

    def _maps(self) -> str:
        """Give the path of the ConfigMaps of the scheduler's namespace, of which the record is one."""
        return f"/api/v1/namespaces/{self._options.namespace}/configmaps"
