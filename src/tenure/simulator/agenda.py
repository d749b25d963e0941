"""What a simulation still has to do, and when: runs end, evicted tasks leave, checkpoints are made, rules end."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush

from tenure.engine.state.workloads import TaskState

NEVER = 1 << 62

MOST_IDLE = 1000
"""Times in a row that some rule asks to be looked at again and nothing comes of it, while nothing else is to happen.

A simulation ends then: what runs on for ever, and what waits for it, would keep it going without end.
"""


class Agenda:
    """What is to come, arrivals aside; times in µs since the start, jobs by number.

    ``runs`` gives for each job with an end to come the number of the run that will have it. ``idle`` counts the cycles
    in a row of which nothing came.
    """

    def __init__(self) -> None:
        self.idle = 0
        self._ends: list[tuple[int, int, int]] = []  # when, number of the run, job
        self.runs: dict[int, int] = {}
        self._departures: list[tuple[int, int, int, int, TaskState]] = []  # when, job, task, a number, and its state
        self._wakes: list[int] = []
        self._saves: list[tuple[int, int]] = []  # when, job
        self._serial = 0

    def next(self, arrival: int) -> int:
        """When something happens next: an arrival, an end, a task leaves, or a rule ends that refused something."""
        leaves = self._departures[0][0] if self._departures else NEVER
        soonest = min(arrival, self._next_end(), leaves, self._saves[0][0] if self._saves else NEVER)
        if soonest < NEVER:
            self.idle = 0
        return min(soonest, self._wakes[0] if self._wakes and self.idle < MOST_IDLE else NEVER)

    def _next_end(self) -> int:
        while self._ends and self.runs.get(self._ends[0][2]) != self._ends[0][1]:
            heappop(self._ends)
        return self._ends[0][0] if self._ends else NEVER

    def ending(self, now: int) -> Iterator[int]:
        """Take the jobs that end now."""
        while self._next_end() == now:
            yield heappop(self._ends)[2]

    def saving(self, now: int) -> Iterator[tuple[int, int]]:
        """Take the checkpoints that are due, each with its time and its job."""
        while self._saves and self._saves[0][0] <= now:
            yield heappop(self._saves)

    def leaving(self, now: int) -> Iterator[TaskState]:
        """Take the tasks that leave their nodes by now."""
        while self._departures and self._departures[0][0] <= now:
            yield heappop(self._departures)[-1]

    def schedule_end(self, job: int, at: int) -> None:
        """A run of a job begins, which will end at a time if nothing comes between."""
        self._serial += 1
        self.runs[job] = self._serial
        heappush(self._ends, (at, self._serial, job))

    def cancel_end(self, job: int) -> None:
        """An end of the job is not to come any more."""
        self.runs.pop(job, None)

    def schedule_departure(self, at: int, job: int, task: TaskState) -> None:
        """An evicted task leaves its node at a time."""
        self._serial += 1
        heappush(self._departures, (at, job, task.index, self._serial, task))

    def schedule_save(self, at: int, job: int) -> None:
        """A job makes a checkpoint at a time, of which a cycle is to know; once, however often it is asked."""
        if (at, job) not in self._saves:
            heappush(self._saves, (at, job))
            heappush(self._wakes, at)

    def awake(self, now: int) -> None:
        """A cycle takes place now, as was due."""
        while self._wakes and self._wakes[0] <= now:
            heappop(self._wakes)

    def wake(self, at: int) -> None:
        """A cycle is due at a time, whatever else happens; once, however often it is asked."""
        if at not in self._wakes:
            heappush(self._wakes, at)
