"""Use nodes that joined lately: scheduling decided when they were not there.

Where the background improves the layout as well, its objective and its `minGain` hold here too, so that the two never
undo each other. Otherwise load is evened out: what moves to a new node finds it less full than the node it left was.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tenure.rescheduler.execution import SECOND, TriggerExecution
from tenure.rescheduler.memory import NEW_NODES
from tenure.rescheduler.problem.layout import LEVEL, objective
from tenure.rescheduler.triggers.layouts import everywhere, improve

PAUSE = 60 * SECOND


def act(action: TriggerExecution, new: Sequence[int]) -> None:
    """Move to the new nodes what improves the layout most for its disruption, until nothing does."""
    session, settings = action.session, action.settings
    action.memory.again[NEW_NODES] = session.now + PAUSE
    targets = np.zeros(len(session.nodes), bool)
    targets[list(new)] = True
    background = settings.background
    if background.interval is not None:
        terms, least = objective(session.settings), background.min_gain
    else:
        terms, least = LEVEL, 0.0
    if not improve(action, NEW_NODES, terms, everywhere(action) & ~targets, targets, least, new):
        action.look_again(action.memory.again[NEW_NODES])
