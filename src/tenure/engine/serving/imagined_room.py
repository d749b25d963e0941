"""Room as it will be: a copy of all of it, to release and place on in thought."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter

import numpy as np

from tenure.engine.journal import Journal
from tenure.engine.room import kernels
from tenure.engine.room.classes import TaskClass
from tenure.engine.room.nodes import NOW, THEN, Ints, NodeTable
from tenure.engine.room.score import FEW, UNFIT, Mask, Scorer
from tenure.engine.room.slots import fitting
from tenure.engine.serving.placement import Placer, enough, narrow_first
from tenure.engine.state.session import Session
from tenure.engine.state.workloads import Demand, TaskState, WorkloadState
from tenure.model.values.resources import MILLI

Ending = tuple[int, tuple[int, ...], str, WorkloadState]
"""Expected end (µs since the epoch), amount, name, and the workload."""


def place_of(task: TaskState) -> tuple[int, tuple[int, ...]]:
    """Give the node on which a task is active or to which it is nominated, -1 for none, and its devices there."""
    return (task.node, task.devices) if task.node >= 0 and task.active else (task.nominated, task.nominated_devices)


class ImaginedRoom:
    """A copy of all room as it will be once what terminates has left, to release and place on in thought."""

    def __init__(self, session: Session) -> None:
        nodes = self.nodes = object.__new__(NodeTable)
        nodes.__dict__.update(session.nodes.__dict__)
        nodes.journal = Journal()
        nodes.changed = []
        nodes.stamps = session.nodes.stamps.copy()
        nodes.waiting = 0
        rows = nodes.rows
        nodes.room = session.nodes.room.copy()
        nodes.room[:rows] = nodes.room[rows:]
        nodes.device = session.nodes.device.copy()
        nodes.device[NOW] = nodes.device[THEN]
        single = session.scorer.single
        self.scorer = Scorer(nodes, "spread" if single == "spread" else "binpack", session.fragmentation)

    @classmethod
    def left_on_one(cls, session: Session, room: list[int]) -> ImaginedRoom:
        """Imagine that the only node has this room, by row."""
        imagined = cls(session)
        imagined.nodes.room[:, 0] = [*room, *room]
        imagined.nodes.journal = session.journal
        return imagined

    def release(self, endings: Sequence[Ending]) -> None:
        """Give back what the active tasks of these workloads hold, and where they are nominated to."""
        nodes = self.nodes
        where: dict[tuple[TaskClass, bool], list[int]] = {}
        places, numbers, parts = list[int](), list[int](), list[int]()
        for ending in endings:
            for task in ending[-1].tasks:
                node, devices, cls = task.node, task.devices, task.cls
                if node < 0 or not task.active:  # most are: the function is called for the others alone
                    node, devices = place_of(task)
                    if node < 0:
                        continue
                where.setdefault((cls, bool(devices)), []).append(node)
                if devices:
                    places += (node,) * len(devices)
                    numbers += devices
                    parts += (cls.milli_on(node),) * len(devices)
        for (cls, numbered), there in where.items():
            _give_back(nodes, cls, there, numbered=numbered)
        _release_devices(nodes, places, numbers, parts)

    def _occupy(self, cls: TaskClass, node: int, devices: tuple[int, ...], sign: int) -> None:
        """Take (``sign`` 1) or give back (-1) what a task of a class holds on a node."""
        self.nodes.occupy(
            node, cls.takes(node, self.nodes), devices, cls.milli_on(node), now=True, then=True, sign=sign
        )

    def place(self, step: Demand) -> bool:
        """Place a step, or leave everything as it was."""
        nodes = self.nodes
        runs = [(cls, sum(1 for _ in run)) for cls, run in groupby(narrow_first(step.tasks), attrgetter("cls"))]
        for mask in self._domains(step):
            if len(step.tasks) > 1 and not enough(self.scorer, step, mask):
                continue
            room, device, before = nodes.room.copy(), nodes.device.copy(), len(nodes.changed)
            if all(self._place_alike(cls, number, mask) for cls, number in runs):
                return True
            nodes.room[:], nodes.device[:] = room, device
            nodes.changed += nodes.changed[before:]
        return False

    def _place_alike(self, cls: TaskClass, number: int, mask: Mask | None) -> bool:
        """Place some tasks of a class, each on the best node given those before; False where one finds none."""
        if number > 1 and cls.milli is None and self.scorer.packed:
            return _pack(self.nodes, self.scorer, cls, number, mask)
        return all(self._place_one(cls, mask) for _ in range(number))

    def _place_one(self, cls: TaskClass, mask: Mask | None) -> bool:
        node = self._best(cls, mask)
        if node < 0:
            return False
        placer = Placer.__new__(Placer)
        placer.nodes, placer.scorer = self.nodes, self.scorer
        devices = placer.devices(cls, node, bindable=True) if cls.whole or cls.devices else ()
        self._occupy(cls, node, devices, 1)
        return True

    def _best(self, cls: TaskClass, mask: Mask | None) -> int:
        """Give the best node for one task, -1 if none fits."""
        scorer, count = self.scorer, len(self.nodes)
        if count <= FEW and mask is None:
            assert scorer.scalar is not None
            keys = [scorer.scalar(cls, node) for node in range(count)]
            best = max(keys, default=UNFIT)
            return keys.index(best) if best > UNFIT else -1
        found = scorer.keys(cls, slice(None))
        found = found if mask is None else np.where(mask, found, UNFIT)
        node = int(found.argmax()) if count else -1
        return node if node >= 0 and found[node] > UNFIT else -1

    def _domains(self, step: Demand) -> list[Mask | None]:
        topology = step.tasks[0].workload.root.topology
        if topology is None or topology.required is None:
            return [None]
        ids, values = self.nodes.domains.of(topology.required)
        return [ids == number for number in range(len(values))]

    def has_room(self, task: TaskState) -> Mask:
        """Nodes on which one task fits."""
        return self.scorer.fits(task.cls, slice(None))[0]

    def has_room_at(self, task: TaskState, node: int) -> bool:
        """Whether one task fits this node."""
        if task.cls.milli is not None:
            return self.scorer.fit_at(task.cls, node) == kernels.BINDS
        return kernels.fit(self.nodes.room[:, node].tolist(), task.cls.asks, self.nodes.rows) == kernels.BINDS

    def take(self, task: TaskState) -> bool:
        """Take what a task that was just placed holds; False, with nothing taken, if its devices are spoken for.

        A rollback of the session gives it back.
        """
        node, devices = place_of(task)
        milli = task.cls.milli_on(node)
        free = self.nodes.free_devices(node, bindable=False) if devices else []
        if any(free[d] < milli for d in devices):
            return False
        self._occupy(task.cls, node, devices, 1)
        return True


def _give_back(nodes: NodeTable, cls: TaskClass, where: Sequence[int], *, numbered: bool) -> None:
    """Give back what tasks of a class take of nodes, one on each; which devices are free is counted elsewhere."""
    tasks = Counter(where)
    there, many = (np.fromiter(of, np.int64, len(tasks)) for of in (tasks, tasks.values()))
    amounts = cls.both
    if numbered:
        amounts = amounts.copy()
        amounts[[nodes.rows - 1, 2 * nodes.rows - 1]] = 0
    nodes.room[:, there] += amounts[:, None] * many
    if cls.milli is not None and numbered:
        nodes.room[[[nodes.gpu_row], [nodes.rows + nodes.gpu_row]], there] += cls.milli[there] * cls.devices * many
    nodes.changed += tasks


def _release_devices(nodes: NodeTable, places: Sequence[int], numbers: Sequence[int], parts: Sequence[int]) -> None:
    """Give back parts of devices, by node and number of the device, and count anew which are free."""
    if not places:
        return
    np.add.at(nodes.device, (np.array([[NOW], [THEN]]), np.array(places), np.array(numbers)), np.array(parts))
    touched = list(dict.fromkeys(places))
    free = (nodes.device[THEN, touched] == MILLI).sum(axis=1)
    nodes.room[nodes.rows - 1, touched] = nodes.room[2 * nodes.rows - 1, touched] = free
    nodes.changed += touched


def _pack(nodes: NodeTable, scorer: Scorer, cls: TaskClass, number: int, mask: Mask | None) -> bool:
    """Fill one node after the other, the best first: a node that is filled stays the best until it is full."""
    rows = nodes.rows
    keys = scorer.keys(cls, slice(None))
    order = np.argsort(-keys, kind="stable")
    order = order[(keys > UNFIT)[order] if mask is None else (mask & (keys > UNFIT))[order]]
    slots = fitting(nodes.room[rows:, order], cls.asks, cls.static[order])
    until = slots.cumsum()
    last = int(until.searchsorted(number))
    if last == len(order):
        return False
    chosen, numbers = order[: last + 1], slots[: last + 1]
    numbers[last] -= until[last] - number
    nodes.room[:, chosen] -= np.tile(cls.ask, 2)[:, None] * numbers
    numbered = np.flatnonzero(nodes.device_count[chosen]) if cls.whole else ()
    if len(numbered):
        _take_whole(nodes, chosen[numbered], numbers[numbered] * cls.whole)
    nodes.changed += chosen.tolist()
    return True


def _take_whole(nodes: NodeTable, where: Ints, counts: Ints) -> None:
    """Take so many devices that are wholly free on each of some nodes, the first there."""
    rows = nodes.rows
    free = nodes.device[THEN, where] == MILLI
    taken = free & (free.cumsum(axis=1) <= counts[:, None])
    nodes.device[:, where] = np.where(taken, 0, nodes.device[:, where])
    nodes.room[rows - 1, where] = nodes.room[2 * rows - 1, where] = (free & ~taken).sum(axis=1)
