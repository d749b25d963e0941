"""Room that is kept for a pod which another scheduler will bind: what is written down of it, and what follows.

One record for a node pool, in a ConfigMap of the scheduler's namespace, is written before anything else is touched and
goes last. It names the nodes that carry the taint, the pods that tolerate it, and what moves for them; the admission
policy reads the rest of the ConfigMap, so that replacements of what moves stay away from where it was. Whoever leads
next finds all of it there, with the time at which it ends.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

import msgspec

from tenure.clusters.kubernetes import api, keys
from tenure.clusters.kubernetes.api import micros
from tenure.clusters.kubernetes.decoding import decoder_of
from tenure.clusters.kubernetes.read import eviction_log
from tenure.model.node import Node
from tenure.model.selectors import Toleration
from tenure.model.workload import TaskSpec

TAINT: Final = keys.HOLE_TAINT
KEPT_OFF: Final = keys.KEPT_OFF
LABEL: Final = keys.MOVES_LABEL
RECORD: Final = "hole"
_EFFECT: Final = "NoSchedule"


class DepartedPod(msgspec.Struct, rename={"origin": "from", "target": "to"}, frozen=True):
    """A pod that leaves a node: its identity, what recreates it, from where, and where its replacement would land."""

    pod: str
    controller: str
    origin: str
    target: str


class NodeReservation(msgspec.Struct, rename={"whose": "for"}, omit_defaults=True, frozen=True):
    """A reservation of room on nodes for a pod of an external scheduler.

    ``at`` is when this was written, ``until`` when it ends whatever happens (RFC 3339). ``whose`` are the workloads
    (namespace/name) that wait for the room, ``pods`` the uids of those of their pods that tolerate the taint,
    ``nodes`` those that carry it, ``moves`` what leaves next. Once it is ``released`` nothing is kept any more, and it
    is there until what was moved has landed.
    """

    id: str
    at: str
    until: str
    whose: tuple[str, ...] = ()
    pods: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    moves: tuple[DepartedPod, ...] = ()
    released: bool = False

    @property
    def written(self) -> int:
        """When it was written, in µs since the epoch."""
        return micros(self.at) or 0

    @property
    def ends(self) -> int:
        """When it ends, in µs since the epoch; a time that cannot be read has passed."""
        return micros(self.until) or 0


_DECODER = decoder_of(NodeReservation)


def config_map(pool: str) -> str:
    """Give the name of a node pool's ConfigMap."""
    return f"tenure-moves-{pool}"


def body_of(hole: NodeReservation, pool: str, version: str = "") -> dict[str, Any]:
    """Give the ConfigMap that holds a record; ``version`` is that of the ConfigMap that it replaces."""
    metadata: dict[str, Any] = {"name": config_map(pool), "labels": {eviction_log.LABEL: pool, LABEL: "true"}}
    if version:
        metadata["resourceVersion"] = version
    data = {RECORD: msgspec.json.encode(hole).decode(), **guidance(hole)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def guidance(hole: NodeReservation) -> dict[str, str]:
    """Give what the admission policy reads, by uid of the controller: nodes to avoid, to prefer, and what to tolerate.

    Names of nodes are separated by spaces. A replacement that is to land on a node that is kept tolerates its taint,
    and is kept off the other such nodes instead.
    """
    found = {}
    for controller in sorted({m.controller for m in hole.moves if not hole.released}):
        own = [m for m in hole.moves if m.controller == controller]
        avoid, targets = {m.origin for m in own}, {m.target for m in own if m.target}
        tolerates = not targets.isdisjoint(hole.nodes)
        if tolerates:
            avoid |= {n for n in hole.nodes if n not in targets}
        found[f"{controller}.avoid"] = " ".join(sorted(avoid))
        if targets - avoid:
            found[f"{controller}.prefer"] = " ".join(sorted(targets - avoid))
        if tolerates:
            found[f"{controller}.tolerate"] = hole.id
    return found


def hole_of(item: api.ApiObject | None) -> NodeReservation | None:
    """Read the record of a ConfigMap; None where there is none. One that cannot be read has ended."""
    if item is None:
        return None
    text = item.data.get(RECORD, "") if isinstance(item.data, dict) else ""
    try:
        return _DECODER.decode(text)
    except msgspec.MsgspecError:
        return NodeReservation(id="", at="", until="")


def toleration(id_: str) -> dict[str, str]:
    """Give the toleration of those for whom a node is kept."""
    return {"key": TAINT, "operator": "Equal", "value": id_, "effect": _EFFECT}


def tolerates(spec: TaskSpec, id_: str) -> bool:
    """Whether a pod tolerates the taint of a record."""
    wanted = Toleration(key=TAINT, operator="Equal", value=id_, effect=_EFFECT)
    return wanted in spec.tolerations


def is_tainted(node: Node, id_: str) -> bool:
    """Whether a node carries the taint of a record."""
    return any(t.key == TAINT and t.value == id_ for t in node.taints)


def without_taint(node: Node, id_: str) -> Node:
    """Give a node as it is for those for whom it is kept."""
    return replace(node, taints=tuple(t for t in node.taints if not (t.key == TAINT and t.value == id_)))


def with_taint(taints: Iterable[dict[str, Any]], id_: str | None) -> list[dict[str, Any]]:
    """Give a node's taints with that of a record, or (None) without any of ours."""
    kept = [t for t in taints if t.get("key") != TAINT]
    return kept if id_ is None else [*kept, {"key": TAINT, "value": id_, "effect": _EFFECT}]
