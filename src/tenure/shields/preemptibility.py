"""Preemptibility: what says that it must not be evicted is not (spec: workload fields)."""

from __future__ import annotations

from tenure.engine.refusal import Refusal
from tenure.engine.workloads import WorkloadState

SHIELD = "preemptibility"


def preemptibility(victim: WorkloadState) -> Refusal | None:
    """Refuse a workload that is not preemptible."""
    if not victim.fixed:
        return None
    why = "it says so" if victim.model.preemptible is not None else f"its priority is {victim.priority}"
    return Refusal(SHIELD, f"{victim.key} is not preemptible: {why}")
