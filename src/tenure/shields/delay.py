"""Contenders for which nothing is evicted, ever or for a while.

The policy ``Never``; nodes that are on their way for it; and the preemption delay: for a while a contender causes no
eviction, so that an autoscaler can act first (spec: reclaim).
"""

from __future__ import annotations

from typing import Final

from tenure.engine.plan import Reason
from tenure.engine.refusal import Refusal
from tenure.engine.state.session import Session
from tenure.engine.state.workloads import WorkloadState
from tenure.model.settings import MINUTE
from tenure.model.values.duration import format_duration, format_time
from tenure.model.workload import NEVER

SHIELD = "preemption-delay"
POLICY = "preemption-policy"
AWAITED = "awaited-nodes"

LEAST_PAUSE: Final = MINUTE
"""For how long the rescheduler leaves alone, at least, what got no room, was evicted, or had others evicted for it."""


def evicts_never(contender: WorkloadState) -> bool:
    """Whether its pods, or their priority class, say that nothing is to be evicted for it."""
    return contender.model.preemption_policy == NEVER


def delay(session: Session, contender: WorkloadState) -> Refusal | None:
    """Refuse a contender for which nothing is ever evicted, or not yet: max(createdAt, lastEvictedAt) + delay."""
    if evicts_never(contender):
        return Refusal(POLICY, f"nothing is evicted for it: its preemptionPolicy is {NEVER}")
    own = contender.model.preemption_delay
    wait = session.settings.preemption_delay if own is None else own
    until = max(contender.created_at, contender.last_evicted_at or 0) + wait
    coming = contender.model.awaits_nodes_until
    if coming is not None and session.now < coming:
        until = max(coming, until)
        text = f"it waits for nodes that are on their way for it: until {format_time(until)} nothing is evicted for it"
        return Refusal(AWAITED, text, until)
    if not wait or session.now >= until:
        return None
    text = f"its preemption delay of {format_duration(wait)} has not passed: until then nothing is evicted for it"
    return Refusal(SHIELD, text, until)


def moved_for_from(session: Session, workload: WorkloadState) -> int:
    """Give from when on the rescheduler moves others for a workload that waits (µs since the epoch).

    Its moves were counted as what would follow when the workload was evicted: so it is left alone for a while then.
    """
    wait = session.settings.rescheduler.pending_for
    return max(workload.queued_at + wait, (workload.last_evicted_at or 0) + max(wait, LEAST_PAUSE))


def told(refusal: Refusal) -> Reason:
    """Give such a refusal as the reason why nothing is evicted for the workload."""
    if refusal.until is None:
        return Reason("NeverPreempts", refusal.message)
    code = "AwaitsNodes" if refusal.shield == AWAITED else "PreemptionDelay"
    return Reason(code, refusal.message, {"until": format_time(refusal.until)})
