"""When workloads would start if every running workload ended when it is expected to, and no others came."""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from math import inf
from typing import Protocol

from tenure.engine.serving.allocation import AllocationPass, promise_crowded
from tenure.engine.serving.backfill import Backfill, ExpectedReleases
from tenure.engine.serving.nominations import BeatableNominations, serve_nominations
from tenure.engine.serving.order import QueueOrder, QueueShares, skip_none
from tenure.engine.serving.placement import Placer
from tenure.engine.serving.survival import likely_end, likely_runtime
from tenure.engine.state.evictions import leave
from tenure.engine.state.notices import count_told, stand
from tenure.engine.state.session import Session
from tenure.engine.state.waiting import anything_waits
from tenure.engine.state.workloads import TERMINATING, Demand, Shape, TaskState, WorkloadState


class PassingShares(Protocol):
    """Shares of queues while time passes; what makes them stands above the engine."""

    def elapse(self, now: int) -> None:
        """Count what has been held until ``now`` (µs since the epoch)."""

    def now(self) -> QueueShares:
        """Give the shares for what is allocated and pending now."""


def estimated_starts(
    session: Session,
    fairness: PassingShares,
    most_waiting: int | None = None,
    most_times: int | None = None,
    *,
    likely: bool = False,
) -> dict[str, int]:
    """Give by workload when it would start, in µs since the epoch; workloads with an unknown start are missing.

    Parameters
    ----------
    session
        As things stand; it stays so.
    fairness
        The shares by which queues are ordered; time passes for them, so that they serve nothing else afterwards.
    most_waiting
        So many of those that wait are looked at, as they are served in order now; who stands behind them is taken to
        wait on. None: all.
    most_times
        So many times at which something ends or leaves are looked at; what starts later counts as unknown. None: all.
    likely
        Whether what does not say how long it runs ends as others of its queue did, where that is known.

    Notes
    -----
    All are played out on one future, cycle by cycle, with nothing but what `allocate` does: whenever something ends or
    has left, promises whose room is there are bound, and those that wait are served in order, beside the reservation
    where there is one. What starts holds its room until its own expected end, if it has one, and so the same room is
    promised once. A workload ends as a whole: what of it still waits then has no start any more.
    """
    with session.scenario():
        return Future(session, fairness, most_waiting, likely=likely).play(most_times)


class Future:
    """What becomes of a session in which nothing happens but what is expected; all of it is to be undone."""

    def __init__(self, session: Session, fairness: PassingShares, most_waiting: int | None, *, likely: bool) -> None:
        self.session = session
        self.fairness = fairness
        self.likely = likely
        self.placer = Placer(session)
        self.endings = ExpectedReleases()
        self.starts: dict[str, int] = {}
        self._ends: list[tuple[int, str]] = []
        for workload in session.workloads.values():
            if workload.occupied():
                self._expect_end(workload, likely_end(session, workload) if likely else workload.end_at())
        self._ends += {(end, t.workload.key) for t in session.noticed if (end := _end_under_notice(t)) is not None}
        heapify(self._ends)
        for task in sorted(session.leaving, key=lambda t: (t.workload.key, t.index)):
            stand(session, task)
            session.refresh(task.workload)
        if most_waiting is not None:
            self._look_at_first(most_waiting)
        self._leaves = [(session.leaves_at(t), t.workload.key, t.index, t) for t in session.leaving if not t.stuck]
        heapify(self._leaves)

    def _look_at_first(self, most: int) -> None:
        """Let those wait for nothing that stand behind the first in order; their queues still ask for it."""
        order = QueueOrder(self.session, self.fairness.now(), skip_none)
        first: set[WorkloadState] = set()
        while len(first) < most and (workload := order.next()) is not None:
            first.add(workload)
            order.pass_over(workload)
        for workload in self.session.waiting.all():
            if workload not in first:
                self.session.waiting.drop(workload)

    def play(self, most_times: int | None) -> dict[str, int]:
        """Give when what waits starts; so many times at which something ends or leaves are looked at at most."""
        self.session.new_epoch()
        self._serve()
        times = 0
        while times != most_times and (self._ends or self._leaves) and self._is_awaited():
            times += 1
            self._pass_time(max(self.session.now, min(heap[0][0] for heap in (self._ends, self._leaves) if heap)))
            self._serve()
        return self.starts

    def _is_awaited(self) -> bool:
        return bool(self.session.nominated) or anything_waits(self.session.waiting)

    def _pass_time(self, now: int) -> None:
        """Let time pass: what ends by then has ended, and what terminates has left."""
        session = self.session
        self.fairness.elapse(now)
        session.journal.set(session, "now", now)
        while self._ends and self._ends[0][0] <= now:
            self._end(session.workloads[heappop(self._ends)[1]])
        while self._leaves and self._leaves[0][0] <= now:
            task = heappop(self._leaves)[-1]
            if _terminates(task):
                leave(self.session, task)
                self._contend_again(task.workload)

    def _end(self, workload: WorkloadState) -> None:
        """End a workload as a whole: nothing of it runs, terminates or waits any more."""
        session = self.session
        self.endings.discard(workload)
        session.waiting.drop(workload)
        session.journal.set(workload, "step", None)
        for task in workload.tasks:
            if task.stuck:
                continue
            if _terminates(task):
                leave(self.session, task)
            session.finish(task)

    def _contend_again(self, workload: WorkloadState) -> None:
        """Let the replacement of what has left contend; what nothing runs of any more starts anew."""
        if not workload.occupied() and not any(map(_terminates, workload.tasks)):
            self.session.journal.set(workload, "started_at", None)
        self.session.refresh(workload)

    def _serve(self) -> None:
        """Do what allocate does at one time: promises first, then all that wait, in order."""
        session = self.session
        if session.noticed or session.queues.under_notice:
            count_told(session)
        if session.nodes.waiting:
            for workload, bound, _ in serve_nominations(session, self.placer):
                self.note_placed(workload, bound)
        EstimatePass(self).run()

    def note_placed(self, workload: WorkloadState, tasks: list[TaskState]) -> None:
        """Note that tasks were placed: when the workload starts, when it will end, and what it asks for next."""
        session = self.session
        if any(t.node >= 0 for t in tasks):
            self.starts.setdefault(workload.key, session.now)
        if workload.started_at is None and workload.root.satisfied(nominated=False):
            session.journal.set(workload, "started_at", session.now)
            runs = likely_runtime(session, workload) if self.likely else workload.expected
            self._expect_end(workload, session.now + runs if runs else None)
        elif workload.started_at is not None:
            self.endings.add(workload)
        session.refresh(workload)

    def _expect_end(self, workload: WorkloadState, end: int | None) -> None:
        """Note when a workload ends; reservations count on what it says itself alone."""
        self.endings.add(workload)
        if end is not None:
            heappush(self._ends, (end, workload.key))


def _end_under_notice(task: TaskState) -> int | None:
    """When a workload ends all of which is under notice, if it is left to finish; None where it is evicted."""
    workload, notice = task.workload, task.notice
    start = workload.model.started_at if workload.started_at is None else workload.started_at
    if workload.occupied() or notice is None or start is None or not workload.expected:
        return None
    end = start + workload.expected
    return end if end <= notice.deadline else None


def _terminates(task: TaskState) -> bool:
    return task.leaving >= 0 or task.phase is TERMINATING


class EstimatePass(AllocationPass):
    """The pass at one time of a future: it is over as soon as no step of any shape can find a place.

    As in the cycle, what is promised may be beaten by those that rank ahead; as long as some is, all are tried.
    """

    def __init__(self, future: Future) -> None:
        session = future.session
        super().__init__(session, future.placer)
        self.future = future
        self._open: dict[Shape | None, float] = {}
        self._rivals: BeatableNominations | None = None
        self._note_all()

    def run(self) -> None:
        """Serve workloads until none can be served any more."""
        session, promised = self.session, bool(self.session.nominated)
        if not promised and all(shape is not None and shape.exceeds(session.most_room()) for shape in self._open):
            return
        self.shares = self.future.fairness.now()
        if promised and self._open:
            rivals = BeatableNominations(session, self.placer, self.shares)
            self._rivals = rivals if rivals.workloads else None
        self._begin()
        super().run()

    def _begin(self) -> None:
        """Begin with the first of all."""
        if self.session.settings.backfill == "easy":
            self.backfill = Backfill(self.session, self.future.endings, self.placer)
        self.order = QueueOrder(self.session, self.shares, self._known_to_fail)

    def _note_all(self) -> None:
        for workload in self.session.waiting.all():
            self._note_open(workload)

    def _note_open(self, workload: WorkloadState) -> None:
        """Note the shape of a step that may find a place, with the earliest end of one that has it."""
        step, expected = workload.step, workload.expected
        assert step is not None
        start = self.session.now if workload.started_at is None else workload.started_at
        end = start + expected if expected else inf
        self._open[step.shape] = min(end, self._open.get(step.shape, inf))

    def _placed(self, workload: WorkloadState, step: Demand) -> None:
        promise_crowded(self.session, step.tasks)
        self.future.note_placed(workload, step.tasks)
        if workload.entry is not None:
            self._note_open(workload)
        if self._rivals is not None:
            self._rivals.note_placed()

    def _infeasible(self, workload: WorkloadState, step: Demand) -> bool:
        return self._rivals is None and super()._infeasible(workload, step)

    def _refused(self, workload: WorkloadState, step: Demand) -> None:
        if self._rivals is not None and self._beat(self._rivals, workload, step):
            return
        super()._refused(workload, step)
        if self._rivals is not None:
            return
        if step.shape in self._open and self._is_closed(step.shape):
            del self._open[step.shape]
        self.over = not self._open

    def _beat(self, rivals: BeatableNominations, workload: WorkloadState, step: Demand) -> bool:
        """Serve one that does not fit with room promised to others behind it, and begin anew with these."""
        first = self.backfill is None or not self.backfill.blocked or self.backfill.blocked[0] is workload
        lost = rivals.beaten_by(workload, step) if first else []
        if not lost:
            return False
        self._placed(workload, step)
        for task in lost:
            self.session.refresh(task.workload)
        if not rivals.workloads:
            self._rivals = None
            self._note_all()
        self._begin()
        return True

    def _is_closed(self, shape: Shape | None) -> bool:
        """Whether no step of a shape finds a place any more, nor, with a reservation, beside it."""
        if shape is None or shape.failed == self.session.epoch:
            return shape is not None
        backfill = self.backfill
        return (
            backfill is not None
            and backfill.reservation is not None
            and shape.failed_beside == backfill.serial
            and self._open[shape] > backfill.reservation.at
        )
