"""Fences around queues, and queues that nothing is taken from (spec: reclaim)."""

from __future__ import annotations

from tenure.engine.refusal import Refusal
from tenure.engine.state.queues import QueueTree

FENCE, DISABLED = "fence", "disabled"


def fence(queues: QueueTree, contender: int, victim: int) -> Refusal | None:
    """Refuse what stands outside a fence that the contender's leaf stands in; the other way is open."""
    outside = set(queues.path[contender]) - set(queues.path[victim])
    for queue in sorted(outside, reverse=True):
        model = queues.queues[queue]
        if model.preemption_policy == "fence":
            return Refusal(FENCE, f"queue {model.name} is fenced: its workloads take nothing from outside")
    return None


def disabled(queues: QueueTree, victim: int) -> Refusal | None:
    """Refuse everything in a queue with ``preemptionPolicy: disabled``, whatever the contender."""
    for queue in queues.path[victim]:
        model = queues.queues[queue]
        if model.preemption_policy == "disabled":
            return Refusal(DISABLED, f"nothing is taken from queue {model.name}: its preemptionPolicy is disabled")
    return None
