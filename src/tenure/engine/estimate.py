"""When workloads would start if every running workload ended when it is expected to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import heapify, heappop, heappush

from tenure.engine.allocation import AllocationPass, InTurn
from tenure.engine.evictions import going
from tenure.engine.placement import Placer
from tenure.engine.session import Session
from tenure.engine.survival import likely_end, likely_runtime
from tenure.engine.workloads import Demand, TaskState, WorkloadState

Release = tuple[int, str, int, list[TaskState]]
"""Expected end (µs since the epoch), the workload's name, the number of the first task, and those that hold room."""


def estimated_starts(
    session: Session, workloads: Iterable[WorkloadState], most_times: int | None = None, *, likely: bool = False
) -> dict[str, int]:
    """Give by workload when it would start, in µs since the epoch; workloads with an unknown start are missing.

    Parameters
    ----------
    session
        As things stand; it stays so.
    workloads
        Those that wait, in the order in which they are served.
    most_times
        So many times at which something ends are looked at; what starts later counts as unknown. None: all.
    likely
        Whether what does not say how long it runs ends as others of its queue did, where that is known.

    Notes
    -----
    All are played out on one future. What runs is released at its expected end; whenever something is, those that wait
    are served in order, each that fits with its next step, within the max of every queue on its path. It holds its
    room from then on, until its own expected end if it has one, so that the same room is promised once. With the end of
    a workload what of it still waits has no start any more. What is nominated starts when what terminates on its nodes
    has left.
    """
    waiting = list(workloads)
    found = {w.key: at for w in waiting if (at := _promised_start(session, w)) is not None}
    waiting = [w for w in waiting if w.step is not None]
    placer = Placer(session)
    ends = [_release(end, [t for t in w.tasks if t.active]) for w, end in _endings(session, likely=likely)]
    heapify(ends)
    with session.scenario():
        session.new_epoch()
        now, times = session.now, 0
        while waiting:
            served = EstimatePass(session, placer, waiting, now, ends, likely=likely)
            served.run()
            found |= served.starts
            waiting = [w for w in waiting if w.key not in served.starts]
            if not ends or times == most_times:
                break
            times += 1
            now = max(now, ends[0][0])
            over = set()
            while ends and ends[0][0] <= now:
                _, key, _, tasks = heappop(ends)
                over.add(key)
                for task in tasks:
                    if task.node >= 0 or task.nominated >= 0:
                        session.withdraw(task)
            waiting = [w for w in waiting if w.key not in over]
    return found


class EstimatePass(AllocationPass):
    """The pass at one time of the future, over those that still wait; notes when each starts, and when it will end."""

    def __init__(
        self,
        session: Session,
        placer: Placer,
        waiting: list[WorkloadState],
        now: int,
        ends: list[Release],
        *,
        likely: bool,
    ) -> None:
        super().__init__(session, placer)
        self.order = InTurn(waiting)
        self.now = now
        self.ends = ends
        self.likely = likely
        self.starts: dict[str, int] = {}

    def _placed(self, workload: WorkloadState, step: Demand) -> None:
        self.starts[workload.key] = self.now
        runs = likely_runtime(self.session, workload) if self.likely else workload.expected
        if runs:
            heappush(self.ends, _release(self.now + runs, list(step.tasks)))


def _release(end: int, tasks: list[TaskState]) -> Release:
    return end, tasks[0].workload.key, tasks[0].index, tasks


def _promised_start(session: Session, workload: WorkloadState) -> int | None:
    """When what terminates on the nodes that a workload was promised, and what of it moves, has left.

    None if something is stuck there.
    """
    promised = [t for t in workload.tasks if t.nominated >= 0]
    nodes = {t.nominated for t in promised}
    if any(session.nodes.awaited[node] for node in nodes):
        return None
    leaving = [t for node in nodes for t in session.on_node[node] if going(t, node)]
    leaving += [t for t in promised if t.leaving >= 0]
    if not nodes or any(t.stuck for t in leaving):
        return None
    return max([session.now, *(session.leaves_at(t) for t in leaving)])


def _endings(session: Session, *, likely: bool) -> Iterator[tuple[WorkloadState, int]]:
    """Give when everything that runs is expected to end, as far as that is known."""
    for workload in session.workloads.values():
        if workload.occupied():
            end = likely_end(session, workload) if likely else workload.end_at()
            if end is not None:
                yield workload, end
