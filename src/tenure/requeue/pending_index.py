"""Pending workloads by class, kept from cycle to cycle: those whose place changed are looked at again.

So a cycle in which little happened does not have to look at a backlog of thousands.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tenure.engine.serving.order import QueueOrder
from tenure.engine.state.session import Session
from tenure.engine.state.waiting import Entry
from tenure.engine.state.workloads import Demand, WorkloadState
from tenure.fairness.current import CurrentShares
from tenure.shields.delay import delay
from tenure.victims.bounds.room_demand import RoomDemand


class Alike(NamedTuple):
    """What contenders of one class share; ``fixed``: they are not preemptible, ``shape``: that of their next step."""

    leaf: int
    priority: int
    fixed: bool
    shape: Hashable


@dataclass(slots=True, eq=False)
class ContenderClass:
    """Contenders of which one gets a candidate's place if and only if another would in its stead.

    ``step`` is what one of them asks for; ``possible``: an empty cluster would have room for it. Those of ``entries``
    from ``place`` on still wait, in order, but for those ``barred``, for which nothing is evicted yet.
    """

    alike: Alike
    step: Demand
    possible: bool
    entries: list[Entry] = field(default_factory=list)
    barred: Collection[WorkloadState] = ()
    place: int = 0

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


class PendingIndex:
    """The pending classes of one session; one that begins anew needs a new index."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._classes: dict[Alike, ContenderClass] = {}
        self._place: dict[WorkloadState, tuple[ContenderClass, Entry]] = {}
        self._delayed: set[WorkloadState] = set()
        self._possible: dict[Hashable, bool] = {}
        self._touched: set[WorkloadState] = set(session.waiting.all())
        session.waiting.watchers.append(self._touched)

    def catch_up(self) -> None:
        """Look again at whose place has changed."""
        touched = self._touched
        for state in sorted(touched, key=lambda w: w.key) if touched else ():
            self._take_out(state)
            if state.entry is not None:
                self._put_in(state)
        touched.clear()

    def counts(self) -> dict[int, int]:
        """Give the number of workloads that wait, by leaf that has any."""
        found: dict[int, int] = {}
        for cls in self.classes():
            found[cls.alike.leaf] = found.get(cls.alike.leaf, 0) + len(cls.entries)
        return found

    def classes(self) -> Collection[ContenderClass]:
        """Give all workloads that wait at present."""
        self.catch_up()
        return self._classes.values()

    def barred(self, out: set[str]) -> tuple[set[WorkloadState], int | None]:
        """Give those for which nothing may be evicted yet, and when the first delay ends.

        They are those that are ``out`` in this cycle, and may have to wait from now on, and those that a delay holds.
        """
        self.catch_up()
        found = {s for s in map(self.session.workloads.get, out) if s is not None and s in self._place}
        first = None
        self._delayed |= found
        for state in list(self._delayed):
            if state.key in out:
                continue
            refusal = delay(self.session, state)
            if refusal is None:
                self._delayed.discard(state)
                continue
            found.add(state)
            if refusal.until is not None:
                first = refusal.until if first is None else min(first, refusal.until)
        return found, first

    def _put_in(self, state: WorkloadState) -> None:
        step, entry = state.step, state.entry
        assert step is not None
        assert entry is not None
        shape = shape_of(state, step)
        alike = Alike(state.leaf, state.priority, state.fixed, shape)
        cls = self._classes.get(alike)
        if cls is None:
            cls = self._classes[alike] = ContenderClass(alike, step, self._ever(shape, step))
        insort(cls.entries, entry)
        self._place[state] = cls, entry
        if delay(self.session, state) is not None:
            self._delayed.add(state)

    def _take_out(self, state: WorkloadState) -> None:
        known = self._place.pop(state, None)
        if known is None:
            return
        cls, entry = known
        del cls.entries[bisect_left(cls.entries, entry)]
        if not cls.entries:
            del self._classes[cls.alike]
        self._delayed.discard(state)

    def _ever(self, shape: Hashable, step: Demand) -> bool:
        """Whether an empty cluster would have room; where steps are of one shape that is asked once."""
        if step.shape is None:
            return RoomDemand(self.session, step).ever()
        found = self._possible.get(shape)
        if found is None:
            found = self._possible[shape] = RoomDemand(self.session, step).ever()
        return found


def shape_of(state: WorkloadState, step: Demand) -> Hashable:
    """Give what steps have in common that fit or fail alike; a step without a shape is like no other."""
    return (state.key if step.shape is None else step.shape), step.kind


def gather(session: Session, pending_index: PendingIndex, barred: Collection[WorkloadState]) -> list[ContenderClass]:
    """Put pending workloads that an eviction can help into classes; nothing is evicted for those ``barred``."""
    found = []
    for cls in pending_index.classes():
        leaf, _, fixed, _ = cls.alike
        if not cls.possible or (fixed and session.queues.beyond_guaranteed(leaf, cls.step.amount) is not None):
            continue
        cls.barred, cls.place = barred, 0
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
