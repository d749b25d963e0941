"""How much of each job's work is done: what evictions destroy, and what checkpoints save.

A run saves at every whole checkpoint interval since it started, and, where it makes checkpoints at all, one second
after it was told that it will be evicted; what came after the last of them is lost with an
eviction, all of the run where there is none. A job that was evicted runs, when it starts again, for what was not
saved, after the overhead of its restart. Surplus tasks come and go without an influence on the run time.
"""

from __future__ import annotations

from tenure.model.workload import Workload


class JobProgress:
    """The books of all jobs, by number; times and durations in µs."""

    def __init__(self) -> None:
        self._since: dict[int, int] = {}
        self._overhead: dict[int, int] = {}
        self._saved: dict[int, int] = {}
        self._told: dict[int, int] = {}

    def start(self, job: int, now: int, runtime: int) -> int:
        """A run starts; give when it ends if nothing comes between."""
        self._since[job] = now
        return now + runtime - self._saved.get(job, 0) + self._overhead.get(job, 0)

    def save(self, job: int, now: int) -> None:
        """The run makes a checkpoint out of turn, because it was told that it will be evicted."""
        self._told[job] = now

    def stop(self, job: int, now: int, model: Workload) -> None:
        """The run is evicted as a whole."""
        checkpoint = model.checkpoint
        interval = checkpoint.interval if checkpoint is not None else None
        since = self._since.pop(job, now)
        elapsed = now - since
        kept = elapsed // interval * interval if interval else 0
        kept = max(kept, self._told.pop(job, since) - since)
        self._saved[job] = self._saved.get(job, 0) + max(0, kept - self._overhead.get(job, 0))
        self._overhead[job] = checkpoint.restart_overhead if checkpoint is not None else 0

    def forget(self, job: int) -> None:
        """The job has ended."""
        for book in (self._since, self._overhead, self._saved, self._told):
            book.pop(job, None)
