"""No plan contradicts itself or the one before: what is bound runs for a while, and what went has to be gone."""

from __future__ import annotations

from collections import Counter

import numpy as np

from tenure.simulator.checks.columns import OF_TASKS, CheckedLog, Ints
from tenure.simulator.checks.evictions import FOR_SOMEBODY, MOVES
from tenure.simulator.checks.findings import ViolationCollector
from tenure.simulator.checks.gangs import core_of
from tenure.simulator.log import BIND, DROP, END, EVICT, SUBMIT, EvictionDetails

BOTH = "task bound and evicted in one plan"
RESTARTED = "task evicted and bound where it stood in one plan"
SEATED_AGAIN = "victim that had its place back though nothing changed"
NO_TIME = "beneficiary evicted at the instant at which it was bound"
OF_NO_PLAN = "task bound or evicted by no plan"

CYCLES = 20
"""Plans within which a victim must not have its place back on a cluster that does not change."""


def check_plans(history: CheckedLog, findings: ViolationCollector) -> None:
    """Check that plans bind and evict, each task's bindings and evictions, and how long beneficiaries ran."""
    columns = history.columns
    _check_planned(history, findings)
    if not (columns.kind == EVICT).any():
        return
    of_tasks = np.flatnonzero(np.isin(columns.kind, OF_TASKS))
    number = history.tasks.first[columns.job[of_tasks]] + columns.task[of_tasks]
    order = of_tasks[np.argsort(number, kind="stable")]
    task = history.tasks.first[columns.job[order]] + columns.task[order]
    kind, plan = columns.kind[order], columns.plan[order]
    same = task[1:] == task[:-1]
    together = same & (plan[1:] == plan[:-1]) & (plan[1:] > 0)
    both = np.flatnonzero(together & (kind[:-1] == BIND) & (kind[1:] == EVICT))
    _tell(history, findings, BOTH, order[both + 1])
    back = [i for i in np.flatnonzero(same & (kind[:-1] == EVICT) & (kind[1:] == BIND)).tolist() if i]
    stood = [i for i in back if task[i - 1] == task[i] and _one_place(history, int(order[i - 1]), int(order[i + 1]))]
    _tell(history, findings, RESTARTED, order[[i + 1 for i in stood if together[i]]])
    unchanged = _Unchanged(history)
    again = [i for i in stood if not together[i] and unchanged.between(int(order[i]), int(order[i + 1]))]
    for_nothing = _for_nothing(history, order[again])
    _tell(history, findings, SEATED_AGAIN, order[[i + 1 for i in again if int(order[i]) in for_nothing]])
    _check_time(history, findings)


def _check_planned(history: CheckedLog, findings: ViolationCollector) -> None:
    """Check that a plan was made at the instant of each binding and eviction, where the log has plans at all.

    What stood before the first plan was bound long ago.
    """
    columns = history.columns
    if not columns.plan.any():
        return
    begun = np.flatnonzero(np.diff(columns.plan, prepend=0) > 0)
    made = np.full(int(columns.plan[-1]) + 1, -1, dtype=np.int64)
    made[columns.plan[begun]] = columns.at[begun]
    stood = (columns.kind == BIND) & (columns.job < history.initial) & (columns.plan == 0)
    carried_out = np.isin(columns.kind, (BIND, EVICT)) & ~stood
    _tell(history, findings, OF_NO_PLAN, np.flatnonzero(carried_out & (made[columns.plan] != columns.at)))


def _for_nothing(history: CheckedLog, evicted: Ints) -> set[int]:
    """Give those of some evictions that were not needed if their tasks had their places back.

    A core goes whole: part of one may have to go because the place of another part is needed.
    """
    columns = history.columns
    of_plan = Counter(
        zip(columns.job[columns.kind == EVICT].tolist(), columns.plan[columns.kind == EVICT].tolist(), strict=True)
    )
    back = Counter(zip(columns.job[evicted].tolist(), columns.plan[evicted].tolist(), strict=True))
    found = set()
    for position in evicted.tolist():
        job, plan = int(columns.job[position]), int(columns.plan[position])
        gone = of_plan[job, plan]
        core = core_of(history.workloads[job])
        if gone <= history.tasks.sizes[job] - core or back[job, plan] >= core:
            found.add(position)
    return found


def _one_place(history: CheckedLog, first: int, second: int) -> bool:
    """Whether two bindings are to the same node and devices."""
    columns = history.columns
    return bool(columns.x[first] == columns.x[second]) and columns.extra[first] == columns.extra[second]


class _Unchanged:
    """Whether nothing but their plans happened between an eviction with a beneficiary and a later binding."""

    def __init__(self, history: CheckedLog) -> None:
        columns = self.columns = history.columns
        self.events = np.cumsum(np.isin(columns.kind, (SUBMIT, END, DROP)))
        evicts = np.flatnonzero(columns.kind == EVICT)
        self.evicting = np.unique(columns.plan[evicts])

    def between(self, evicted: int, bound: int) -> bool:
        columns, extra = self.columns, self.columns.extra[evicted]
        if (
            not isinstance(extra, EvictionDetails)
            or extra.cause not in FOR_SOMEBODY - MOVES
            or not columns.plan[evicted]
        ):
            return False
        first, last = int(columns.plan[evicted]), int(columns.plan[bound])
        plans = np.searchsorted(self.evicting, [first + 1, last + 1])
        return bool(last - first <= CYCLES and self.events[evicted] == self.events[bound] and plans[0] == plans[1])


def _check_time(history: CheckedLog, findings: ViolationCollector) -> None:
    """Check that a beneficiary was not evicted itself at the instant at which it was bound.

    It may be, for a job that arrived only after that, or that an earlier plan evicted and said so of: a follow-up. What
    ran before the first plan was bound for itself long ago.
    """
    columns, holdings = history.columns, history.holdings
    stood = (history.tasks.job[holdings.task] < history.initial) & (columns.plan[holdings.bound] == 0)
    none = np.flatnonzero(holdings.evicted & (holdings.left == holdings.since) & ~stood)
    short = {(int(history.tasks.job[holdings.task[i]]), int(holdings.since[i])): int(holdings.freed[i]) for i in none}
    if not short:
        return
    binds = np.flatnonzero(columns.kind == BIND)
    found = []
    for position in np.flatnonzero((columns.kind == EVICT) & (columns.x >= 0)).tolist():
        job = int(columns.x[position])
        later = binds[np.searchsorted(binds, position) :]
        own = later[columns.job[later] == job] if any(j == job for j, _ in short) else later[:0]
        if len(own) and (job, int(columns.at[own[0]])) in short:
            evicted = short[job, int(columns.at[own[0]])]
            arrived = np.flatnonzero((columns.kind == SUBMIT) & (columns.job == columns.x[evicted]))
            if not (len(arrived) and arrived[0] > position) and not _was_said(history, evicted):
                found.append(evicted)
    _tell(history, findings, NO_TIME, np.unique(np.array(found, dtype=np.int64)))


def _was_said(history: CheckedLog, evicted: int) -> bool:
    """Whether a plan before that of an eviction said that it would follow."""
    columns = history.columns
    key = int(columns.x[evicted]), int(columns.job[evicted]), int(columns.task[evicted])
    said = history.follow_ups.get(key)
    return said is not None and said < int(columns.plan[evicted])


def _tell(history: CheckedLog, findings: ViolationCollector, kind: str, positions: Ints) -> None:
    columns = history.columns

    def describe(position: int) -> str:
        task = int(history.tasks.first[columns.job[position]] + columns.task[position])
        return f"{history.name(task)}, at {int(columns.at[position])} µs"

    findings.add(kind, positions.tolist(), len(positions), describe)
