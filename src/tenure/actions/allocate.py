"""Allocate: give free room to those that wait, in order.

Nominations come first: what was promised is bound as soon as the room is there. Then every pending workload is tried
once, in the order of `tenure.engine.order`; one that does not fit is passed over, or, with backfill ``easy``, the
first that does not fit for want of free room gets a reservation that later ones must not delay.
"""

from __future__ import annotations

from tenure.actions.context import Context
from tenure.engine.allocation import AllocationPass, InTurn
from tenure.engine.backfill import Backfill
from tenure.engine.nominations import BeatableNominations, bound_together, is_whole, overdue
from tenure.engine.notices import count_told
from tenure.engine.order import QueueOrder
from tenure.engine.session import Session
from tenure.engine.waiting import Entry
from tenure.engine.workloads import Demand, TaskState, WorkloadState


def allocate(context: Context) -> None:
    """Place what fits, and write it into the plan."""
    if context.session.noticed or context.session.queues.under_notice:
        count_told(context.session)
    bind_nominated(context)
    last = context.last_pass
    if isinstance(last, CyclePass) and last.still_holds():
        last.serve_arrivals()
    else:
        context.last_pass = last = CyclePass(context)
        last.run()
    last.epoch = context.session.epoch


def bind_nominated(context: Context) -> None:
    """Bind nominated tasks whose room is there now: a core as a whole, everything else one by one.

    What still cannot be bound and has waited too long is given up.
    """
    session = context.session
    if not session.nodes.waiting:
        return
    held = {t.workload for t in session.nominated}
    for workload in sorted(held, key=lambda w: (-w.priority, w.created_at, w.key)):
        for group in bound_together(workload):
            if not is_whole(workload) or (not _bind_together(context, group) and overdue(session, group)):
                context.give_up(group)
        context.settle(workload)


def _bind_together(context: Context, tasks: list[TaskState]) -> bool:
    session = context.session
    if session.queues.under_notice and any(_crowded(session, task) for task in tasks):
        return False
    with session.scenario() as together:
        for task in tasks:
            node, devices = task.nominated, task.nominated_devices
            session.withdraw(task)
            found = _room_now(context, task, node, devices)
            if found is None:
                return False
            session.bind(task, node, found)
        together.keep()
    for task in tasks:
        context.record(task)
    return True


def _crowded(session: Session, task: TaskState) -> bool:
    """Whether its queue has room for it only once others have gone that were told to."""
    return session.queues.crowded(task.workload.leaf, task.cls.amount_at(task.nominated, session.nodes), counted=True)


def _room_now(context: Context, task: TaskState, node: int, devices: tuple[int, ...]) -> tuple[int, ...] | None:
    """Give the devices on which a task can be bound to a node now: those of its promise, else others; None for none."""
    session, cls = context.session, task.cls
    if task.leaving >= 0 or not context.placer.fits_at(task, node):
        return None
    free, milli = session.nodes.free_devices(node, bindable=True) if devices else [], cls.milli_on(node)
    if all(free[d] >= milli for d in devices):
        return devices
    others = context.placer.devices(cls, node, bindable=True)
    return others if len(others) == len(devices) else None


class CyclePass(AllocationPass):
    """The cycle's pass over all that wait, which writes what it places into the plan.

    What it found out holds until room grows somewhere: while it does, those that waited need not be tried again, and
    the next cycle has only to look at who has arrived since.
    """

    def __init__(self, context: Context) -> None:
        super().__init__(context.session, context.placer)
        self.context = context
        self.epoch = -1
        self.shares = context.fairness.now()
        self.rivals = BeatableNominations(self.session, context.placer, self.shares)
        self._easy = self.session.settings.backfill == "easy"
        self._how = self._skip_beside if self._easy else self._infeasible
        self._changed: set[int] = set()
        self._first = self._new_order() if self.rivals.workloads else None
        self._begin()

    def _begin(self) -> None:
        """Begin with the first of all; the order is taken up again where it may have to begin several times."""
        if self._easy:
            self.backfill = Backfill(self.session, self.context.endings, self.placer)
        again = None if self._first is None else self._first.again(self._how, self._changed)
        self.order = self._new_order() if again is None else again

    def _new_order(self) -> QueueOrder:
        return QueueOrder(self.session, self.shares, self._how, self._seek)

    def still_holds(self) -> bool:
        """Whether nothing has changed since the pass but that at most one workload has arrived, behind the others."""
        session, backfill = self.session, self.backfill
        added = session.added
        if self.epoch != session.epoch or session.terms.used or session.nodes.waiting or len(added) > 1:
            return False
        if backfill is None or not added or not backfill.blocked:
            return True
        behind = added[0].entry is None or (backfill.blocked[0].entry or ()) < added[0].entry
        return behind and backfill.still_holds() and sum(map(bool, session.waiting.entries.values())) == 1

    def serve_arrivals(self) -> None:
        """Serve those that have arrived since the pass, and what they ask for next."""
        if self.session.added:
            self.order = InTurn(self.session.added)
            self.run()

    def _refused(self, workload: WorkloadState, step: Demand) -> None:
        if not self.rivals.workloads or not self._beat(workload, step):
            super()._refused(workload, step)

    def _beat(self, workload: WorkloadState, step: Demand) -> bool:
        """Serve one that does not fit with room promised to others behind it, and begin the pass anew with these."""
        first = self.backfill is None or not self.backfill.blocked or self.backfill.blocked[0] is workload
        lost = self.rivals.beaten_by(workload, step) if first else []
        if not lost:
            return False
        self.context.plan.give_up([(t.workload.key, t.index) for t in lost])
        self._placed(workload, step)
        for task in lost:
            self.session.refresh(task.workload)
            self._changed.add(task.workload.leaf)
        self._begin()
        return True

    def _infeasible(self, workload: WorkloadState, step: Demand) -> bool:
        """As in every pass; but while a nomination may be beaten, all workloads are tried."""
        return not self.rivals.workloads and super()._infeasible(workload, step)

    def _skip_beside(self, workload: WorkloadState, step: Demand) -> bool:
        """Whether it is known not to fit, once it is known who was blocked first: who that is, the order decides."""
        backfill = self.backfill
        if backfill is None or not backfill.blocked:
            return False
        if self._infeasible(workload, step):
            return backfill.reservation is not None  # who is blocked before may still be promised a time, in order
        return backfill.known_to_delay(workload, step)

    def _seek(self, entries: list[Entry], position: int) -> int:
        """Skip as above, in one loop over the only leaf that waits: who is blocked there is known without a try."""
        session, backfill, rivals = self.session, self.backfill, self.rivals.workloads
        epoch, most = session.epoch, session.most_room()
        noting = backfill is not None and backfill.reservation is None
        blocked = [] if backfill is None else backfill.blocked
        limited = bool(entries) and session.queues.limited[entries[0][-1].leaf]
        for place in range(position, len(entries)):
            entry = entries[place]
            workload: WorkloadState = entry[-1]
            if workload.entry is not entry:
                continue
            step: Demand = workload.step  # type: ignore[assignment]
            shape = step.shape
            if shape is None or rivals:
                return place
            if shape.failed != epoch:
                if not shape.exceeds(most):
                    if backfill is None or not backfill.known_to_delay(workload, step):
                        return place
                    continue
                shape.failed = epoch
            if noting and not ((limited or workload.fixed) and self._held_back(workload, step)):
                blocked.append(workload)
        return len(entries)

    def _placed(self, workload: WorkloadState, step: Demand) -> None:
        for task in step.tasks:
            self.context.record(task)
        self.context.settle(workload)
        self._changed.add(workload.leaf)
        self.rivals.note_placed()
