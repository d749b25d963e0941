"""Consolidate: move running work so that a contender fits, before anything is evicted for good (spec: consolidate)."""

from __future__ import annotations

from tenure.actions.context import Context
from tenure.victims.consolidation import ConsolidationPass
from tenure.victims.preconditions import anyone_waits, may_move


def consolidate(context: Context) -> None:
    """Move what makes room, each task to a place that is nominated for it."""
    session = context.session
    if session.settings.max_consolidated_workloads and may_move(session) and anyone_waits(session):
        ConsolidationPass(context.evicting()).run()
