"""Classes of contenders that stand alike: same leaf, same priority, and a next step of the same shape."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass

from tenure.engine.order import QueueOrder
from tenure.engine.queues import Amount
from tenure.engine.session import Session
from tenure.engine.waiting import Entry
from tenure.engine.workloads import Demand, WorkloadState
from tenure.fairness.current import CurrentShares
from tenure.requeue.pending_index import PendingIndex


@dataclass(slots=True, eq=False)
class ContenderClass:
    """Contenders of which one gets a candidate's place if and only if another would in its stead.

    Those of ``entries`` from ``place`` on still wait, in order, but for those ``barred``, for which nothing is evicted
    yet. ``shape`` is what their next steps have in common, ``step`` one of them.
    """

    leaf: int
    priority: int
    shape: Hashable
    step: Demand
    entries: Sequence[Entry]
    barred: Collection[WorkloadState]
    place: int = 0

    @property
    def amount(self) -> Amount:
        """What their next step asks for, by row of the queues."""
        return self.step.amount

    def first(self) -> WorkloadState | None:
        """Give the first that still waits."""
        entries = self.entries
        while self.place < len(entries):
            workload: WorkloadState = entries[self.place][-1]
            if workload not in self.barred:
                return workload
            self.place += 1
        return None

    def pass_first(self) -> None:
        """The first waits no longer."""
        self.place += 1

    def has(self, key: str) -> bool:
        """Whether a workload of that name still waits here."""
        return any(e[-1].key == key and e[-1] not in self.barred for e in self.entries[self.place :])


def gather(session: Session, pending_index: PendingIndex, barred: Collection[WorkloadState]) -> list[ContenderClass]:
    """Put pending workloads that an eviction can help into classes; nothing is evicted for those ``barred``."""
    found = []
    for pending in pending_index.classes():
        leaf, priority, fixed, shape = pending.alike
        if not pending.possible or (fixed and session.queues.beyond_guaranteed(leaf, pending.step.amount) is not None):
            continue
        cls = ContenderClass(leaf, priority, shape, pending.step, pending.entries, barred)
        if cls.first() is not None:
            found.append(cls)
    return found


def in_order(session: Session, shares: CurrentShares, classes: Sequence[ContenderClass]) -> list[ContenderClass]:
    """Put classes into the order in which their first members would be served."""
    if len(classes) < 2:  # noqa: PLR2004  nothing to compare
        return list(classes)
    first = {cls.first(): cls for cls in classes}
    order = QueueOrder(session, shares, lambda workload, _: workload not in first)
    found: list[ContenderClass] = []
    while len(found) < len(first) and (workload := order.next()) is not None:
        if workload in first:
            found.append(first[workload])
        order.pass_over(workload)
    return found
