"""Pending workloads by class, kept from cycle to cycle: those whose place changed are looked at again.

So a cycle in which little happened does not have to look at a backlog of thousands.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Collection, Hashable

from tenure.engine.session import Session
from tenure.engine.waiting import Entry
from tenure.engine.workloads import Demand, WorkloadState
from tenure.shields.delay import delay
from tenure.victims.bounds.room_demand import RoomDemand

Alike = tuple[int, int, bool, Hashable]
"""What contenders of one class share: leaf, priority, whether they are not preemptible, and the shape of their step."""


class PendingClass:
    """The pending workloads of one class, in order; ``possible``: an empty cluster would have room for their demand."""

    __slots__ = ("alike", "entries", "possible", "step")

    def __init__(self, alike: Alike, step: Demand, *, possible: bool) -> None:
        self.alike = alike
        self.step = step
        self.possible = possible
        self.entries: list[Entry] = []


class PendingIndex:
    """The pending classes of one session; one that begins anew needs a new index."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._classes: dict[Alike, PendingClass] = {}
        self._place: dict[WorkloadState, tuple[PendingClass, Entry]] = {}
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
            found[cls.alike[0]] = found.get(cls.alike[0], 0) + len(cls.entries)
        return found

    def classes(self) -> Collection[PendingClass]:
        """Give all workloads that wait at present."""
        self.catch_up()
        return self._classes.values()

    def barred(self, evicted: set[str]) -> tuple[set[WorkloadState], int | None]:
        """Give those for which nothing may be evicted yet, and when the first delay ends.

        They are the ``evicted`` of this cycle, who may have to wait from now on, and those who are held by a delay.
        """
        self.catch_up()
        found: set[WorkloadState] = set()
        first = None
        for key in evicted:
            state = self.session.workloads.get(key)
            if state is not None and state in self._place:
                found.add(state)
        self._delayed |= found
        for state in list(self._delayed):
            if state.key in evicted:
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
        alike = state.leaf, state.priority, state.fixed, shape
        cls = self._classes.get(alike)
        if cls is None:
            cls = self._classes[alike] = PendingClass(alike, step, possible=self._ever(shape, step))
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
