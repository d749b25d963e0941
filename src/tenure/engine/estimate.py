"""When workloads would start if every running workload ended when it is expected to."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from operator import itemgetter

from tenure.engine.backfill import ExpectedReleases
from tenure.engine.evictions import going
from tenure.engine.placement import Placer
from tenure.engine.session import Session
from tenure.engine.workloads import Shape, WorkloadState


def estimated_starts(session: Session, workloads: Iterable[WorkloadState]) -> dict[str, int]:
    """Give by workload the earliest such time in µs since the epoch; those are missing for whom nobody knows one.

    Running workloads are released in the order of their expected ends; the time is that of the one that makes room
    for the next step, and for it in every queue on the path. Others that wait are not looked at. What is nominated
    starts when what terminates on its nodes has left.
    """
    waiting = list(workloads)
    found = {w.key: at for w in waiting if (at := _promised_start(session, w)) is not None}
    waiting = [w for w in waiting if w.step is not None]
    placer = Placer(session)
    with session.scenario():
        waiting = _fitting(session, placer, waiting, session.now, found)
        for end, group in groupby(all_endings(session).sorted, key=itemgetter(0)):
            if not waiting:
                break
            for *_, running in group:
                for task in running.tasks:
                    if task.node >= 0 and task.active:
                        session.withdraw(task)
            waiting = _fitting(session, placer, waiting, max(end, session.now), found)
    return found


def _fitting(
    session: Session, placer: Placer, waiting: list[WorkloadState], now: int, found: dict[str, int]
) -> list[WorkloadState]:
    """Note ``now`` for those that fit with what is released so far, each by itself; gives the others."""
    left = []
    failed: set[Shape] = set()
    for workload in waiting:
        step = workload.step
        assert step is not None
        fits = False
        if step.shape not in failed and session.queues.admits(workload.leaf, step.amount, fixed=workload.fixed):
            tasks = step.tasks
            with session.scenario():
                fits = placer.place(workload, step)
            step.tasks = tasks
            if not fits and step.shape is not None:
                failed.add(step.shape)
        if fits:
            found[workload.key] = now
        else:
            left.append(workload)
    return left


def _promised_start(session: Session, workload: WorkloadState) -> int | None:
    """When what terminates on the nodes that a workload was promised has left; None if something is stuck there."""
    nodes = {t.nominated for t in workload.tasks if t.nominated >= 0}
    leaving = [t for node in nodes for t in session.on_node[node] if going(t, node)]
    if not nodes or any(t.stuck for t in leaving):
        return None
    return max([session.now, *(session.leaves_at(t) for t in leaving)])


def all_endings(session: Session) -> ExpectedReleases:
    """Collect the expected ends of everything that runs."""
    endings = ExpectedReleases()
    for workload in session.workloads.values():
        if workload.occupied():
            endings.add(workload)
    return endings
