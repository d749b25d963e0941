"""Improve the layout every `interval`, by the background's objective, where that pays for the disruption."""

from __future__ import annotations

from tenure.rescheduler.execution import TriggerExecution
from tenure.rescheduler.problem.layout import objective
from tenure.rescheduler.triggers.layouts import everywhere, improve


def act(action: TriggerExecution) -> None:
    """Make all moves that gain more than `minGain` for each unit of disruption."""
    anywhere = everywhere(action)
    action.memory.improved, action.memory.unfinished = action.session.now, False
    least, every = action.settings.background.min_gain, action.settings.background.interval
    assert every is not None
    if not improve(action, "background", objective(action.session.settings), anywhere, anywhere, least):
        after = action.session.now + every
        action.look_again(after)
        if action.movable.cheaper_later():
            action.state.wake_at(after)
