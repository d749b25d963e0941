"""Preemptibility: what says that it must not be evicted is not (spec: workload fields)."""

from __future__ import annotations

from tenure.engine.refusal import Refusal
from tenure.engine.state.workloads import WorkloadState
from tenure.model.workload import NODE_OWNERS

SHIELD = "preemptibility"
NODE_OWNED = "daemon-set"
"""The shield of pods that belong to the node that they run on."""


def belongs_to_node(victim: WorkloadState) -> Refusal | None:
    """Refuse a workload whose pods belong to the nodes that they run on."""
    owner = NODE_OWNERS.get(victim.model.owner_kind or "")
    return None if owner is None else Refusal(NODE_OWNED, f"the pods of {victim.key} belong to their nodes, by {owner}")


def preemptibility(victim: WorkloadState) -> Refusal | None:
    """Refuse a workload that is not preemptible."""
    if not victim.fixed:
        return None
    refusal = belongs_to_node(victim)
    if refusal is not None:
        return refusal
    why = "it says so" if victim.model.preemptible is not None else f"its priority is {victim.priority}"
    return Refusal(SHIELD, f"{victim.key} is not preemptible: {why}")
