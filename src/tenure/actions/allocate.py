"""Allocate: give free room to those that wait, in order.

Nominations come first: what was promised is bound as soon as the room is there. Then every pending workload is tried
once, in the order of `tenure.engine.order`; one that does not fit is passed over, or, with backfill ``easy``, the
first that does not fit for want of free room gets a reservation that later ones must not delay.
"""

from __future__ import annotations

from tenure.actions.context import Context
from tenure.engine.backfill import Reservation, reserve
from tenure.engine.order import QueueOrder
from tenure.engine.workloads import NextStep, TaskState, WorkloadState


def allocate(context: Context) -> None:
    """Place what fits, and write it into the plan."""
    bind_nominated(context)
    _Allocation(context).run()


def bind_nominated(context: Context) -> None:
    """Bind nominated tasks whose room is there now: a core as a whole, everything else one by one."""
    session = context.session
    if not session.nodes.waiting:
        return
    held = [w for w in session.workloads.values() if any(t.nominated >= 0 for t in w.tasks)]
    for workload in sorted(held, key=lambda w: (-w.priority, w.created_at, w.key)):
        tasks = [t for t in workload.tasks if t.nominated >= 0]
        starting = not workload.occupied()
        for group in [tasks] if starting else [[t] for t in tasks]:
            _bind_together(context, group)
        session.note_start(workload)
        session.refresh(workload)


def _bind_together(context: Context, tasks: list[TaskState]) -> None:
    session = context.session
    mark, epoch = session.checkpoint(), session.epoch
    for task in tasks:
        node, devices = task.nominated, task.nominated_devices
        session.withdraw(task)
        if not _room_now(context, task, node, devices):
            session.rollback(mark, epoch=epoch)
            return
        session.bind(task, node, devices)
    session.commit()
    for task in tasks:
        context.record(task)


def _room_now(context: Context, task: TaskState, node: int, devices: tuple[int, ...]) -> bool:
    """Whether a task can be bound to a node on these devices now."""
    session = context.session
    if not context.placer.fits_at(task, node):
        return False
    milli = 1000 if task.cls.milli is None else int(task.cls.milli[node])
    free = session.nodes.free_devices(node, bindable=True) if devices else []
    return all(free[d] >= milli for d in devices)


class _Allocation:
    """One pass over all that wait."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.session = context.session
        self.easy = context.session.settings.backfill == "easy"
        self.order = QueueOrder(self.session, context.fairness.now(), skip_failed=not self.easy)
        self.first_blocked: WorkloadState | None = None
        self.reservation: Reservation | None = None

    def run(self) -> None:
        """Serve workloads until nobody can be served any more."""
        order, serve = self.order, self._serve_beside if self.easy else self._serve
        while (workload := order.next()) is not None:
            step = workload.step
            assert step is not None
            if not self._held_back(workload, step) and serve(workload, step):
                self._placed(workload, step)
            else:
                order.pass_over(workload)

    def _held_back(self, workload: WorkloadState, step: NextStep) -> bool:
        """Whether a queue's maximum, or guarantees that must not be borrowed against, forbid the step."""
        queues, leaf = self.session.queues, workload.leaf
        if queues.limited[leaf] and queues.over_max(leaf, step.amount) is not None:
            return True
        return workload.fixed and queues.beyond_guaranteed(leaf, step.amount) is not None

    def _serve(self, workload: WorkloadState, step: NextStep) -> bool:
        shape, session = step.shape, self.session
        if shape is not None and shape.failed == session.epoch:
            return False
        if self.context.placer.place(workload, step):
            return True
        if shape is not None:
            shape.failed = session.epoch
        return False

    def _serve_beside(self, workload: WorkloadState, step: NextStep) -> bool:
        """As `_serve`, beside the reservation of the first that was blocked."""
        shape, session = step.shape, self.session
        if shape is not None and shape.failed == session.epoch:
            self._block(workload)
            return False
        if self.first_blocked is None:
            if self._serve(workload, step):
                return True
            self._block(workload)
            return False
        return self._backfill(workload, step)

    def _block(self, workload: WorkloadState) -> None:
        if self.first_blocked is None:
            self.first_blocked = workload

    def _backfill(self, workload: WorkloadState, step: NextStep) -> bool:
        """Start a later workload if that delays nobody who has a promise."""
        if self.reservation is None:
            assert self.first_blocked is not None
            self.reservation = reserve(self.session, self.context.endings, self.first_blocked)
        if self.reservation is None:  # no expected end lets it fit: there is nothing to delay
            self.first_blocked = None
            return self._serve_beside(workload, step)
        return self.reservation.place_beside(self.context.placer, workload, step)

    def _placed(self, workload: WorkloadState, step: NextStep) -> None:
        context, session = self.context, self.session
        for task in step.tasks:
            context.record(task)
        session.note_start(workload)
        session.refresh(workload)
        if self.easy:
            context.endings.add(workload)
        self.order.served(workload)
