"""Which running workloads have reached their expected runtime, without looking at all of them every time."""

from __future__ import annotations

from heapq import heapify, heappop, heappush

from tenure.engine.state.session import Session
from tenure.engine.state.workloads import WorkloadState


class ExpectedEnds:
    """Expected ends of what runs, the first of them ahead.

    It has to be told of every start; what ended or was evicted in the meantime is found out here. Those that have
    reached their expected runtime stay, until they run no more.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self._ends: list[tuple[int, str]] = []
        self._overdue: dict[str, int] = {}
        for workload in session.roster.expecting.values():
            end = workload.end_at()
            if end is not None and workload.occupied():
                self._ends.append((end, workload.key))
        heapify(self._ends)

    def add(self, workload: WorkloadState) -> None:
        """A workload has started, or is running when it becomes known."""
        end = workload.end_at()
        if end is not None:
            heappush(self._ends, (end, workload.key))

    def now(self) -> list[WorkloadState]:
        """Give all that run and have reached their expected runtime, by name."""
        ends, now = self._ends, self.session.now
        while ends and ends[0][0] <= now:
            end, key = heappop(ends)
            self._overdue[key] = end
        for key in [k for k, end in self._overdue.items() if not self._runs_since(k, end)]:
            del self._overdue[key]
        return [self.session.workloads[key] for key in sorted(self._overdue)]

    def next(self) -> int | None:
        """Give the next time, in µs since the epoch, at which another one reaches its expected runtime."""
        ends = self._ends
        while ends and not self._runs_since(ends[0][1], ends[0][0]):
            heappop(ends)
        return ends[0][0] if ends else None

    def _runs_since(self, key: str, end: int) -> bool:
        workload = self.session.workloads.get(key)
        return workload is not None and workload.end_at() == end and workload.occupied()
