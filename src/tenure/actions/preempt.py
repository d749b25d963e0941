"""Preempt: take from lower priorities inside one leaf queue (spec: preempt)."""

from __future__ import annotations

from tenure.actions.context import Context
from tenure.engine.state.waiting import anything_waits
from tenure.victims.passes.preemption_pass import PreemptionPass
from tenure.victims.rules.causes import PreemptRules


def preempt(context: Context) -> None:
    """Evict what has to give way, and nominate those that it gives way to."""
    if not context.priorities.differ(context.session) or not anything_waits(context.session.waiting):
        return
    PreemptionPass(context.evicting(), "preempt", lambda contender, _: PreemptRules(context.session, contender)).run()
