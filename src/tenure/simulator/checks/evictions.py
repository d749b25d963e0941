"""Every eviction has a cause that there is, and a beneficiary that then ran."""

from __future__ import annotations

import numpy as np

from tenure.simulator.checks.columns import CheckedLog, task_events
from tenure.simulator.checks.findings import ViolationCollector
from tenure.simulator.log import BIND, END, EVICT, SUBMIT, EvictionDetails

NO_CAUSE = "eviction without an allowed cause"
NO_BENEFICIARY = "eviction without a beneficiary"
NEVER_RAN = "eviction whose beneficiary never ran"
NEVER_LANDED = "moved task that never landed"

FOR_SOMEBODY = frozenset({"reclaim", "preempt", "requeue", "consolidate"})
"""Causes that need a beneficiary."""

CAUSES = FOR_SOMEBODY | {"stale-gang", "quota", "reschedule"}

MOVES = frozenset({"consolidate", "reschedule"})
"""Causes of evictions whose task has a landing place: until it is bound again it counts as active."""


def check_evictions(history: CheckedLog, findings: ViolationCollector, *, complete: bool) -> None:
    """Check cause and beneficiary of every eviction.

    In a log that is not ``complete`` (the simulation was interrupted), beneficiaries may still be about to run.
    """
    columns = history.columns
    last_bind = np.full(len(history.workloads), -1, dtype=np.int64)
    binds = np.flatnonzero(columns.kind == BIND)
    last_bind[columns.job[binds]] = binds  # positions ascend, so the last one stays
    excuses = _Excuses(history)
    found: dict[str, list[int]] = {NO_CAUSE: [], NO_BENEFICIARY: [], NEVER_RAN: [], NEVER_LANDED: []}
    if complete:
        found[NEVER_LANDED] = _never_landed(history)
    for position in np.flatnonzero(columns.kind == EVICT).tolist():
        extra = columns.extra[position]
        beneficiary = int(columns.x[position])
        somebody = 0 <= beneficiary < len(last_bind) and beneficiary != columns.job[position]
        if not isinstance(extra, EvictionDetails) or extra.cause not in CAUSES:
            found[NO_CAUSE].append(position)
        elif not somebody and (extra.cause in FOR_SOMEBODY or beneficiary != -1):
            found[NO_BENEFICIARY].append(position)
        elif somebody and complete and last_bind[beneficiary] < position and not excuses.any_for(position):
            found[NEVER_RAN].append(position)
    for kind, where in found.items():
        findings.add(kind, where, len(where), lambda position: describe(history, position))


def _never_landed(history: CheckedLog) -> list[int]:
    """Give the moves after which a task was never bound; its workload may end, or one that comes take its place."""
    columns, events = history.columns, task_events(history.columns, history.tasks)
    last = np.append(events.task[1:] != events.task[:-1], True)[: len(events.task)]
    over = np.full(len(history.workloads), -1, dtype=np.int64)
    over[columns.job[columns.kind == END]] = np.flatnonzero(columns.kind == END)
    came = int(np.flatnonzero(columns.kind == SUBMIT).max(initial=-1))
    return [
        position
        for position in events.order[last & (events.kind == EVICT)].tolist()
        if isinstance(extra := columns.extra[position], EvictionDetails)
        and extra.cause in MOVES
        and position > max(came, int(over[columns.job[position]]))
    ]


class _Excuses:
    """The check whether unforeseeable events kept the beneficiary of an eviction from its place.

    Either it ran already, to grow, and came to its own end before there was room, which is when the last of those has
    left that were evicted for it until then; or a job that arrived only after the eviction had the room first.
    """

    def __init__(self, history: CheckedLog) -> None:
        self.history = history
        columns = history.columns
        self.ends: dict[int, int] = {}
        for position in np.flatnonzero(columns.kind == END).tolist():
            self.ends[int(columns.job[position])] = position
        self.evictions: dict[int, list[int]] = {}
        for position in np.flatnonzero((columns.kind == EVICT) & (columns.x >= 0)).tolist():
            self.evictions.setdefault(int(columns.x[position]), []).append(position)

    def any_for(self, position: int) -> bool:
        return self._ended_before(position) or self._beaten(position)

    def _ended_before(self, position: int) -> bool:
        columns, holdings = self.history.columns, self.history.holdings
        job = int(columns.x[position])
        end = self.ends.get(job, -1)
        if end < position:
            return False
        own = self.history.tasks.job[holdings.task] == job
        ran = own & (holdings.bound < position) & ((holdings.freed < 0) | (holdings.freed > position))
        room = max(self._leaves(p) for p in self.evictions[job] if p < end)
        return bool((ran & ~holdings.evicted).any() and int(columns.at[end]) <= room)

    def _beaten(self, position: int) -> bool:
        columns, holdings = self.history.columns, self.history.holdings
        place = np.flatnonzero(holdings.freed == position)
        if not len(place):
            return False
        later = np.flatnonzero((holdings.node == holdings.node[place[0]]) & (holdings.bound > position))
        if not len(later):
            return False
        first = int(self.history.tasks.job[holdings.task[later[0]]])
        arrived = np.flatnonzero((columns.kind == SUBMIT) & (columns.job == first))
        return bool(len(arrived) and arrived[0] > position)

    def _leaves(self, position: int) -> int:
        extra = self.history.columns.extra[position]
        leaves = extra.leaves_at if isinstance(extra, EvictionDetails) else -1
        return max(leaves, int(self.history.columns.at[position]))


def describe(history: CheckedLog, position: int) -> str:
    """Put an eviction in words."""
    columns = history.columns
    task = int(history.tasks.first[columns.job[position]] + columns.task[position])
    extra = columns.extra[position]
    cause = extra.cause if isinstance(extra, EvictionDetails) else extra
    return f"{history.name(task)} by {cause} for job {int(columns.x[position])}, at {int(columns.at[position])} µs"
