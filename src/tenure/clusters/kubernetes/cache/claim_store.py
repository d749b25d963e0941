"""The PersistentVolumeClaims of a cluster, and for which nodes their provisioners refused to make a volume."""

from __future__ import annotations

from typing import Any, Final

from tenure.clusters.kubernetes import api, keys
from tenure.clusters.kubernetes.cache.handlers import ObjectStore, of_claim
from tenure.clusters.kubernetes.cache.owners import Key

MOST_REFUSED: Final = 64
"""Nodes for which the provisioner of a claim has refused that are kept in mind."""


class ClaimStore(ObjectStore):
    """Claims by namespace and name.

    A provisioner that cannot make a claim's volume takes the node off the claim. That is seen in two states of it
    that follow each other, which may both pass between two cycles, so it is noted as they come.

    ``refused`` has such nodes by claim, the latest last, until the claim is bound or gone.
    """

    def __init__(self) -> None:
        super().__init__(of_claim)
        self.refused: dict[Key, tuple[str, ...]] = {}

    def _take(self, key: Key, item: Any) -> None:
        before = self.items.get(key)
        if before is None or before.metadata.uid != item.metadata.uid or item.spec.volume_name:
            self.refused.pop(key, None)
        elif (node := _selected(before)) and not _selected(item):
            known = self.refused.get(key, ())
            self.refused[key] = (*(n for n in known if n != node), node)[-MOST_REFUSED:]
        super()._take(key, item)

    def drop(self, key: Key) -> None:
        """A claim is gone."""
        super().drop(key)
        self.refused.pop(key, None)


def _selected(claim: api.ApiObject) -> str:
    """Give the node for which a claim's volume is to be made."""
    node: object = (claim.metadata.annotations or {}).get(keys.SELECTED_NODE)
    return node if isinstance(node, str) else ""


def refused_nodes(store: ObjectStore, key: Key) -> tuple[str, ...]:
    """Give the nodes for which the provisioner of a claim refused, the latest last."""
    return store.refused.get(key, ()) if isinstance(store, ClaimStore) else ()
