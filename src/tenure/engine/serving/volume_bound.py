"""A necessary condition for moves: by volume, nodes and devices hold what moves and what it moves for.

Whatever stands where: of an amount, a place of which so much is free holds at most ``free // amount``, and a task that
asks for more counts as ``asked // amount`` of them, for parts that are rounded down come to no more than their sum
rounded down. So a node with three GPUs free is of no use to tasks of two GPUs beyond one of them, and one with half a
device free of none to whole devices. Each amount that some task asks for is looked at.

To move more of what stands on nodes that any of the tasks may use never makes it worse. So where there is too little
with all of it moved, there is too little whichever part of it moves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tenure.engine.room.classes import TaskClass
from tenure.engine.room.nodes import THEN, Ints, NodeTable
from tenure.engine.state.workloads import TaskState
from tenure.model.values.resources import MILLI


class VolumeShortage(NamedTuple):
    """The proof that something does not fit: places hold ``amount`` at most ``most`` times, and it is asked more often.

    ``resource`` is a row of the node table, and places are nodes; or devices, where it is None and the amount is in
    milli-GPU.
    """

    resource: str | None
    amount: int
    most: int
    asked: int


def volume_shortage(nodes: NodeTable, moved: Sequence[TaskState], wanted: Sequence[TaskState]) -> VolumeShortage | None:
    """Say of what there is too little for ``moved`` tasks, and tasks that are ``wanted``, to fit; None: of nothing.

    ``moved`` tasks stand on nodes, and count there; the nodes stay as they are.
    """
    counts = Counter(t.cls for t in chain(moved, wanted))
    usable = np.zeros(len(nodes), bool)
    for cls in counts:
        usable |= cls.static
    elsewhere = [t for t in moved if not usable[t.node]]  # what stands there frees nothing that is of use
    if elsewhere:
        counts -= Counter(t.cls for t in elsewhere)
        moved = [t for t in moved if usable[t.node]]
    number = {cls: n for n, cls in enumerate(counts)}
    asked = np.array([cls.ask for cls in counts], np.int64).reshape(len(counts), nodes.rows)
    free = np.maximum(nodes.room[nodes.rows :], 0)
    of = np.fromiter((number[t.cls] for t in moved), np.int64, len(moved))
    np.add.at(free.T, np.fromiter((t.node for t in moved), np.int64, len(moved)), asked[of])
    if nodes.has_devices:
        short = _of_devices(nodes, moved, counts, free, usable)
        if short is not None:
            return short
    times = np.fromiter(counts.values(), np.int64, len(counts))
    for row in np.flatnonzero(asked.any(axis=0)).tolist():
        if row != nodes.gpu_row or not nodes.has_devices:  # whole devices say more
            short = _shortage(nodes.resources[row], free[row, usable], asked[:, row], times)
            if short is not None:
                return short
    return None


def _of_devices(
    nodes: NodeTable, moved: Sequence[TaskState], counts: Counter[TaskClass], free: Ints, usable: NDArray[np.bool_]
) -> VolumeShortage | None:
    """Look at the devices, and count in ``free`` those that are whole once parts of them have left.

    Where it is not known on which devices parts stand, or claims serve GPUs, which have no numbers, the devices
    together are not looked at.
    """
    if any(t.cls.milli is not None and not t.devices for t in moved):
        free[nodes.rows - 1] = nodes.capacity[nodes.rows - 1]
        return None
    devices = np.maximum(nodes.device[THEN], 0)
    whole = (devices >= MILLI).sum(axis=1)
    for task in moved:
        if task.cls.milli is not None:
            devices[task.node, list(task.devices)] += task.cls.milli_on(task.node)
    free[nodes.rows - 1] += (devices >= MILLI).sum(axis=1) - whole
    if nodes.served is not None:
        return None
    for task in moved:
        if task.cls.milli is None:
            devices[task.node, list(task.devices)] += MILLI
    parts = np.fromiter(map(_part, counts), np.int64, len(counts))
    times = np.fromiter((c.devices * n or c.whole * n for c, n in counts.items()), np.int64, len(counts))
    return _shortage(None, devices[usable].ravel(), parts, times)


def _part(cls: TaskClass) -> int:
    """Give what a task takes of each of its devices, at least, in milli-GPU."""
    return MILLI if cls.milli is None else int(cls.milli[cls.milli > 0].min(initial=MILLI))


def _shortage(resource: str | None, free: Ints, asked: Ints, times: Ints) -> VolumeShortage | None:
    """Look at each amount that is asked for; ``free`` is by place, ``asked`` is asked for so many ``times``."""
    few = zip(asked.tolist(), times.tolist(), strict=True)  # for which numpy's own ways take longer
    for amount in sorted({each for each, often in few if each > 0 and often > 0}):
        need = int(asked // amount @ times)
        most = int(np.minimum(free // amount, need).sum())
        if most < need:
            return VolumeShortage(resource, amount, most, need)
    return None
