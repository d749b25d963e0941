"""For how long finished workloads ran, by queue: the last of them, and how many were longer than a given run."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from tenure.model.cluster import FinishedRuns

MOST_RUNS: Final = 256
"""So many finished runs of a queue are kept, the last of them."""


class Survival(NamedTuple):
    """How long half of the ``longer`` of ``known`` runs took (µs)."""

    median: int
    longer: int
    known: int


@dataclass(slots=True)
class _Runs:
    """Run times in the order in which they ended, and by length."""

    last: deque[int] = field(default_factory=deque)
    by_length: list[int] = field(default_factory=list)

    def add(self, ran: int) -> None:
        if len(self.last) == MOST_RUNS:
            del self.by_length[bisect_left(self.by_length, self.last.popleft())]
        self.last.append(ran)
        insort(self.by_length, ran)


class RunTimes:
    """The run times of finished workloads, by queue; ``given`` are those that it was made of."""

    def __init__(self, given: tuple[FinishedRuns, ...] = ()) -> None:
        self.given = given
        self._of: dict[str, _Runs] = {}
        for entry in given:
            self.add(entry.queue, entry.ran[-MOST_RUNS:])

    def add(self, queue: str, ran: Iterable[int]) -> None:
        """Workloads of a queue have finished."""
        runs = self._of.setdefault(queue, _Runs())
        for time in ran:
            runs.add(time)

    def beyond(self, queue: str, ran: int, least: int) -> Survival | None:
        """Say how long runs of a queue took that were longer than ``ran`` (µs); None if fewer than ``least`` were."""
        runs = self._of.get(queue)
        if runs is None:
            return None
        first, count = bisect_right(runs.by_length, ran), len(runs.by_length)
        longer = count - first
        if longer < max(1, least):
            return None
        return Survival(runs.by_length[first + (longer - 1) // 2], longer, count)

    def plain(self) -> tuple[FinishedRuns, ...]:
        """Give all that is known, by queue."""
        return tuple(FinishedRuns(queue=queue, ran=tuple(runs.last)) for queue, runs in sorted(self._of.items()))
