"""A gang runs with its whole core or not at all, and a protected core is not evicted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tenure.model.workload import SubGroup, Workload
from tenure.simulator.checks.columns import OF_TASKS, CheckedLog, Ints, Mask
from tenure.simulator.checks.evictions import MOVES
from tenure.simulator.checks.findings import ViolationCollector
from tenure.simulator.checks.min_runtime import MinRuntime
from tenure.simulator.checks.sums import sum_by_group
from tenure.simulator.log import BIND, END, EVICT, EvictionDetails

BELOW_CORE = "gang running below its core"
PROTECTED = "protected core evicted"


@dataclass(frozen=True, slots=True)
class _States:
    """After each event of a task, sorted by job and then by position: how its gang stands.

    ``running`` counts tasks that hold a node and are not being evicted, ``whole`` says whether the active ones
    make up the core (those that run, have finished, or are on a move), and ``staying`` whether they do without those
    that are on a move.
    """

    order: Ints
    job: Ints
    running: Ints
    whole: Mask
    staying: Mask
    first: Mask


def check_gangs(history: CheckedLog, findings: ViolationCollector, min_runtime: MinRuntime | None) -> None:
    """Check every gang at the end of each instant, and every eviction against the minimum runtime.

    Tasks that finished count as active. The minimum runtime of an eviction is what the log recorded with it, and
    what ``min_runtime`` says, counted from the start that the log itself shows: what stood before the first plan
    started before the log does. A task that moves is evicted like any other.
    """
    states = _states(history)
    _check_whole(history, states, findings)
    _check_protected(history, states, findings, min_runtime)


def _states(history: CheckedLog) -> _States:
    columns = history.columns
    of_tasks = np.flatnonzero(np.isin(columns.kind, OF_TASKS))
    order = of_tasks[np.argsort(columns.job[of_tasks], kind="stable")]
    job, kind = columns.job[order], columns.kind[order]
    first = np.ones(len(order), dtype=np.bool_)
    first[1:] = job[1:] != job[:-1]
    running = sum_by_group(np.where(kind == BIND, 1, -1), first)
    ended = sum_by_group((kind == END).astype(np.int64), first)
    moving = sum_by_group(_moving(history, order), first)
    core = np.array([core_of(workload) for workload in history.workloads] or [0], dtype=np.int64)
    whole, staying = running + ended + moving >= core[job], running + ended >= core[job]
    grouped = np.array([bool(workload.sub_groups) for workload in history.workloads] or [False], dtype=np.bool_)
    if grouped.any():
        _apply_sub_groups(history, order, whole, staying, np.flatnonzero(grouped[job]))
    return _States(order, job, running, whole, staying, first)


def core_of(workload: Workload) -> int:
    """Give how many tasks its core has. Where there are subgroups and no ``minMember``, the subgroups alone decide."""
    if workload.min_member is not None:
        return workload.min_member
    return 0 if workload.sub_groups else len(workload.tasks)


def _moving(history: CheckedLog, order: Ints) -> Ints:
    """+1 where a task starts to move, -1 where it has landed."""
    columns = history.columns
    change = np.zeros(len(order), dtype=np.int64)
    if not (columns.kind == EVICT).any():
        return change
    moving: set[tuple[int, int]] = set()
    touched = np.flatnonzero(np.isin(columns.kind[order], (EVICT, BIND)))
    for index in touched.tolist():
        position = int(order[index])
        key = (int(columns.job[position]), int(columns.task[position]))
        extra = columns.extra[position]
        if isinstance(extra, EvictionDetails) and extra.cause in MOVES:
            moving.add(key)
            change[index] = 1
        elif key in moving:
            moving.discard(key)
            change[index] = -1
    return change


def _apply_sub_groups(history: CheckedLog, order: Ints, whole: Mask, staying: Mask, where: Ints) -> None:
    """Also demand the subgroups, for the few workloads that have any: their states are replayed one by one."""
    columns = history.columns
    active, moving = set[int](), set[int]()
    current = -1
    for index in where.tolist():
        position = int(order[index])
        job = int(columns.job[position])
        if job != current:
            current, active, moving = job, set(), set()
        task, extra = int(columns.task[position]), columns.extra[position]
        evicted = columns.kind[position] == EVICT
        moved = evicted and isinstance(extra, EvictionDetails) and extra.cause in MOVES
        (moving.add if moved else moving.discard)(task)
        (active.discard if evicted else active.add)(task)
        whole[index] &= _groups_whole(history.workloads[job], active | moving)
        staying[index] &= _groups_whole(history.workloads[job], active)


def _groups_whole(workload: Workload, active: set[int]) -> bool:
    satisfied = [_group_whole(group, workload, active) for group in workload.sub_groups]
    need = len(satisfied) if workload.min_sub_group is None else workload.min_sub_group
    return sum(satisfied) >= need


def _group_whole(group: SubGroup, workload: Workload, active: set[int]) -> bool:
    if group.sub_groups:
        satisfied = [_group_whole(child, workload, active) for child in group.sub_groups]
        return sum(satisfied) >= (len(satisfied) if group.min_sub_group is None else group.min_sub_group)
    members = [index for index, task in enumerate(workload.tasks) if task.sub_group == group.name]
    need = len(members) if group.min_member is None else group.min_member
    return sum(index in active for index in members) >= need


def _check_whole(history: CheckedLog, states: _States, findings: ViolationCollector) -> None:
    if not len(states.order):
        return
    at = history.columns.at[states.order]
    last = np.ones(len(at), dtype=np.bool_)
    last[:-1] = (states.job[1:] != states.job[:-1]) | (at[1:] != at[:-1])
    ends = np.flatnonzero(last)
    job = states.job[ends]
    bad = (states.running[ends] > 0) & ~states.whole[ends]
    again = np.zeros_like(bad)
    again[1:] = bad[:-1] & (job[1:] == job[:-1])
    where = ends[bad & ~again]
    findings.add(
        BELOW_CORE,
        where,
        len(where),
        lambda index: (
            f"{history.workloads[int(states.job[index])].key} runs {int(states.running[index])} tasks, "
            f"at {int(at[index])} µs"
        ),
    )


def _check_protected(
    history: CheckedLog, states: _States, findings: ViolationCollector, min_runtime: MinRuntime | None
) -> None:
    columns = history.columns
    suspects = np.flatnonzero((columns.kind[states.order] == EVICT) & ~states.staying).tolist()
    if not suspects:
        return
    starts = _starts(history, states)
    broken: dict[tuple[int, int], int] = {}
    for index in suspects:
        position = int(states.order[index])
        at, job = int(columns.at[position]), int(columns.job[position])
        if at < max(_protected_until(history, position, int(starts[index]), min_runtime)):
            broken.setdefault((job, at), position)
    findings.add(
        PROTECTED,
        broken.values(),
        len(broken),
        lambda position: f"{history.workloads[int(columns.job[position])].key}, at {int(columns.at[position])} µs",
    )


def _protected_until(history: CheckedLog, position: int, start: int, min_runtime: MinRuntime | None) -> Iterator[int]:
    columns = history.columns
    extra = columns.extra[position]
    if not isinstance(extra, EvictionDetails):
        return
    yield extra.protected_until
    if min_runtime is not None and start >= 0:
        yield start + min_runtime(int(columns.job[position]), extra.cause, int(columns.x[position]))


def _starts(history: CheckedLog, states: _States) -> Ints:
    """When the core that runs at each event started: since then it was never evicted as a whole. -1: not known."""
    at = history.columns.at[states.order]
    stood = (states.job < history.initial) & (history.columns.plan[states.order] == 0)
    started = np.full(len(at), -1, dtype=np.int64)
    start = -1
    known = False
    columns = (states.first, states.running, states.whole, stood, at)
    for index, (first, running, whole, before, now) in enumerate(zip(*map(np.ndarray.tolist, columns), strict=True)):
        if first:
            start, known = -1, True
        known &= not before
        if whole and running and start < 0 and known:
            start = now
        started[index] = start
        if not running:
            start, known = -1, True
    return started
