"""Pods that no controller recreates are not moved and not requeued (spec: on Kubernetes).

A pod without a controller does not come back after its eviction: it cannot be moved, and cannot be requeued. One of a
DaemonSet comes back to its node and to no other.
"""

from __future__ import annotations

from typing import Final

from tenure.engine.refusal import Refusal
from tenure.engine.workloads import WorkloadState
from tenure.model.settings import Cause

SHIELD: Final = "nobody-recreates"
DAEMON_SET: Final = "DaemonSet"
BARE: Final = "Pod"
"""``ownerKind`` of pods that stand for themselves."""

COMES_BACK: Final[frozenset[Cause]] = frozenset({"requeue", "consolidate", "reschedule"})


def recreated(cause: Cause, victim: WorkloadState) -> Refusal | None:
    """Refuse to move or requeue pods that no controller would recreate."""
    if cause not in COMES_BACK:
        return None
    if victim.model.owner_kind == DAEMON_SET:
        return Refusal(SHIELD, f"the pods of {victim.key} belong to their nodes, by a DaemonSet")
    if victim.model.owner_kind != BARE:
        return None
    return Refusal(SHIELD, f"no controller would recreate the pods of {victim.key}")
