"""How far each cause of evictions goes: ``enforce``, ``shadow`` or ``off`` (spec: on Kubernetes, modes)."""

from __future__ import annotations

from typing import cast

from tenure.model.settings import Cause, Mode, Settings


def mode_of(settings: Settings, action: str) -> Mode:
    """Give the mode of an action; an action that evicts nothing is always enforced."""
    return settings.modes.get(cast("Cause", action), "enforce")


def enabled_for(settings: Settings, action: str) -> frozenset[str]:
    """Give the actions with which one has to reckon: itself, and those that run and whose evictions are carried out.

    A cause in shadow takes nothing back, and makes no victims cheaper than a move.
    """
    return frozenset(a for a in settings.actions if a == action or mode_of(settings, a) == "enforce")
