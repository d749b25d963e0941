"""Preemption delay: for a while a contender causes no eviction, so that an autoscaler can act first (spec: reclaim)."""

from __future__ import annotations

from tenure.engine.refusal import Refusal
from tenure.engine.session import Session
from tenure.engine.workloads import WorkloadState
from tenure.model.duration import format_duration

SHIELD = "preemption-delay"


def delay(session: Session, contender: WorkloadState) -> Refusal | None:
    """Refuse a contender that has to wait: until max(createdAt, lastEvictedAt) + preemptionDelay."""
    own = contender.model.preemption_delay
    wait = session.settings.preemption_delay if own is None else own
    if not wait:
        return None
    until = max(contender.created_at, contender.last_evicted_at or 0) + wait
    if session.now >= until:
        return None
    text = f"its preemption delay of {format_duration(wait)} has not passed: until then nothing is evicted for it"
    return Refusal(SHIELD, text, until)
