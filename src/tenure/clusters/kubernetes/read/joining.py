"""Nodes that are on their way: what Karpenter has launched and no kubelet has registered yet.

Such a node is one on which everything is still taken by something that goes: nothing can be bound there, and a workload
that fits there is nominated to it, so that nothing is evicted for a workload for which a node comes anyway. A node that
does not come within a quarter of an hour counts no more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from tenure.clusters.kubernetes import api, keys
from tenure.clusters.kubernetes.bounded import total
from tenure.clusters.kubernetes.cache.nodes import node_of
from tenure.clusters.kubernetes.read.workloads import HELD
from tenure.model.cluster import DEFAULT_QUEUE
from tenure.model.node import Node
from tenure.model.resources import PODS
from tenure.model.workload import Phase, Task, TaskSpec, Workload

AWAITED: Final = 900_000_000
"""µs after a claim was made in which its node is waited for."""

MOST_CLAIMS: Final = 1000
NAMESPACE: Final = "tenure-joining"
"""Namespace of what stands for a node that is on its way; no pod is in it."""


class JoiningNodes(NamedTuple):
    """Nodes that are on their way, and what holds them until they are there."""

    nodes: tuple[Node, ...] = ()
    workloads: tuple[Workload, ...] = ()


def joining(claims: Iterable[Any], known: Mapping[str, Node], pool: str, default: str, now: int) -> JoiningNodes:
    """Give the nodes of a pool that NodeClaims say are on their way."""
    found = []
    for claim in claims:
        node = total(lambda: _node_of(claim, now), None, lambda _: None)  # noqa: B023
        if node is not None and node.name not in known and node.labels.get(keys.POOL, default) == pool:
            found.append(node)
    found = sorted(found, key=lambda node: node.name)[:MOST_CLAIMS]
    return JoiningNodes(tuple(found), tuple(_held(node, now) for node in found))


def _node_of(claim: api.ApiObject, now: int) -> Node | None:
    """Give the node of a claim; None where it was not launched yet, is there already, or has not come for too long."""
    status = claim.status if isinstance(claim.status, dict) else {}
    spec = claim.spec if isinstance(claim.spec, dict) else {}
    made, meta = api.micros(claim.metadata.creation_timestamp), claim.metadata
    says = {c.get("type"): c.get("status") for c in status.get("conditions") or () if isinstance(c, dict)}
    if meta.deletion_timestamp or says.get("Launched") != "True" or says.get("Registered") == "True":
        return None
    if made is None or not now - AWAITED <= made or not isinstance(status.get("allocatable"), dict):
        return None
    taints = [taint for taint in spec.get("taints") or () if isinstance(taint, dict)]
    ready = api.Condition(type="Ready", status="True")
    shown = api.ApiNode(
        metadata=api.Meta(name=meta.name, labels=meta.labels, creation_timestamp=meta.creation_timestamp),
        spec=api.NodeSpec(taints=taints),
        status=api.NodeStatus(allocatable=status["allocatable"], conditions=[ready]),
    )
    node, problems = node_of(shown)
    return None if problems else node


def _held(node: Node, now: int) -> Workload:
    """Give what takes all of a node and goes: its room can be promised, and not be bound."""
    amounts = tuple(sorted((name, n) for name, n in node.allocatable.items() if n and name != PODS))
    task = Task(
        name=node.name, spec=TaskSpec(requests=amounts), phase=Phase.TERMINATING, node=node.name, terminating_since=now
    )
    return Workload(
        name=node.name, namespace=NAMESPACE, uid=node.name, queue=DEFAULT_QUEUE, scheduler_name=HELD,
        tasks=(task,), created_at=now, min_member=1,
    )  # fmt: skip
