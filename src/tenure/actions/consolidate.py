"""Consolidate: move running work so that a contender fits, before anything is evicted for good (spec: consolidate)."""

from __future__ import annotations

from tenure.actions.context import Context
from tenure.engine.serving.placement import may_move
from tenure.engine.state.waiting import anything_waits
from tenure.victims.passes.consolidation import ConsolidationPass


def consolidate(context: Context) -> None:
    """Move what makes room, each task to a place that is nominated for it."""
    session = context.session
    if session.settings.max_consolidated_workloads and may_move(session) and anything_waits(session.waiting):
        ConsolidationPass(context.evicting()).run()
