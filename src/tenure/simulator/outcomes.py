"""What became of each job of a simulation, as arrays: what the summary, the jobs table and the report are made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tenure.model.settings import Settings
from tenure.model.workload import Workload
from tenure.simulator.checks.columns import CheckedLog, Ints, Mask, TaskHoldings, history_of
from tenure.simulator.checks.sums import sum_by_group
from tenure.simulator.log import BIND, DROP, END, EVICT, REST, SUBMIT, EventLog, EvictionDetails
from tenure.simulator.traces.records import Trace, TraceJob

FINISHED, RUNNING, PENDING, DROPPED = "finished", "running", "pending", "dropped"


@dataclass(frozen=True, slots=True)
class Outcomes:
    """The outcome of each job of the log as arrays, those of the cluster file (``initial`` of them) first.

    Times in µs, -1: never.

    ``submit`` is the arrival, ``first_start`` the first time a task was bound, ``start`` the last time the job
    went from running nothing to running something, ``end`` when its last task finished, ``runtime`` the trace's
    (-1: not known). ``evictions`` counts instants at which it lost tasks to one cause; ``lost`` is the job's own
    time that they destroyed (of several tasks the longest). ``state`` is ``finished``, ``running``, ``pending`` or
    ``dropped``; one of a job that never arrived is ``pending`` with ``submit`` -1.

    ``by_cause`` counts evictions by cause, ``tasks_by_cause`` evicted tasks. ``began`` and ``ended`` are the first
    arrival or binding, and the last event, or when the last task left its node.
    """

    history: CheckedLog
    names: tuple[str, ...]
    submit: Ints
    first_start: Ints
    start: Ints
    end: Ints
    runtime: Ints
    evictions: Ints
    lost: Ints
    state: tuple[str, ...]
    by_cause: dict[str, int]
    tasks_by_cause: dict[str, int]
    task_lost: Ints
    task_spared: Ints
    task_useful: Ints
    began: int
    ended: int
    initial: int

    @property
    def workloads(self) -> Sequence[Workload]:
        """The jobs' workloads."""
        return self.history.workloads

    @property
    def holdings(self) -> TaskHoldings:
        """Who held what, where and when; ``task_lost`` (µs, including restart overhead) and ``task_spared`` (µs that
        were saved because the task had been told that it has to go) go with these, and ``task_useful``: µs of work that
        was not lost, without the restarts that it took.
        """
        return self.history.holdings


def outcomes_of(log: EventLog, trace: Trace | None = None, settings: Settings | None = None) -> Outcomes:
    """Work out what became of each job.

    Parameters
    ----------
    log
        What happened.
    trace
        Where the log's jobs from ``log.initial`` on come from, in its order; gives their names and run times.
    settings
        What devices count for queues; those by default where not given.

    """
    history = history_of(log, log.workloads, settings=settings)
    columns = history.columns
    jobs = len(log.workloads)
    running, last_start, last_end = _runs(history, jobs)
    ended = np.where(running == 0, last_end, -1)
    dropped = np.zeros(jobs, dtype=np.bool_)
    dropped[columns.job[columns.kind == DROP]] = True
    starts = last_starts(history)
    task_lost, task_spared = lost_of(history, starts)
    evictions, lost, by_cause, tasks_by_cause = _evictions(history, task_lost, jobs)
    traced = () if trace is None else trace.jobs[: jobs - log.initial]
    runtime = np.full(jobs, -1, dtype=np.int64)
    happened = columns.at[columns.kind != REST]  # how a job stands when all is over has not happened to it
    last = max(happened.max(initial=0), history.holdings.until.max(initial=0)).item()
    runtime[log.initial : log.initial + len(traced)] = [-1 if job.runtime is None else job.runtime for job in traced]
    return Outcomes(
        history=history,
        names=_names(log, traced),
        submit=_first_at(history, columns.kind == SUBMIT, jobs),
        first_start=_first_at(history, columns.kind == BIND, jobs),
        start=last_start,
        end=ended,
        runtime=runtime,
        evictions=evictions,
        lost=lost,
        state=_states(running, ended, dropped),
        by_cause=by_cause,
        tasks_by_cause=tasks_by_cause,
        task_lost=task_lost,
        task_spared=task_spared,
        task_useful=_useful_of(history, starts, task_lost, last),
        began=int(happened.min()) if len(happened) else 0,
        ended=last,
        initial=log.initial,
    )


def _names(log: EventLog, traced: Sequence[TraceJob]) -> tuple[str, ...]:
    """Name jobs as the trace does, and others by namespace and name."""
    before = [workload.key for workload in log.workloads[: log.initial]]
    after = [workload.key for workload in log.workloads[log.initial + len(traced) :]]
    return (*before, *(job.record for job in traced), *after)


def _first_at(history: CheckedLog, mask: Mask, jobs: int) -> Ints:
    first = np.full(jobs, -1, dtype=np.int64)
    where = np.flatnonzero(mask)[::-1]
    first[history.columns.job[where]] = history.columns.at[where]
    return first


def _states(running: Ints, ended: Ints, dropped: Mask) -> tuple[str, ...]:
    codes = np.where(dropped, 3, np.where(running > 0, 1, np.where(ended >= 0, 0, 2)))
    names = (FINISHED, RUNNING, PENDING, DROPPED)
    return tuple([names[code] for code in codes.tolist()])


def _sorted_by_job(history: CheckedLog) -> tuple[Ints, Mask, Ints]:
    """Positions of the events of tasks sorted by job, where a job begins, and how many of its tasks run after each."""
    columns = history.columns
    of_tasks = np.flatnonzero((columns.kind == BIND) | (columns.kind == END) | (columns.kind == EVICT))
    order = of_tasks[np.argsort(columns.job[of_tasks], kind="stable")]
    job = columns.job[order]
    first = np.ones(len(order), dtype=np.bool_)
    first[1:] = job[1:] != job[:-1]
    return order, first, sum_by_group(np.where(columns.kind[order] == BIND, 1, -1), first)


def _runs(history: CheckedLog, jobs: int) -> tuple[Ints, Ints, Ints]:
    """How many tasks of each job run in the end, when its last run began, and when it finished.

    A job has finished when its last event is the end of a task.
    """
    columns = history.columns
    order, _, running = _sorted_by_job(history)
    job, kind, at = columns.job[order], columns.kind[order], columns.at[order]
    left = np.zeros(jobs, dtype=np.int64)
    left[job] = running
    start = np.full(jobs, -1, dtype=np.int64)
    begins = (kind == BIND) & (running == 1)
    start[job[begins]] = at[begins]
    last = np.full(jobs, -1, dtype=np.int64)
    last[job] = np.arange(len(order))
    end = np.full(jobs, -1, dtype=np.int64)
    acted = np.flatnonzero(last >= 0)
    finished = acted[kind[last[acted]] == END]
    end[finished] = at[last[finished]]
    return left, start, end


def last_starts(history: CheckedLog) -> Ints:
    """For each event in the log, when the run of its job that it belongs to began (µs; -1 for none)."""
    columns = history.columns
    order, first, running = _sorted_by_job(history)
    starts = np.full(len(columns.at), -1, dtype=np.int64)
    begins = np.flatnonzero((columns.kind[order] == BIND) & (running == 1))
    if not len(begins):
        return starts
    latest = np.searchsorted(begins, np.arange(len(order)), side="right") - 1
    group = np.cumsum(first)
    belongs = (latest >= 0) & (group[begins[np.maximum(latest, 0)]] == group)
    starts[order[belongs]] = columns.at[order][begins[latest[belongs]]]
    return starts


def lost_of(history: CheckedLog, starts: Ints) -> tuple[Ints, Ints]:
    """How much of each holding's time an eviction destroyed, in µs, restart overhead included; and what was spared.

    What the log recorded with the eviction, else what the checkpoints say: the time since the last whole
    checkpoint interval after the start of the job's run (since that start, or the task's own where it is later, if
    none is made), until the task left its node, and the overhead of the restart (spec: settings, disruption cost).
    A checkpoint that was made because the eviction had been announced counts as well: what it spared comes second.
    """
    holdings = history.holdings
    lost = np.zeros(len(holdings.task), dtype=np.int64)
    spared = np.zeros(len(holdings.task), dtype=np.int64)
    for index in np.flatnonzero(holdings.evicted).tolist():
        position = int(holdings.freed[index])
        extra = history.columns.extra[position]
        if isinstance(extra, EvictionDetails) and extra.lost >= 0:
            lost[index] = extra.lost
            continue
        workload = history.workloads[int(history.tasks.job[holdings.task[index]])]
        left = int(holdings.left[index])
        saved = _saved_at(workload, int(starts[position]), left)
        overhead = 0 if workload.checkpoint is None else workload.checkpoint.restart_overhead
        safe = max(saved, int(holdings.since[index]))
        if isinstance(extra, EvictionDetails) and extra.saved_at > safe:
            spared[index] = extra.saved_at - safe
        lost[index] = int(holdings.until[index]) - safe - int(spared[index]) + overhead
    return lost, spared


def _useful_of(history: CheckedLog, starts: Ints, lost: Ints, ended: int) -> Ints:
    """How much of each holding's time, in µs, did work that was not lost; what has not ended is taken as of ``ended``.

    A run after the first begins with its restart, which is no work. What an eviction destroyed is none either; the
    restart that was booked with it is that of a later run, if one comes.
    """
    holdings, jobs = history.holdings, len(history.workloads)
    job = history.tasks.job[holdings.task]
    overhead = np.array(
        [0 if w.checkpoint is None else w.checkpoint.restart_overhead for w in history.workloads] or [0]
    )
    begun = np.where(holdings.bound >= 0, starts[holdings.bound], holdings.since)
    first = np.full(max(1, jobs), np.iinfo(np.int64).max)
    np.minimum.at(first, job, begun)
    until = np.where(holdings.until < 0, ended, holdings.until)
    until = until - np.where(holdings.evicted, np.maximum(lost - overhead[job], 0), 0)
    restarted = begun + np.where(begun > first[job], overhead[job], 0)
    useful: Ints = np.maximum(until - np.maximum(holdings.since, restarted), 0)
    return useful


def _saved_at(workload: Workload, start: int, at: int) -> int:
    interval = None if workload.checkpoint is None else workload.checkpoint.interval
    return start + (at - start) // interval * interval if interval else start


def _evictions(history: CheckedLog, task_lost: Ints, jobs: int) -> tuple[Ints, Ints, dict[str, int], dict[str, int]]:
    """Group evicted tasks into evictions of jobs, and sum what these lost."""
    holdings, columns = history.holdings, history.columns
    count = np.zeros(jobs, dtype=np.int64)
    lost = np.zeros(jobs, dtype=np.int64)
    longest: dict[tuple[int, int, str], int] = {}
    tasks: Counter[str] = Counter()
    for index in np.flatnonzero(holdings.evicted).tolist():
        position = int(holdings.freed[index])
        extra = columns.extra[position]
        cause = extra.cause if isinstance(extra, EvictionDetails) else ""
        tasks[cause] += 1
        key = (int(columns.job[position]), int(columns.at[position]), cause)
        longest[key] = max(longest.get(key, 0), int(task_lost[index]))
    causes: Counter[str] = Counter()
    for (job, _, cause), time in longest.items():
        count[job] += 1
        lost[job] += time
        causes[cause] += 1
    return count, lost, dict(sorted(causes.items())), dict(sorted(tasks.items()))
