"""Consolidate: move running work so that a contender fits, before anything is evicted for good (spec: consolidate)."""

from __future__ import annotations

from tenure.actions.context import Context
from tenure.victims.consolidation import ConsolidationPass
from tenure.victims.preconditions import anyone_waits


def consolidate(context: Context) -> None:
    """Move what makes room, each task to a place that is nominated for it.

    On one node there are other places only for parts of GPUs.
    """
    session, settings = context.session, context.session.settings
    if not settings.max_consolidated_workloads:
        return
    apart = len(session.nodes) > 1 or any(cls.milli is not None for cls in session.classes.classes)
    if apart and anyone_waits(session):
        ConsolidationPass(context.evicting()).run()
