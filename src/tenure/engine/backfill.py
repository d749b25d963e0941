"""EASY backfilling: one reservation, and who may start beside it.

The first workload that does not fit for want of free room is promised the earliest time at which it would fit if
every running workload ended when it is expected to. Others may start in the meantime if they are expected to be gone
by then, or if they fit into what is left over beside it (Lifka, "The ANL/IBM SP scheduling system", JSSPP 1995).
Reservations count room by node and devices; what tasks want of each other is not looked at.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Sequence
from functools import partial
from itertools import groupby
from operator import add, attrgetter, ge, itemgetter, sub

import numpy as np
from numpy.typing import NDArray

from tenure.engine import kernels
from tenure.engine.classes import TaskClass
from tenure.engine.journal import Journal
from tenure.engine.nodes import NOW, THEN, Ints, NodeTable
from tenure.engine.placement import Placer, enough, narrow_first
from tenure.engine.score import FEW, UNFIT, Scorer
from tenure.engine.session import Session
from tenure.engine.slots import fitting
from tenure.engine.workloads import Demand, TaskState, WorkloadState
from tenure.model.resources import MILLI

Ending = tuple[int, tuple[int, ...], str, WorkloadState]
"""Expected end (µs since the epoch), amount, name, and the workload."""


def place_of(task: TaskState) -> tuple[int, tuple[int, ...]]:
    """Give the node on which a task is active or to which it is nominated, -1 for none, and its devices there."""
    return (task.node, task.devices) if task.node >= 0 and task.active else (task.nominated, task.nominated_devices)


def ending_of(workload: WorkloadState, end: int) -> Ending:
    """Say when a workload gives back all that it holds, what is nominated included."""
    amounts = [t.cls.amount for t in workload.tasks if t.node >= 0 or t.nominated >= 0]
    return end, tuple(map(sum, zip(*amounts, strict=True))), workload.key, workload


class ExpectedReleases:
    """Running workloads with a known expected end, in the order in which they are released in thought."""

    def __init__(self) -> None:
        self.sorted: list[Ending] = []
        self._of: dict[str, Ending] = {}

    def add(self, workload: WorkloadState) -> None:
        """A workload has started, or holds more than it did."""
        self.discard(workload)
        end = workload.end_at()
        if end is not None:
            ending = self._of[workload.key] = ending_of(workload, end)
            insort(self.sorted, ending, key=itemgetter(0, 1, 2))

    def discard(self, workload: WorkloadState) -> None:
        """A workload has ended or was evicted."""
        ending = self._of.pop(workload.key, None)
        if ending is not None:
            del self.sorted[bisect_left(self.sorted, ending[:3], key=itemgetter(0, 1, 2))]


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
        self.scorer = Scorer(nodes, "spread" if single == "spread" else "binpack", session.mix)

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
        freed: dict[tuple[int, int], int] = {}
        devices: dict[tuple[int, int], int] = {}
        counted = nodes.rows - 1 if nodes.has_devices else -1
        for ending in endings:
            for task in ending[-1].tasks:
                node, devices_held, cls = task.node, task.devices, task.cls
                if node < 0 or not task.active:  # most are: the function is called for the others alone
                    node, devices_held = place_of(task)
                    if node < 0:
                        continue
                for row, amount in cls.asks:
                    if row != counted or not devices_held:
                        freed[row, node] = freed.get((row, node), 0) + amount
                if devices_held:
                    milli = cls.milli_on(node)
                    devices.update({(node, d): devices.get((node, d), 0) + milli for d in devices_held})
                    if cls.milli is not None:
                        key = nodes.gpu_row, node
                        freed[key] = freed.get(key, 0) + milli * cls.devices
        self._release_devices(devices)
        for half in (0, nodes.rows) if freed else ():
            rows, places = zip(*freed, strict=True)
            nodes.room[np.array(rows) + half, np.array(places)] += np.fromiter(freed.values(), np.int64, len(freed))
        nodes.changed += dict.fromkeys(node for _, node in freed)

    def _release_devices(self, freed: dict[tuple[int, int], int]) -> None:
        """Give back parts of devices, by node and device, and count anew which are free."""
        if not freed:
            return
        nodes = self.nodes
        places, numbers = (np.array(column) for column in zip(*freed, strict=True))
        nodes.device[:, places, numbers] += np.fromiter(freed.values(), np.int64, len(freed))
        touched = np.unique(places)
        free = (nodes.device[THEN, touched] == MILLI).sum(axis=1)
        nodes.room[nodes.rows - 1, touched] = nodes.room[2 * nodes.rows - 1, touched] = free
        nodes.changed += touched.tolist()

    def _occupy(self, cls: TaskClass, node: int, devices: tuple[int, ...], number: int) -> None:
        """Take what so many tasks of a class hold on a node; give it back if ``number`` is negative."""
        milli = cls.milli_on(node) * (1 if number > 0 else -1)
        ask = cls.takes(node, self.nodes) * number
        self.nodes.occupy(node, ask, devices, milli, now=True, then=True, sign=1)

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

    def _place_alike(self, cls: TaskClass, number: int, mask: NDArray[np.bool_] | None) -> bool:
        """Place some tasks of a class, each on the best node given those before; False where one finds none."""
        if number > 1 and cls.milli is None and self.scorer.packed:
            return self._pack(cls, number, mask)
        return all(self._place_one(cls, mask) for _ in range(number))

    def _place_one(self, cls: TaskClass, mask: NDArray[np.bool_] | None) -> bool:
        node = self._best(cls, mask)
        if node < 0:
            return False
        placer = Placer.__new__(Placer)
        placer.nodes, placer.scorer = self.nodes, self.scorer
        devices = placer.devices(cls, node, bindable=True) if cls.whole or cls.devices else ()
        self._occupy(cls, node, devices, 1)
        return True

    def _pack(self, cls: TaskClass, number: int, mask: NDArray[np.bool_] | None) -> bool:
        """Fill one node after the other, the best first: a node that is filled stays the best until it is full."""
        nodes, rows = self.nodes, self.nodes.rows
        keys = self.scorer.keys(cls, slice(None))
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
            self._take_whole(chosen[numbered], numbers[numbered] * cls.whole)
        nodes.changed += chosen.tolist()
        return True

    def _take_whole(self, where: Ints, counts: Ints) -> None:
        """Take so many devices that are wholly free on each of some nodes, the first there."""
        nodes, rows = self.nodes, self.nodes.rows
        free = nodes.device[THEN, where] == MILLI
        taken = free & (free.cumsum(axis=1) <= counts[:, None])
        nodes.device[:, where] = np.where(taken, 0, nodes.device[:, where])
        nodes.room[rows - 1, where] = nodes.room[2 * rows - 1, where] = (free & ~taken).sum(axis=1)

    def _best(self, cls: TaskClass, mask: NDArray[np.bool_] | None) -> int:
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

    def _domains(self, step: Demand) -> list[NDArray[np.bool_] | None]:
        topology = step.tasks[0].workload.root.topology
        if topology is None or topology.required is None:
            return [None]
        ids, values = self.nodes.labels.domains(topology.required)
        return [ids == number for number in range(len(values))]

    def has_room(self, task: TaskState) -> NDArray[np.bool_]:
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


class Reservation:
    """The promise to one workload: it fits at ``at`` (µs since the epoch), and ``extra`` is left beside it then.

    ``most`` is the most that any node has left of each row. ``extra`` is made when it is first asked for.
    """

    __slots__ = ("_extra", "_imagine", "at", "most")

    def __init__(self, at: int, most: list[int], imagine: Callable[[], ImaginedRoom]) -> None:
        self.at = at
        self.most = most
        self._imagine = imagine
        self._extra: ImaginedRoom | None = None

    @property
    def extra(self) -> ImaginedRoom:
        """Room that is left beside the promise when its time comes."""
        if self._extra is None:
            self._extra = self._imagine()
        return self._extra

    def used(self) -> None:
        """Note that some of what is left was taken."""
        self.most = self.extra.nodes.most_room()


class Backfill:
    """One pass with backfilling: the first blocked workload, its reservation, and which workloads may start beside it.

    The reservation is made when the first workload asks to start beside it; often none fits anyway.
    """

    def __init__(self, session: Session, endings: ExpectedReleases, placer: Placer) -> None:
        self.session = session
        self.endings = endings
        self.placer = placer
        self.blocked: list[WorkloadState] = []
        self.reservation: Reservation | None = None
        self.serial = session.waiting.next_serial()
        self._on_time = True
        self._one_node = len(session.nodes) == 1

    def block(self, workload: WorkloadState) -> None:
        """Note that a workload does not fit for want of free room: the first that can be promised a time gets it."""
        if self.reservation is None:
            self.blocked.append(workload)

    def known_to_delay(self, workload: WorkloadState, step: Demand) -> bool:
        """Whether it would not be gone in time, and a step of this shape does not fit beside the reservation."""
        shape, reservation = step.shape, self.reservation
        if shape is None or reservation is None:
            return False
        if shape.failed_beside != self.serial:
            if not shape.exceeds(reservation.most):
                return False
            shape.failed_beside = self.serial
        return not self._gone_in_time(workload)

    def _gone_in_time(self, workload: WorkloadState) -> bool:
        reservation = self.reservation
        assert reservation is not None
        return bool(workload.expected) and self._end_of(workload) <= reservation.at

    def _end_of(self, workload: WorkloadState) -> int:
        """When a workload will end that starts now, or grows while it runs."""
        start = self.session.now if workload.started_at is None else workload.started_at
        return start + (workload.expected or 0)

    def place(self, workload: WorkloadState, step: Demand) -> bool:
        """Place a later workload if it fits and delays no workload with a reservation; False: nothing was done."""
        if self.known_to_delay(workload, step):
            return False
        if not self._fits_now(step):
            self.block(workload)
            return self._never_now(step)
        if self.reservation is None and not self.promise_first():
            return self._place_freely(workload, step)
        if self._gone_in_time(workload):
            return self._place_before(workload, step) or self._never_now(step)
        if self._place_beside(workload, step):
            self._on_time = self._on_time and self._one_node
            return True
        if step.shape is not None:
            step.shape.failed_beside = self.serial
        return False

    def _fits_now(self, step: Demand) -> bool:
        """Whether there seems to be room for the step, the reservation not looked at."""
        if len(step.tasks) == 1:
            return self.placer.find(step.tasks[0])[0] >= 0
        return enough(self.placer.scorer, step)

    def _never_now(self, step: Demand) -> bool:
        """Remember that steps of this shape do not fit until room grows."""
        if step.shape is not None:
            step.shape.failed = self.session.epoch
        return False

    def still_holds(self) -> bool:
        """Whether making the reservation anew would give the same.

        Not once its time has come, not if a workload ends exactly then (which is released first might differ), and on
        several nodes not if a workload started beside it (it might find its place elsewhere).
        """
        return self._on_time and (self.reservation is None or self.reservation.at > self.session.now)

    def _place_before(self, workload: WorkloadState, step: Demand) -> bool:
        """Place a workload that will be gone when the reservation begins."""
        assert self.reservation is not None
        placed = self.placer.place(workload, step)
        if placed and (not self._one_node or self._end_of(workload) == self.reservation.at):
            self._on_time = False
        return placed

    def promise_first(self) -> bool:
        """Reserve a time for the first blocked workload; a workload that no expected end helps gets none."""
        while self.blocked and self.reservation is None:
            self.reservation = reserve(self.session, self.endings, self.blocked[0])
            if self.reservation is None:
                del self.blocked[0]
        return self.reservation is not None

    def _place_freely(self, workload: WorkloadState, step: Demand) -> bool:
        if self.placer.place(workload, step):
            return True
        self.block(workload)
        return False

    def _place_beside(self, workload: WorkloadState, step: Demand) -> bool:
        """Place a workload into what is left beside the reservation, and use that up."""
        assert self.reservation is not None
        session, placer = self.session, self.placer
        with session.scenario() as scenario:
            placer.remaining = self.reservation.extra
            placed = placer.place(workload, step)
            placer.remaining = None
            if placed:
                scenario.keep()
        if placed:
            self.reservation.used()
        return placed


def reserve(session: Session, endings: ExpectedReleases, workload: WorkloadState) -> Reservation | None:
    """Reserve for a workload that does not fit now; None if no expected end lets it fit."""
    step = workload.step
    assert step is not None
    if _is_plain(session.nodes, step):
        return _reserve_on_one(session, endings, step)
    imagined = ImaginedRoom(session)
    needed = _least_amount(session, step)
    free = imagined.nodes.room[: imagined.nodes.amounts].sum(axis=1).tolist()
    released = 0
    for position, (end, amount, _, _) in enumerate(endings.sorted):
        free = list(map(add, free, amount))
        if all(map(ge, free, needed)):
            imagined.release(endings.sorted[released : position + 1])
            released = position + 1
            if imagined.place(step):
                imagined.nodes.journal = session.journal
                return Reservation(max(end, session.now), imagined.nodes.most_room(), lambda: imagined)
    return None


def _is_plain(nodes: NodeTable, step: Demand) -> bool:
    """Whether a step fits exactly if there is enough in all: there is one node, which admits it, without devices."""
    return len(nodes) == 1 and not nodes.has_devices and all(task.cls.static_list[0] for task in step.tasks)


def _reserve_on_one(session: Session, endings: ExpectedReleases, step: Demand) -> Reservation | None:
    free, needed = session.nodes.room[session.nodes.rows :, 0].tolist(), step.amount
    for end, amount, _, _ in endings.sorted:
        free = list(map(add, free, amount))
        if all(map(ge, free, needed)):
            left = list(map(sub, free, needed))
            return Reservation(max(end, session.now), left, partial(ImaginedRoom.left_on_one, session, left))
    return None


def _least_amount(session: Session, step: Demand) -> list[int]:
    """Give what a step takes at least: a part of a GPU by memory is less of one that has more."""
    needed = list(step.amount)
    for task in step.tasks:
        milli = task.cls.milli
        if milli is not None:
            least = milli[milli > 0].min(initial=MILLI) * task.cls.devices
            needed[session.nodes.gpu_row] += int(least) - task.cls.amount[session.nodes.gpu_row]
    return needed
