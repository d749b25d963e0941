"""A necessary condition for moves: by volume, nodes and devices hold what moves and what it moves for.

Whatever stands where: of an amount, a place of which so much is free holds at most ``free // amount``, and a task that
asks for more counts as ``asked // amount`` of them, for parts that are rounded down come to no more than their sum
rounded down. So a node with three GPUs free is of no use to tasks of two GPUs beyond one of them, and one with half a
device free of none to whole devices. Each amount that some task asks for is looked at.

To move more of what stands on nodes that any of the tasks may use never makes it worse. So where there is too little
with all of it moved, there is too little whichever part of it moves.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np

from tenure.engine.room.classes import TaskClass
from tenure.engine.room.labels import Mask
from tenure.engine.room.nodes import THEN, NodeTable
from tenure.engine.state.workloads import TaskState
from tenure.model.values.resources import MILLI

MANY = 1 << 31
"""A place counts at most so often: an amount that nodes do not limit is added up as well."""

Places = list[list[int]]
"""What is free on the places of one node: by row of the node table the node itself, and behind these its devices."""


class VolumeShortage(NamedTuple):
    """The proof that something does not fit: places hold ``amount`` at most ``most`` times, and it is asked more often.

    ``resource`` is a row of the node table, and places are nodes; or devices, where it is None and the amount is in
    milli-GPU.
    """

    resource: str | None
    amount: int
    most: int
    asked: int


class _Lack(NamedTuple):
    """An amount that nodes do not hold as often as is ``needed`` before anything moves: only ``held`` times."""

    row: int
    amount: int
    held: int
    needed: int


class VolumeBound:
    """The bound for nodes that stay as they are while it is asked about different moves.

    What nodes hold is counted once, and so is what some tasks that leave a node free on it: most sets of moves have
    most of that in common.
    """

    def __init__(self, nodes: NodeTable) -> None:
        self._nodes = nodes
        self._usable: dict[frozenset[TaskClass], tuple[Mask, list[bool]]] = {}
        self._held: dict[tuple[frozenset[TaskClass], bool, int, int], int] = {}
        self._lacks: dict[tuple[frozenset[tuple[TaskClass, int]], bool], list[_Lack]] = {}
        self._freed: dict[tuple[TaskState, ...], tuple[Places, Places]] = {}
        self._gains: dict[tuple[tuple[TaskState, ...], int, int], int] = {}

    def shortage(self, moved: Sequence[TaskState], wanted: Sequence[TaskState]) -> VolumeShortage | None:
        """Say of what there is too little for ``moved`` tasks, and tasks that are ``wanted``, to fit; None: of nothing.

        ``moved`` tasks stand on nodes, and count there. Where it is not known on which devices parts stand, or claims
        serve GPUs, which have no numbers, the devices together are not looked at, and the whole ones are all free.
        """
        counts: dict[TaskClass, int] = {}
        for task in chain(moved, wanted):
            counts[task.cls] = counts.get(task.cls, 0) + 1
        usable = self._usable_by(frozenset(counts))[1]
        standing: dict[int, list[TaskState]] = {}
        known = True
        for task in moved:
            if usable[task.node]:
                standing.setdefault(task.node, []).append(task)
                known = known and (task.cls.milli is None or bool(task.devices))
            else:  # what stands there frees nothing that is of use
                counts[task.cls] -= 1
        leaving = [tuple(tasks) for tasks in standing.values()]
        for row, amount, held, needed in self._lacking(counts, known=known):
            counted = known or row != self._nodes.rows - 1
            most = held + (sum(self._gain(tasks, row, amount) for tasks in leaving) if counted else 0)
            if most < needed:
                resource = None if row == self._nodes.rows else self._nodes.resources[row]
                return VolumeShortage(resource, amount, most, needed)
        return None

    def _usable_by(self, classes: frozenset[TaskClass]) -> tuple[Mask, list[bool]]:
        """Give the nodes that any task of these classes may use."""
        found = self._usable.get(classes)
        if found is None:
            mask = np.zeros(len(self._nodes), bool)
            for cls in classes:
                mask |= cls.static
            found = self._usable[classes] = mask, mask.tolist()
        return found

    def _lacking(self, counts: Mapping[TaskClass, int], *, known: bool) -> list[_Lack]:
        """Give what nodes lack for so many tasks of each class, in the order in which it is said."""
        key = frozenset(counts.items()), known
        found = self._lacks.get(key)
        if found is None:
            found = self._lacks[key] = []
            for row, asked in _asked(self._nodes, counts, devices=known and self._nodes.served is None):
                for amount in sorted(asked):
                    needed = sum(each // amount * times for each, times in asked.items())
                    held = self._times(frozenset(counts), row, amount, known=known)
                    if held < needed:
                        found.append(_Lack(row, amount, held, needed))
        return found

    def _times(self, classes: frozenset[TaskClass], row: int, amount: int, *, known: bool) -> int:
        """Count how often the nodes for some classes hold an amount before anything moves."""
        key = classes, known, row, amount
        found = self._held.get(key)
        if found is None:
            nodes = self._nodes
            free = nodes.device[THEN] if row == nodes.rows else nodes.room[nodes.rows + row]
            if not known and row == nodes.rows - 1:
                free = nodes.capacity[row]
            times = free[self._usable_by(classes)[0]] // amount
            found = self._held[key] = int(times.clip(0, MANY).sum())
        return found

    def _gain(self, tasks: tuple[TaskState, ...], row: int, amount: int) -> int:
        """Count how much more often a node holds an amount once some of its tasks have left."""
        key = tasks, row, amount
        found = self._gains.get(key)
        if found is None:
            places = self._freed.get(tasks)
            if places is None:
                places = self._freed[tasks] = _freed(self._nodes, tasks)
            found = self._gains[key] = _times(places[1][row], amount) - _times(places[0][row], amount)
        return found


def _freed(nodes: NodeTable, tasks: Sequence[TaskState]) -> tuple[Places, Places]:
    """Give what is free on a node before some of its tasks move, and after that."""
    node = tasks[0].node
    before: Places = [[max(free, 0)] for free in nodes.room[nodes.rows :, node].tolist()]
    before.append([max(free, 0) for free in nodes.device[THEN, node].tolist()])
    after = [list(places) for places in before]
    for task in tasks:
        for row, amount in task.cls.asks:
            after[row][0] += amount
    if nodes.has_devices:
        whole, devices = after[nodes.rows - 1], after[-1]
        for task in tasks:
            for device in task.devices if task.cls.milli is not None else ():
                devices[device] += task.cls.milli_on(node)
        whole[0] += _times(devices, MILLI) - _times(before[-1], MILLI)  # of which parts have left
        for task in tasks:
            for device in task.devices if task.cls.milli is None else ():
                devices[device] += MILLI
    return before, after


def _asked(
    nodes: NodeTable, counts: Mapping[TaskClass, int], *, devices: bool
) -> Iterator[tuple[int, Mapping[int, int]]]:
    """Give how often each amount is asked for, by row; of devices first, if they are looked at."""
    parts: Counter[int] = Counter()
    rows: dict[int, Counter[int]] = defaultdict(Counter)
    for cls, times in counts.items():
        parts[_part(cls)] += times * (cls.devices or cls.whole)
        for row, amount in cls.asks if times else ():
            if row != nodes.gpu_row or not nodes.has_devices:  # whole devices say more
                rows[row][amount] += times
    if nodes.has_devices and devices:
        yield nodes.rows, +parts
    yield from sorted(rows.items())


def _times(places: Sequence[int], amount: int) -> int:
    """Count how often places hold an amount."""
    return sum(min(free // amount, MANY) for free in places)


def _part(cls: TaskClass) -> int:
    """Give what a task takes of each of its devices, at least, in milli-GPU."""
    return MILLI if cls.milli is None else int(cls.milli[cls.milli > 0].min(initial=MILLI))
