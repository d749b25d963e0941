"""Consolidate: move running work so that a contender fits, before anything is taken from anyone (spec: consolidate)."""

from __future__ import annotations

from tenure.actions.context import Context
from tenure.victims.moving import Moving


def consolidate(context: Context) -> None:
    """Move what makes room, each task to a place that is nominated for it."""
    settings = context.session.settings
    if settings.modes.get("consolidate") != "off" and settings.max_consolidated_workloads:
        Moving(context.evicting()).run()
