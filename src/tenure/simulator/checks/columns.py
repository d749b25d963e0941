"""The event log as arrays, and what the tasks of its workloads ask for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from tenure.model.device_resources import counted_beside
from tenure.model.settings import Settings
from tenure.model.values.resources import CPU, GPU, MEMORY, MILLI, PODS
from tenure.model.workload import TaskSpec, Workload
from tenure.simulator.log import (
    BIND,
    DROP,
    END,
    EVICT,
    NOTICE,
    REST,
    SUBMIT,
    WITHDRAW,
    Event,
    EventLog,
    EvictionDetails,
)

Ints: TypeAlias = npt.NDArray[np.int64]
Mask: TypeAlias = npt.NDArray[np.bool_]

OF_TASKS = (BIND, END, EVICT)
KINDS = (SUBMIT, BIND, END, EVICT, DROP, NOTICE, WITHDRAW, REST)


@dataclass(frozen=True, slots=True)
class EventColumns:
    """Events as columns of equal length, in the log's order. ``extra`` stays a tuple of Python objects.

    ``plan`` numbers the plans: the one that an event came of, or after which it happened (0: before any).
    """

    kind: Ints
    at: Ints
    job: Ints
    task: Ints
    x: Ints
    plan: Ints
    extra: tuple[object, ...]

    def take(self, mask: Mask) -> EventColumns:
        """Keep the events of a mask."""
        if mask.all():
            return self
        extra = tuple(value for value, keep in zip(self.extra, mask.tolist(), strict=True) if keep)
        return EventColumns(
            self.kind[mask], self.at[mask], self.job[mask], self.task[mask], self.x[mask], self.plan[mask], extra
        )


def columns_of(log: EventLog) -> EventColumns:
    """Turn the log's tuples into columns."""
    events: Sequence[Event] = log.events
    return EventColumns(
        kind=_ints([event[0] for event in events]),
        at=_ints([event[1] for event in events]),
        job=_ints([event[2] for event in events]),
        task=_ints([event[3] for event in events]),
        x=_ints([event[4] for event in events]),
        plan=np.searchsorted(_ints(log.plans.begins), np.arange(len(events)), side="right").astype(np.int64),
        extra=tuple([event[5] for event in events]),
    )


def _ints(values: Sequence[int]) -> Ints:
    return np.fromiter(values, dtype=np.int64, count=len(values))


@dataclass(frozen=True, slots=True)
class TaskColumns:
    """The tasks of all workloads, numbered through: task ``t`` of job ``j`` is ``first[j] + t``.

    ``spec`` is the index of each task's spec in ``specs``; ``job`` is its job.
    """

    first: Ints
    sizes: Ints
    spec: Ints
    job: Ints
    specs: tuple[TaskSpec, ...]


def tasks_of(workloads: Sequence[Workload]) -> TaskColumns:
    """Number the tasks through. Specs are told apart by identity, which is what readers share."""
    sizes = _ints([len(workload.tasks) for workload in workloads])
    index: dict[int, int] = {}
    specs: list[TaskSpec] = []
    flat: list[int] = []
    for task in chain.from_iterable(workload.tasks for workload in workloads):
        number = index.get(id(task.spec))
        if number is None:
            number = index[id(task.spec)] = len(specs)
            specs.append(task.spec)
        flat.append(number)
    first = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(sizes)))[:-1]
    return TaskColumns(first, sizes, _ints(flat), np.repeat(np.arange(len(sizes)), sizes), tuple(specs))


@dataclass(frozen=True, slots=True)
class TaskHoldings:
    """The holdings of tasks, where and when: one entry per task that was bound, in the order of binding.

    ``task`` is the number of `TaskColumns`, ``since`` and ``until`` are µs (``until`` of one that still holds is -1),
    ``left`` is when it stopped counting for its queue (an evicted task occupies its node until ``until``, but its
    queue only until ``left``; with the end of its workload it is gone). ``bound`` and ``freed`` are the positions of
    the two events in the log (-1: none);
    ``evicted`` says that it was evicted rather than finished. ``devices`` are GPU indices on the node.
    """

    task: Ints
    node: Ints
    since: Ints
    until: Ints
    left: Ints
    bound: Ints
    freed: Ints
    evicted: Mask
    devices: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class TaskEvents:
    """Events of tasks sorted by task and then by position, with the kind of the task's event before (-1: none)."""

    order: Ints
    task: Ints
    kind: Ints
    before: Ints


def task_events(columns: EventColumns, tasks: TaskColumns) -> TaskEvents:
    """Sort the events of tasks by task."""
    of_tasks = np.flatnonzero(np.isin(columns.kind, OF_TASKS))
    number = tasks.first[columns.job[of_tasks]] + columns.task[of_tasks]
    order = of_tasks[np.argsort(number, kind="stable")]
    task = tasks.first[columns.job[order]] + columns.task[order]
    kind = columns.kind[order]
    before = np.full(len(kind), -1, dtype=np.int64)
    before[1:] = np.where(task[1:] == task[:-1], kind[:-1], -1)
    return TaskEvents(order, task, kind, before)


def holdings_of(columns: EventColumns, tasks: TaskColumns) -> TaskHoldings:
    """Pair each binding with the event that ended it; events that fit no pair are left out."""
    sequence = task_events(columns, tasks)
    valid = np.where(sequence.kind == BIND, sequence.before != BIND, sequence.before == BIND)
    order, task, kind = sequence.order[valid], sequence.task[valid], sequence.kind[valid]
    starts = np.flatnonzero(kind == BIND)
    following = np.minimum(starts + 1, max(len(order) - 1, 0))
    ended = (following > starts) & (task[following] == task[starts])
    bound = order[starts]
    freed = np.where(ended, order[following], -1)
    evicted = ended & (kind[following] == EVICT)
    left = np.where(ended, columns.at[freed], -1)
    until = left.copy()
    over = np.full(len(tasks.first) or 1, np.iinfo(np.int64).max, dtype=np.int64)
    over[columns.job[columns.kind == END]] = columns.at[columns.kind == END]  # what of a job that ends still leaves
    for index in np.flatnonzero(evicted).tolist():
        extra = columns.extra[freed[index]]
        if isinstance(extra, EvictionDetails) and extra.leaves_at >= 0:
            until[index] = max(left[index], min(extra.leaves_at, over[columns.job[freed[index]]]))
    devices = tuple(_devices(columns.extra[position]) for position in bound.tolist())
    sort = np.argsort(bound, kind="stable")
    return TaskHoldings(
        task=task[starts][sort],
        node=columns.x[bound][sort],
        since=columns.at[bound][sort],
        until=until[sort],
        left=left[sort],
        bound=bound[sort],
        freed=freed[sort],
        evicted=evicted[sort],
        devices=tuple(devices[index] for index in sort.tolist()),
    )


def _devices(extra: object) -> tuple[int, ...]:
    return extra if isinstance(extra, tuple) else ()


@dataclass(frozen=True, slots=True)
class CheckedLog:
    """The event log with everything that the checks derive from it. Built once with `history_of`."""

    workloads: Sequence[Workload]
    columns: EventColumns
    tasks: TaskColumns
    holdings: TaskHoldings
    initial: int
    settings: Settings
    beside: tuple[Mapping[str, int], ...]
    """By spec, what a task counts for its queue beside what it asks for."""
    follow_ups: Mapping[tuple[int, int, int], int]
    """By beneficiary, job and task the number of the plan that first said that the one would go for the other."""

    def name(self, task: int) -> str:
        """Name a task for a message."""
        job = int(self.tasks.job[task])
        workload = self.workloads[job]
        return f"{workload.tasks[task - int(self.tasks.first[job])].name} of {workload.key}"


def history_of(
    log: EventLog, workloads: Sequence[Workload], columns: EventColumns | None = None, settings: Settings | None = None
) -> CheckedLog:
    """Prepare a log for checking. ``columns`` replaces the log's own events, where some had to be left out.

    ``settings`` say what devices count for queues.
    """
    tasks = tasks_of(workloads)
    events = columns_of(log) if columns is None else columns
    counting = settings or Settings()
    beside = tuple(counted_beside(spec, counting) for spec in tasks.specs)
    holdings = holdings_of(events, tasks)
    return CheckedLog(workloads, events, tasks, holdings, log.initial, counting, beside, log.plans.follow_ups)


def demand(spec: TaskSpec, resource: str, gpu_memory: int | None = None) -> int:
    """Amount of a resource that a task holds, GPUs in milli-GPU; one pod for ``pods``.

    A share of GPU memory counts as its part of a GPU with ``gpu_memory`` bytes, rounded down; of a whole one where
    that is not known.
    """
    if resource == PODS:
        return 1
    amount = dict(spec.requests).get(resource, 0)
    if resource != GPU:
        return amount
    share = spec.gpu_share
    if share is None:
        return amount * MILLI
    if share.memory:
        milli = MILLI if not gpu_memory else share.memory * MILLI // gpu_memory
        return milli * share.devices
    return share.milli * share.devices


def resources_of(specs: Sequence[TaskSpec]) -> list[str]:
    """Name the resources that tasks ask for, and ``pods``."""
    named = {name for spec in specs for name, amount in spec.requests if amount}
    if any(spec.gpu_share is not None for spec in specs):
        named.add(GPU)
    return _in_order(named)


def resources_counted(history: CheckedLog) -> list[str]:
    """Name the resources that tasks count for queues, and ``pods``."""
    return _in_order({*resources_of(history.tasks.specs), *(name for found in history.beside for name in found)})


def _in_order(named: set[str]) -> list[str]:
    first = [name for name in (CPU, MEMORY, GPU) if name in named]
    return first + sorted(named - {CPU, MEMORY, GPU, PODS}) + [PODS]
