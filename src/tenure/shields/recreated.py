"""Pods that no controller recreates are not moved and not requeued (spec: on Kubernetes).

A pod without a controller does not come back after its eviction: it cannot be moved, and cannot be requeued.
"""

from __future__ import annotations

from typing import Final

from tenure.engine.refusal import Refusal
from tenure.engine.state.workloads import WorkloadState
from tenure.model.settings import Cause

SHIELD: Final = "nobody-recreates"
BARE: Final = "Pod"
"""``ownerKind`` of pods that stand for themselves."""

COMES_BACK: Final[frozenset[Cause]] = frozenset({"requeue", "consolidate", "reschedule"})


def recreated(cause: Cause, victim: WorkloadState) -> Refusal | None:
    """Refuse to move or requeue pods that no controller would recreate."""
    if cause not in COMES_BACK or victim.model.owner_kind != BARE:
        return None
    return Refusal(SHIELD, f"no controller would recreate the pods of {victim.key}")
