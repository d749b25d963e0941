"""The longest wait among contenders that stand alike.

Of those, the first in the order is served, whichever has waited for longest. So after their longest wait evictions need
not pay: else a contender that was evicted a while ago, and stands first again, would hold up what is guaranteed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from heapq import heapify, heappop

from tenure.engine.state.waiting import Entry
from tenure.engine.state.workloads import WorkloadState
from tenure.shields.patience import waits_since


class LongestWait:
    """Contenders by what they have in common; what has been served since counts no more."""

    def __init__(self, waiting: Iterable[WorkloadState], alike: Callable[[WorkloadState], object]) -> None:
        self._alike = alike
        self._lines: dict[object, list[tuple[int, str, WorkloadState, Entry]]] = {}
        for workload in waiting:
            if workload.entry is not None:
                entry = waits_since(workload), workload.key, workload, workload.entry
                self._lines.setdefault(alike(workload), []).append(entry)
        for line in self._lines.values():
            heapify(line)

    def since(self, contender: WorkloadState) -> int:
        """When the longest wait began of those that stand as a contender does, in µs since the epoch."""
        line = self._lines.get(self._alike(contender), [])
        while line and line[0][2].entry is not line[0][3]:
            heappop(line)
        own = waits_since(contender)
        return min(own, line[0][0]) if line else own
