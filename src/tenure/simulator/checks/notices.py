"""Each victim is told in time that it has to go, and goes then, and not before its time unless it saved its work."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tenure.model.queue import Queue
from tenure.model.settings import MINUTE, Settings
from tenure.model.workload import Workload
from tenure.simulator.checks.columns import CheckedLog
from tenure.simulator.checks.findings import ViolationCollector
from tenure.simulator.checks.paths import leaf_of, paths_of
from tenure.simulator.log import BIND, END, EVICT, NOTICE, WITHDRAW, EvictionDetails, NoticeDetails

TOO_EARLY = "eviction before its notice ended"
TOO_LATE = "eviction long after its notice ended"
FORGOTTEN = "notice that nothing came of"
UNTOLD = "eviction without the notice that was asked for"
PUT_OFF = "notice of a later time than was told already"
TOLD_IDLE = "notice to what was not running"
WITHDRAWN_IDLE = "notice withdrawn that was not given"

LONGEST = 10 * MINUTE
"""How long a notice is at most, in µs, where no queue says."""


def check_notices(
    history: CheckedLog,
    queues: Sequence[Queue],
    findings: ViolationCollector,
    *,
    complete: bool,
    settings: Settings | None = None,
) -> None:
    """Check what became of each notice, and where ``settings`` are known that each victim that gets one was told.

    In a log that is not ``complete`` (the simulation was interrupted), some may still have to end.
    """
    columns = history.columns
    told_first = _told_first(settings, queues, history.workloads)
    if not (told_first or np.isin(columns.kind, (NOTICE, WITHDRAW)).any()):
        return
    books = _NoticeBooks(history, told_first)
    for position in np.flatnonzero(np.isin(columns.kind, (BIND, END, EVICT, NOTICE, WITHDRAW))).tolist():
        books.enter(position)
    if complete:
        books.close()
    for name, where in books.found.items():
        findings.add(name, where, len(where), lambda position: _describe(history, position))


class _NoticeBooks:
    """The books of what runs and what was told that it has to go, and what was wrong, by kind."""

    def __init__(self, history: CheckedLog, told_first: set[int]) -> None:
        self.history, self.told_first = history, told_first
        self.running: set[int] = set()
        self.pending: dict[int, tuple[int, NoticeDetails]] = {}
        self.found: dict[str, list[int]] = {}

    def enter(self, position: int) -> None:
        """Look at the next event of a task."""
        columns = self.history.columns
        task = int(self.history.tasks.first[columns.job[position]] + columns.task[position])
        kind, extra = int(columns.kind[position]), columns.extra[position]
        if kind == NOTICE and isinstance(extra, NoticeDetails):
            if task not in self.running:
                self._note(TOLD_IDLE, position)
            elif task in self.pending and extra.deadline > self.pending[task][1].deadline:
                self._note(PUT_OFF, position)
            self.pending[task] = position, extra
            return
        told = self.pending.pop(task, None)
        if kind == EVICT and isinstance(extra, EvictionDetails):
            self._evicted(position, told, extra)
        elif kind == WITHDRAW:
            if told is None:
                self._note(WITHDRAWN_IDLE, position)
            return
        (self.running.add if kind == BIND else self.running.discard)(task)

    def _evicted(self, position: int, told: tuple[int, NoticeDetails] | None, extra: EvictionDetails) -> None:
        columns = self.history.columns
        at = int(columns.at[position])
        if told is None:
            if int(columns.job[position]) in self.told_first:
                self._note(UNTOLD, position)
        elif at < told[1].deadline and extra.saved_at <= int(columns.at[told[0]]):
            self._note(TOO_EARLY, position)
        elif at > told[1].deadline:
            self._note(TOO_LATE, position)

    def close(self) -> None:
        """Nothing more happens."""
        end = int(self.history.columns.at.max(initial=0))
        for position, notice in self.pending.values():
            if notice.deadline < end:
                self._note(FORGOTTEN, position)

    def _note(self, kind: str, position: int) -> None:
        self.found.setdefault(kind, []).append(position)


def _told_first(settings: Settings | None, queues: Sequence[Queue], workloads: Sequence[Workload]) -> set[int]:
    """Give the jobs that are told before they are evicted: their own notice, else their queue's, else the pool's."""
    if settings is None:
        return set()
    path_of, found = paths_of(queues), set[int]()
    for job, workload in enumerate(workloads):
        path = path_of.get(leaf_of(workload), ())
        asked = (workload.eviction_notice, *(q.eviction_notice for q in path), settings.eviction_notice)
        most = min((q.max_eviction_notice for q in path if q.max_eviction_notice is not None), default=LONGEST)
        if most and next(own for own in asked if own is not None):
            found.add(job)
    return found


def _describe(history: CheckedLog, position: int) -> str:
    columns = history.columns
    task = int(history.tasks.first[columns.job[position]] + columns.task[position])
    return f"{history.name(task)}, at {int(columns.at[position])} µs"
