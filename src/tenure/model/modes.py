"""How far each cause of evictions goes: ``enforce``, ``shadow`` or ``off`` (spec: on Kubernetes, modes)."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from tenure.model.settings import Cause, Mode, Settings


def mode_of(settings: Settings, action: str) -> Mode:
    """Give the mode of an action; one that evicts nobody is always enforced."""
    return settings.modes.get(cast("Cause", action), "enforce")


def settings_for(settings: Settings, action: str) -> Settings:
    """Give the settings under which an action decides: its own cause enforced, others as far as they are carried out.

    A cause in shadow takes nothing back from anybody, and makes no victims cheaper than a move.
    """
    if not settings.modes:
        return settings
    modes: dict[Cause, Mode] = {c: "off" for c, mode in settings.modes.items() if mode != "enforce" and c != action}
    return replace(settings, modes=modes)
