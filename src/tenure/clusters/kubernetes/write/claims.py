"""Claims that get their volume where their pod is placed: what is written before the pod can be bound.

A volume that is there is kept for the claim, and the controller of volumes binds the two; else the claim is told for
which node a volume is to be made. Each write says of which version it is, and is made once: after a crash the next
leader finds what was written, and goes on from there.
"""

from __future__ import annotations

from typing import Any, Final

from tenure.clusters.kubernetes import keys
from tenure.clusters.kubernetes.cache.claim_store import refused_nodes
from tenure.clusters.kubernetes.cache.informers import InformerCache
from tenure.clusters.kubernetes.client.requests import MERGE, ApiError, Client
from tenure.engine.plan import PlanStep

_GONE: Final = 404
_CONFLICT: Final = 409
_BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"


class ClaimWriter:
    """The writer of what claims of pods need before these can be bound."""

    def __init__(self, client: Client, informers: InformerCache) -> None:
        self._client = client
        self._informers = informers

    def prepare(self, step: PlanStep) -> None:
        """Write for each claim of a step that is not bound yet what it will be bound to, unless that stands there."""
        for key, volume, node in sorted(step.volumes, key=lambda claimed: (not claimed.volume, claimed)):
            namespace, _, name = key.partition("/")
            claim = self._item("claims", namespace, name)
            if volume:
                self._keep(self._item("volumes", "", volume), claim)
            else:
                self._select(claim, node)

    def _item(self, store: str, namespace: str, name: str) -> Any:
        item = self._informers.objects[store].items.get((namespace, name))
        if item is None:
            raise ApiError(_GONE, "NotFound", f"{store[:-1]} {name} is gone")
        return item

    def _keep(self, volume: Any, claim: Any) -> None:
        """Keep a volume for a claim."""
        meta, uid = claim.metadata, claim.metadata.uid
        if (volume.spec.claim_ref or {}).get("uid") == uid:
            return
        reference = {
            "apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": meta.namespace, "name": meta.name,
            "uid": uid,
        }  # fmt: skip
        marks = {} if volume.spec.claim_ref else {_BY_CONTROLLER: "yes"}
        body = {
            "metadata": {"resourceVersion": volume.metadata.resource_version, "annotations": marks},
            "spec": {"claimRef": reference},
        }
        answer = self._client.patch(f"/api/v1/persistentvolumes/{volume.metadata.name}", body, MERGE)
        self._informers.wrote("volumes", answer)

    def _select(self, claim: Any, node: str) -> None:
        """Tell a claim for which node its volume is to be made."""
        meta = claim.metadata
        if (meta.annotations or {}).get(keys.SELECTED_NODE):
            return
        if node in refused_nodes(self._informers.objects["claims"], (meta.namespace, meta.name)):
            text = f"the volume of claim {meta.name} was refused for node {node} since that was planned"
            raise ApiError(_CONFLICT, "Conflict", text)
        body = {"metadata": {"resourceVersion": meta.resource_version, "annotations": {keys.SELECTED_NODE: node}}}
        path = f"/api/v1/namespaces/{meta.namespace}/persistentvolumeclaims/{meta.name}"
        self._informers.wrote("claims", self._client.patch(path, body, MERGE))
