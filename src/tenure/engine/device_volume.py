"""A necessary condition for moves: what moves, and what it moves for, needs no more of devices than is free on them.

A device of which less is free than the smallest of these parts is of no use to any of them, so it does not count. Most
sets of moves among parts of GPUs have no place to land for this reason alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tenure.engine.classes import TaskClass
from tenure.engine.nodes import THEN
from tenure.engine.session import Session
from tenure.engine.workloads import TaskState
from tenure.model.resources import MILLI


def devices_may_do(session: Session, moved: Sequence[TaskState], wanted: Sequence[TaskState]) -> bool:
    """Whether, by their volume, devices may have room for ``moved`` tasks and for those that are ``wanted`` to fit.

    It is only asked where parts of devices move.
    """
    nodes = session.nodes
    if not nodes.has_devices or all(t.cls.milli is None for t in moved):
        return True
    free = nodes.device[THEN].copy()
    for task in moved:
        for device in task.devices:
            free[task.node, device] += task.cls.milli_on(task.node)
    parts = np.array([part for t in (*moved, *wanted) for part in _parts(t.cls)], np.int64)
    return all(free[free >= least].sum() >= parts[parts >= least].sum() for least in set(parts.tolist()))


def _parts(cls: TaskClass) -> Iterator[int]:
    """Give what a task takes of each of its devices, at least, in milli-GPU."""
    if cls.milli is None:
        yield from (MILLI for _ in range(cls.whole))
    else:
        yield from (int(cls.milli[cls.milli > 0].min(initial=MILLI)) for _ in range(cls.devices))
