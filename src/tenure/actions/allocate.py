"""Allocate: give free room to those that wait, in order.

Nominations come first: what was promised is bound as soon as the room is there. Then every pending workload is tried
once, in the order of `tenure.engine.serving.order`; one that does not fit is passed over, or, with backfill ``easy``,
the first that does not fit for want of free room gets a reservation that later ones must not delay.
"""

from __future__ import annotations

from tenure.actions.context import Context
from tenure.engine.serving.allocation import AllocationPass, InTurn, promise_crowded
from tenure.engine.serving.backfill import Backfill
from tenure.engine.serving.nominations import BeatableNominations, serve_nominations
from tenure.engine.serving.order import QueueOrder
from tenure.engine.state.notices import count_told
from tenure.engine.state.waiting import Entry
from tenure.engine.state.workloads import Demand, WorkloadState


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
    """Bind nominated tasks whose room is there now, and give up those that have waited too long."""
    if not context.session.nodes.waiting:
        return
    for workload, bound, lost in serve_nominations(context.session, context.placer):
        for task in bound:
            context.record(task)
        if lost:
            context.plan.give_up([(t.workload.key, t.index) for t in lost])
        context.settle(workload)


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
        self._changed: set[int] = set()
        self._first = self._new_order() if self.rivals.workloads else None
        self._begin()

    def _begin(self) -> None:
        """Begin with the first of all; the order is taken up again where it may have to begin several times."""
        if self._easy:
            self.backfill = Backfill(self.session, self.context.endings, self.placer)
        again = None if self._first is None else self._first.again(self._known_to_fail, self._changed)
        self.order = self._new_order() if again is None else again

    def _new_order(self) -> QueueOrder:
        return QueueOrder(self.session, self.shares, self._known_to_fail, self._seek)

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
        promise_crowded(self.session, step.tasks)
        for task in step.tasks:
            self.context.record(task)
        self.context.settle(workload)
        self._changed.add(workload.leaf)
        self.rivals.note_placed()
