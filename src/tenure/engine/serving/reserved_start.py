"""The start that backfilling promises to the first workload that does not fit: moves must not put it off (spec: cycle).

A workload that starts beside a reservation leaves it alone; so does one that is moved, which holds its landing place
from then on.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import cached_property
from operator import itemgetter
from typing import NamedTuple

from tenure.engine.serving.allocation import ScenarioPass
from tenure.engine.serving.backfill import ExpectedReleases
from tenure.engine.serving.imagined_room import ImaginedRoom
from tenure.engine.serving.order import QueueShares
from tenure.engine.serving.placement import Placer
from tenure.engine.serving.scenario_backfill import ScenarioBackfill
from tenure.engine.serving.volume_bound import VolumeBound
from tenure.engine.state.session import Session
from tenure.engine.state.workloads import TaskState, WorkloadState

RESERVED = "reserved-start"
"""Shield of the reservation that backfilling keeps for the first workload that does not fit."""


class ReservedStart(NamedTuple):
    """The workload with the reservation, what it waits for, and the time that it is promised (µs since the epoch)."""

    workload: WorkloadState
    tasks: Sequence[TaskState]
    at: int

    def put_off(
        self,
        session: Session,
        placer: Placer,
        contender: WorkloadState,
        moved: Sequence[WorkloadState],
        endings: ExpectedReleases | None,
    ) -> bool:
        """Whether it could be promised that no more, with a contender in its place and what ``moved`` in theirs.

        ``endings`` are as they were before.
        """
        step = self.workload.step
        if self.workload.entry is None or step is None or step.tasks != self.tasks:  # it is served
            return False
        backfill = ScenarioBackfill(session, placer, contender, [*moved, contender], endings)
        backfill.block(self.workload)
        backfill.promise_first()
        return backfill.reservation is None or backfill.reservation.at > self.at

    def may_allow(self, session: Session, contender: WorkloadState, endings: ExpectedReleases) -> bool:
        """Whether a contender might start and not put it off: gone by then, or, by volume, with room beside it.

        Whatever moves. Where something is nominated, which might be moved as well, nothing is ruled out.
        """
        step, start = contender.step, contender.started_at
        if step is None or contender is self.workload or session.nominated:
            return True
        begins = session.now + endings.later if start is None else start
        if contender.expected and begins + contender.expected <= self.at:
            return True
        over = endings.sorted[: bisect_right(endings.sorted, self.at, key=itemgetter(0))]
        then, gone = ImaginedRoom(session), {ending[-1] for ending in over}
        then.release(over)
        remaining = [
            t for w in session.workloads.values() if w not in gone for t in w.tasks if t.node >= 0 and t.active
        ]
        return VolumeBound(then.nodes).shortage(remaining, [*self.tasks, *step.tasks]) is None


def reserved_start(
    session: Session, placer: Placer, shares: QueueShares, endings: ExpectedReleases | None
) -> ReservedStart | None:
    """Give the reservation as things stand; None where there is none, or it holds without backfilling."""
    return None if session.settings.backfill != "easy" else _next_pass(session, placer, shares, endings)[0]


class NextPass:
    """The next pass of allocate, as far as it is known now; played once it is first asked about."""

    def __init__(self, session: Session, shares: Callable[[], QueueShares]) -> None:
        self.session = session
        self._shares = shares

    def places(self, workload: WorkloadState) -> bool:
        """Whether something of a workload is placed in it."""
        return workload in self._found[1]

    @property
    def reserved(self) -> ReservedStart | None:
        """The reservation that it makes, if there is one."""
        return self._found[0]

    @cached_property
    def _found(self) -> tuple[ReservedStart | None, frozenset[WorkloadState]]:
        return _next_pass(self.session, Placer(self.session), self._shares(), None)


def _next_pass(
    session: Session, placer: Placer, shares: QueueShares, endings: ExpectedReleases | None
) -> tuple[ReservedStart | None, frozenset[WorkloadState]]:
    """Play a pass over all that wait: the reservation that it makes, and the workloads of which it places something."""
    with session.scenario():
        session.new_epoch()
        found = ScenarioPass(session, placer, None, (), endings)
        found.begin(shares, None)
        found.run()
        backfill = found.backfill
        if backfill is not None and backfill.reservation is None:
            backfill.promise_first()
        placed = frozenset(t.workload for t in found.placed)
    if backfill is None or backfill.reservation is None:
        return None, placed
    workload = backfill.blocked[0]
    assert workload.step is not None
    return ReservedStart(workload, workload.step.tasks, backfill.reservation.at), placed
