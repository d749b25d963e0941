"""The start that backfilling promises to the first workload that does not fit: moves must not put it off (spec: cycle).

A workload that starts beside a reservation leaves it alone; so does one that is moved, which holds its landing place
from then on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tenure.engine.allocation import ScenarioPass
from tenure.engine.backfill import ExpectedReleases
from tenure.engine.order import QueueShares
from tenure.engine.placement import Placer
from tenure.engine.scenario_backfill import ScenarioBackfill
from tenure.engine.session import Session
from tenure.engine.workloads import TaskState, WorkloadState

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


def reserved_start(
    session: Session, placer: Placer, shares: QueueShares, endings: ExpectedReleases | None
) -> ReservedStart | None:
    """Give the reservation as things stand; None where there is none, or it holds without backfilling."""
    if session.settings.backfill != "easy":
        return None
    with session.scenario():
        session.new_epoch()
        found = ScenarioPass(session, placer, None, (), endings)
        found.begin(shares, None)
        found.run()
        backfill = found.backfill
        assert backfill is not None
        if backfill.reservation is None:
            backfill.promise_first()
    if backfill.reservation is None:
        return None
    workload = backfill.blocked[0]
    assert workload.step is not None
    return ReservedStart(workload, workload.step.tasks, backfill.reservation.at)
