"""Reclaim: evict work of queues that hold more than their due, for contenders entitled to it (spec: reclaim)."""

from __future__ import annotations

from tenure.actions.context import Context
from tenure.actions.preconditions import queues_contend
from tenure.engine.state.waiting import anything_waits
from tenure.victims.passes.preemption_pass import PreemptionPass
from tenure.victims.rules.causes import ReclaimEligibility


def reclaim(context: Context) -> None:
    """Evict what has to give way, and nominate those that it gives way to."""
    if not queues_contend(context.session) or not anything_waits(context.session.waiting):
        return
    PreemptionPass(
        context.evicting(), "reclaim", lambda contender, shares: ReclaimEligibility(context.session, shares, contender)
    ).run()
