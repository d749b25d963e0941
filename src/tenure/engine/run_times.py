"""For how long finished workloads ran, by queue and by user: the last of them, and how many were longer than a run."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from tenure.model.cluster import FinishedRuns

MOST_RUNS: Final = 256
"""So many finished runs of a queue are kept, and of each user in it, the last of them."""

MOST_USERS: Final = 4096
"""Runs are kept of so many users at most, a user counted once in each queue: of those whose workloads finished last."""


class Survival(NamedTuple):
    """How long half of the ``longer`` of ``known`` runs took (µs), those of a ``user``; None: of a whole queue."""

    median: int
    longer: int
    known: int
    user: str | None = None


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
    """The run times of finished workloads, by queue and user; ``given`` are those that it was made of."""

    def __init__(self, given: tuple[FinishedRuns, ...] = ()) -> None:
        self.given = given
        self._of: dict[str, _Runs] = {}
        self._of_users: dict[tuple[str, str], _Runs] = {}
        self.add(given)

    def add(self, finished: Iterable[FinishedRuns]) -> None:
        """Workloads of a queue, or of a user in it, have finished."""
        for entry in finished:
            runs = self._of.setdefault(entry.queue, _Runs()) if entry.user is None else self._of_user(entry)
            for time in entry.ran[-MOST_RUNS:]:
                runs.add(time)

    def finish(self, queue: str, user: str | None, ran: int) -> None:
        """A workload has finished, which counts for its queue, and for its user where that is known."""
        self.add(FinishedRuns(queue=queue, user=whose, ran=(ran,)) for whose in dict.fromkeys((None, user)))

    def _of_user(self, entry: FinishedRuns) -> _Runs:
        """Give the runs of a user, which are now the latest."""
        key = entry.queue, entry.user or ""
        runs = self._of_users.pop(key) if key in self._of_users else _Runs()
        self._of_users[key] = runs
        if len(self._of_users) > MOST_USERS:
            del self._of_users[next(iter(self._of_users))]
        return runs

    def beyond(self, queue: str, ran: int, least: int, user: str | None = None) -> Survival | None:
        """Say how long runs took that were longer than ``ran`` (µs): the user's own in a queue, else all of the queue.

        None if fewer than ``least`` were.
        """
        own = None if user is None else self._of_users.get((queue, user))
        found = _beyond(own, ran, least)
        return _beyond(self._of.get(queue), ran, least) if found is None else found._replace(user=user)

    def plain(self) -> tuple[FinishedRuns, ...]:
        """Give all that is known: by queue, and by user in the order of the last run."""
        queues = [FinishedRuns(queue=queue, ran=tuple(runs.last)) for queue, runs in sorted(self._of.items())]
        users = [
            FinishedRuns(queue=queue, user=user, ran=tuple(runs.last)) for (queue, user), runs in self._of_users.items()
        ]
        return (*queues, *users)


def _beyond(runs: _Runs | None, ran: int, least: int) -> Survival | None:
    if runs is None:
        return None
    first, count = bisect_right(runs.by_length, ran), len(runs.by_length)
    longer = count - first
    return None if longer < max(1, least) else Survival(runs.by_length[first + (longer - 1) // 2], longer, count)
