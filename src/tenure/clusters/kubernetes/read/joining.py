"""Nodes that are on their way: what Karpenter has launched, until its node is ready.

Such a node is awaited: nothing is bound there yet, and a workload that fits there is nominated to it, so that nothing
is evicted for a workload for which a node comes anyway. A node that does not come within a quarter of an hour counts
no more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from tenure.clusters.kubernetes import api, keys
from tenure.clusters.kubernetes.bounded import total
from tenure.clusters.kubernetes.cache.nodes import node_of
from tenure.model.node import Node

AWAITED: Final = 900_000_000
"""µs after a claim was made in which its node is waited for."""

MOST_CLAIMS: Final = 1000


def joining(
    claims: Iterable[Any], known: Mapping[str, Node], pool: str, default: str, now: int
) -> dict[str, Node]:  # fmt: skip
    """Give by name the nodes of a pool that NodeClaims say are on their way: not there yet, or there and not ready."""
    found = []
    for claim in claims:
        node = total(lambda: _node_of(claim, known, now), None, lambda _: None)  # noqa: B023
        if node is not None and node.labels.get(keys.POOL, default) == pool:
            found.append(node)
    return {node.name: node for node in sorted(found, key=lambda node: node.name)[:MOST_CLAIMS]}


def _node_of(claim: api.ApiObject, known: Mapping[str, Node], now: int) -> Node | None:
    """Give the node of a claim; None where it was not launched yet, is ready, or has not come for too long."""
    status = claim.status if isinstance(claim.status, dict) else {}
    spec = claim.spec if isinstance(claim.spec, dict) else {}
    made, meta = api.micros(claim.metadata.creation_timestamp), claim.metadata
    says = {c.get("type"): c.get("status") for c in status.get("conditions") or () if isinstance(c, dict)}
    if meta.deletion_timestamp or says.get("Launched") != "True" or says.get("Initialized") == "True":
        return None
    if made is None or not now < made + AWAITED or not isinstance(status.get("allocatable"), dict):
        return None
    there = known.get(str(status.get("nodeName") or meta.name))
    if there is None if says.get("Registered") == "True" else there is not None:
        return None
    if there is not None and (there.ready or there.unschedulable):
        return None
    taints = [taint for taint in spec.get("taints") or () if isinstance(taint, dict)]
    ready = api.Condition(type="Ready", status="True")
    shown = api.ApiNode(
        metadata=api.Meta(name=meta.name, labels=meta.labels, creation_timestamp=meta.creation_timestamp),
        spec=api.NodeSpec(taints=taints),
        status=api.NodeStatus(allocatable=status["allocatable"], conditions=[ready]),
    )
    node, problems = node_of(shown)
    if problems:
        return None
    if there is not None:
        node = replace(node, name=there.name, labels={**node.labels, **there.labels})
    return replace(node, awaited_until=made + AWAITED)
