"""When a workload would start if every running workload ended when it is expected to."""

from __future__ import annotations

from operator import add, sub

from tenure.engine.backfill import Endings, Imagined
from tenure.engine.queues import Amount
from tenure.engine.session import Session
from tenure.engine.workloads import NextStep, WorkloadState


def estimate_start(session: Session, endings: Endings, workload: WorkloadState) -> int | None:
    """Give the earliest such time in µs since the epoch; None if that is never, or if nobody knows.

    Running workloads are released one by one in the order of their expected ends; the time is that of the one that
    makes room for the step and brings every queue on the path below its maximum. Others that wait are not looked at.
    """
    step = workload.step
    if step is None:
        return None
    imagined = Imagined(session)
    freed: dict[int, Amount] = {}
    if _fits(session, imagined, freed, workload, step):
        return session.now
    for end, amount, _, running in endings.sorted:
        imagined.release(running)
        for queue in session.queues.path[running.leaf]:
            freed[queue] = tuple(map(add, freed[queue], amount)) if queue in freed else amount
        if _fits(session, imagined, freed, workload, step):
            return max(end, session.now)
    return None


def _fits(
    session: Session, imagined: Imagined, freed: dict[int, Amount], workload: WorkloadState, step: NextStep
) -> bool:
    queues = session.queues
    for queue in queues.path[workload.leaf]:
        used = queues.allocated[queue]
        if queue in freed:
            used = tuple(map(sub, used, freed[queue]))
        if any(a and u + a > m for u, a, m in zip(used, step.amount, queues.maximum[queue], strict=True)):
            return False
    return imagined.place(step)


def all_endings(session: Session) -> Endings:
    """Collect the expected ends of everything that runs."""
    endings = Endings()
    for workload in session.workloads.values():
        if workload.occupied():
            endings.add(workload)
    return endings
