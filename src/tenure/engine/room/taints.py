"""Which nodes tolerations admit, as boolean vectors over all nodes. Semantics are those of Kubernetes 1.37."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tenure.engine.room.labels import Mask
from tenure.model.node import Node
from tenure.model.selectors import Taint, Toleration

UNSCHEDULABLE = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
NOT_READY = frozenset({"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"})
"""Taints of nodes that are not ready: a task that tolerates them may be placed there, as by kube-scheduler."""

NOT_READY_POINTS = 1 << 14
"""What such a node loses in preference: more than affinity and taints come to, so that ready nodes come first."""


class NodeTaints:
    """For each distinct taint of ``nodes``, in their order, which of them have it."""

    def __init__(self, nodes: list[Node]) -> None:
        self._count = len(nodes)
        self._tainted: dict[Taint, Mask] = {}
        for position, node in enumerate(nodes):
            taints = (*node.taints, UNSCHEDULABLE) if node.unschedulable or node.drain else node.taints
            for taint in taints:
                mask = self._tainted.setdefault(taint, np.zeros(len(nodes), bool))
                mask[position] = True

    def tolerated(self, tolerations: tuple[Toleration, ...]) -> Mask:
        """Nodes none of whose NoSchedule and NoExecute taints is left untolerated."""
        mask = np.ones(self._count, bool)
        for taint, tainted in self._tainted.items():
            if taint.effect != "PreferNoSchedule" and not tolerates(tolerations, taint):
                mask &= ~tainted
        return mask

    def avoided(self, tolerations: tuple[Toleration, ...]) -> NDArray[np.int64]:
        """Count the PreferNoSchedule taints of each node that are left untolerated."""
        count = np.zeros(self._count, np.int64)
        for taint, tainted in self._tainted.items():
            if taint.effect == "PreferNoSchedule" and not tolerates(tolerations, taint):
                count += tainted
        return count


def tolerates(tolerations: tuple[Toleration, ...], taint: Taint) -> bool:
    """Whether one of ``tolerations`` tolerates ``taint``."""
    return any(
        (t.effect is None or t.effect == taint.effect)
        and (t.key in ("", taint.key) if t.operator == "Exists" else (t.key == taint.key and t.value == taint.value))
        for t in tolerations
    )
