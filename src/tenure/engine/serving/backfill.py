"""EASY backfilling: one reservation, and who may start beside it.

The first workload that does not fit for want of free room is promised the earliest time at which it would fit if
every running workload ended when it is expected to. Others may start in the meantime if they are expected to be gone
by then, or if they fit into what is left over beside it (Lifka, "The ANL/IBM SP scheduling system", JSSPP 1995).
Reservations count room by node and devices; what tasks want of each other is not looked at.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable
from functools import partial
from operator import add, ge, itemgetter, sub

from tenure.engine.room.nodes import NodeTable
from tenure.engine.serving.imagined_room import Ending, ImaginedRoom
from tenure.engine.serving.placement import Placer, enough
from tenure.engine.state.session import Session
from tenure.engine.state.workloads import Demand, WorkloadState
from tenure.model.values.resources import MILLI


def ending_of(workload: WorkloadState, end: int) -> Ending:
    """Say when a workload gives back all that it holds, what is nominated included."""
    amounts = [t.cls.amount for t in workload.tasks if t.node >= 0 or t.nominated >= 0]
    return end, tuple(map(sum, zip(*amounts, strict=True))), workload.key, workload


class ExpectedReleases:
    """Running workloads with a known expected end, in the order in which they are released in thought.

    What starts next starts so many µs ``later`` than they have: 0, but where it is thought of what comes after them.
    """

    def __init__(self, later: int = 0) -> None:
        self.later = later
        self.sorted: list[Ending] = []
        self._of: dict[str, Ending] = {}

    def add(self, workload: WorkloadState) -> None:
        """A workload has started, or holds more than it did."""
        self.discard(workload)
        end = workload.end_at()
        if end is not None:
            ending = self._of[workload.key] = ending_of(workload, end)
            insort(self.sorted, ending, key=itemgetter(0, 1, 2))

    def after(self, changed: Iterable[WorkloadState], *, later: int = 0) -> ExpectedReleases:
        """Give them as they are once some workloads hold something else than they did, so many µs ``later``."""
        found = ExpectedReleases(self.later + later)
        found.sorted, found._of = self.sorted.copy(), self._of.copy()
        for workload in changed:
            found.add(workload)
        return found

    def discard(self, workload: WorkloadState) -> None:
        """A workload has ended or was evicted."""
        ending = self._of.pop(workload.key, None)
        if ending is not None:
            del self.sorted[bisect_left(self.sorted, ending[:3], key=itemgetter(0, 1, 2))]


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
        start = self.session.now + self.endings.later if workload.started_at is None else workload.started_at
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
        if step.shape is not None and step.shape.steady:
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
            step.shape.fail(self.session.epoch)
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
