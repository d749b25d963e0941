"""Events follow each other as they can: in time, nothing twice, nothing that is not there."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tenure.model.workload import Workload
from tenure.simulator.checks.columns import KINDS, OF_TASKS, CheckedLog, EventColumns, Ints, Mask, task_events
from tenure.simulator.checks.findings import ViolationCollector
from tenure.simulator.log import BIND, DROP, END, SUBMIT

UNKNOWN = "event of something unknown"
BACKWARDS = "event before an earlier one"
BOUND_TWICE = "task bound twice"
ENDED_IDLE = "task ended that was not running"
EVICTED_IDLE = "task evicted that was not running"
BOUND_FINISHED = "task bound after it had finished"
EARLY = "event of a workload before it arrived"
SUBMITTED_TWICE = "workload submitted twice"
DROPPED_STARTED = "workload dropped after it had started"
BOUND_DROPPED = "task bound after its workload had been dropped"


def known_events(
    columns: EventColumns, workloads: Sequence[Workload], nodes: int, findings: ViolationCollector
) -> EventColumns:
    """Count events whose job, task or node does not exist, and leave them out."""
    jobs = len(workloads)
    known = np.isin(columns.kind, KINDS) & (columns.job >= 0) & (columns.job < jobs)
    sizes = np.array([len(workload.tasks) for workload in workloads] or [0], dtype=np.int64)
    size = sizes[np.where(known, columns.job, 0)]
    known &= ~np.isin(columns.kind, OF_TASKS) | ((columns.task >= 0) & (columns.task < size))
    known &= (columns.kind != BIND) | ((columns.x >= 0) & (columns.x < nodes))
    bad = np.flatnonzero(~known)
    findings.add(
        UNKNOWN,
        bad,
        len(bad),
        lambda index: (
            f"event {index} is about job {columns.job[index]}, task {columns.task[index]}, "
            f"node or beneficiary {columns.x[index]}"
        ),
    )
    return columns.take(known)


def check_order(history: CheckedLog, findings: ViolationCollector) -> None:
    """Check the order of events in time, and of the events of each task and each workload."""
    columns = history.columns
    backwards = np.flatnonzero(np.diff(columns.at) < 0) + 1
    findings.add(
        BACKWARDS,
        backwards,
        len(backwards),
        lambda index: f"event {index} is at {columns.at[index]} µs, the one before it at {columns.at[index - 1]} µs",
    )
    _check_tasks(history, findings)
    _check_workloads(history, findings)


def _check_tasks(history: CheckedLog, findings: ViolationCollector) -> None:
    events = task_events(history.columns, history.tasks)
    binds, ends = events.kind == BIND, events.kind == END
    was_running = events.before == BIND
    for kind, mask in (
        (BOUND_TWICE, binds & was_running),
        (BOUND_FINISHED, binds & (events.before == END)),
        (ENDED_IDLE, ends & ~was_running),
        (EVICTED_IDLE, ~binds & ~ends & ~was_running),
    ):
        where = np.flatnonzero(mask)
        findings.add(
            kind,
            where,
            len(where),
            lambda index: f"{history.name(int(events.task[index]))}, at {history.columns.at[events.order[index]]} µs",
        )


def _check_workloads(history: CheckedLog, findings: ViolationCollector) -> None:
    columns = history.columns
    jobs = len(history.workloads)
    first_submit = _first(columns, columns.kind == SUBMIT, jobs)
    first_bind = _first(columns, columns.kind == BIND, jobs)
    first_other = _first(columns, columns.kind != SUBMIT, jobs)
    last_bind = np.full(jobs, -1, dtype=np.int64)
    last_bind[columns.job[columns.kind == BIND]] = np.flatnonzero(columns.kind == BIND)
    first_drop = _first(columns, columns.kind == DROP, jobs)
    present = np.arange(jobs) < history.initial  # what the cluster starts with need not arrive
    early = np.flatnonzero(~present & (first_other < first_submit))
    submits = np.bincount(columns.job[columns.kind == SUBMIT], minlength=jobs)
    twice = np.flatnonzero(submits > 1)
    started = np.flatnonzero((first_drop < len(columns.at)) & (first_bind < first_drop))
    dropped = np.flatnonzero(last_bind > first_drop)
    for kind, where in (
        (EARLY, early),
        (SUBMITTED_TWICE, twice),
        (DROPPED_STARTED, started),
        (BOUND_DROPPED, dropped),
    ):
        findings.add(kind, where, len(where), lambda job: history.workloads[job].key)


def _first(columns: EventColumns, mask: Mask, jobs: int) -> Ints:
    """Position of the first event of a mask for each job; the number of events where there is none."""
    first = np.full(jobs, len(columns.at), dtype=np.int64)
    where = np.flatnonzero(mask)[::-1]
    first[columns.job[where]] = where
    return first
