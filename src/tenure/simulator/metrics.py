"""The summary of a simulation.

Definitions; *job* means a job of the trace, workloads of the cluster file count only where resources are summed:

``jobs``, ``finished``
    Jobs that the trace brings, and those that came to their end.
``dropped``
    Records that became no job plus jobs that left without having started; ``dropReasons`` counts them by reason.
``makespan_s``
    From the first event (usually the first arrival) to the last one.
``wait_s``
    From arrival to the *first* start, over all jobs that started, evicted or not. ``p95`` interpolates linearly.
``boundedSlowdown``
    Of each finished job whose run time the trace knows: max(1, (end - arrival) / max(run time, τ)), τ = 10 s. For
    a job that was never evicted that is max(1, (wait + run) / max(run, τ)) (Feitelson et al., "Theory and practice
    in parallel job scheduling", JSSPP 1997).
``utilization``
    By resource: what was held, summed over time, divided by capacity times makespan. Capacity is that of all nodes.
``goodput``
    The same without what was lost to evictions: neither what they destroyed nor the restarts that tasks held for. So it
    is never below 0, and work that is done counts as often as it was worth something: once.
``allocated``
    By resource: the share of the capacity held when the last event has happened; GPUs stand under ``milliGpu``,
    with fractions in them.
``lost``
    By resource, in resource-seconds (whole GPUs, cores, bytes): the time since the last checkpoint of every evicted
    task, plus what its restart takes. That is booked with the eviction, in full, though the task may be evicted again
    before its restart is over, or never start again: ``lost`` may be more than ``goodput`` leaves out.
``evictions``
    By cause: how often a workload lost tasks to it at one instant; ``evictedTasks`` counts the tasks.
``notices``
    Evictions that were announced first: ``told`` and ``withdrawn`` count workloads at one instant; ``spared`` is what
    would have been lost, in resource-seconds, if no workload had saved its work during its notice.
``jain``
    Jain's index (Σx)² / (n·Σx²) over the leaf queues that asked for any of the main resource (GPU where a node has
    one, else CPU), with x = resource-time received ÷ resource-time wanted: what the queue's workloads held
    for work that was not lost, divided by all that their tasks ask for times the time from arrival to end (or to the
    last event). 1 means that all queues were served equally well; dropped jobs want nothing.
``queues``
    The leaf queues by name, with ``jobs``, ``finished``, ``wait_s`` and ``lost``.
``violations``, ``wall_s``
    What the checker counted, and the seconds that the simulation took.

A mean over nothing is ``null``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from tenure.model.cluster import DEFAULT_QUEUE
from tenure.model.node import Node
from tenure.model.values.resources import CPU, GPU, MILLI
from tenure.simulator.checks.capacity import amounts_counted, capacity_counted
from tenure.simulator.checks.columns import Ints, Mask, demand
from tenure.simulator.log import DROP, NOTICE, WITHDRAW
from tenure.simulator.outcomes import DROPPED, FINISHED, Outcomes
from tenure.simulator.traces.records import SECOND, Trace

Summary: TypeAlias = dict[str, object]

TAU_S = 10
"""Run time below which a slowdown does not count in full, in seconds."""

MILLI_GPU = "milliGpu"

_IN_MILLI = frozenset({CPU, GPU})
"""Resources that are counted in thousandths here."""


def summarize(outcomes: Outcomes, trace: Trace, nodes: Sequence[Node], *, violations: int, wall_s: float) -> Summary:
    """Give the summary that `tenure simulate --format json` prints; the module defines its fields."""
    resources = _Resources(outcomes, nodes)
    mine = np.arange(len(outcomes.names)) >= outcomes.initial
    finished = np.array([state == FINISHED for state in outcomes.state], dtype=np.bool_)
    reasons = _drop_reasons(outcomes, trace)
    return {
        "jobs": int(mine.sum()),
        "finished": int((mine & finished).sum()),
        "dropped": sum(reasons.values()),
        "dropReasons": reasons,
        "makespan_s": (outcomes.ended - outcomes.began) / SECOND,
        "wait_s": _waits(outcomes, mine),
        "boundedSlowdown": _slowdown(outcomes, mine & finished),
        "utilization": resources.shares(useful=False),
        "allocated": resources.allocated(),
        "goodput": resources.shares(useful=True),
        "lost": resources.lost(),
        "evictions": outcomes.by_cause,
        "evictedTasks": outcomes.tasks_by_cause,
        "notices": _notices(outcomes, resources),
        "jain": resources.jain(),
        "queues": _queues(outcomes, resources, mine, finished),
        "violations": violations,
        "wall_s": wall_s,
    }


def _drop_reasons(outcomes: Outcomes, trace: Trace) -> dict[str, int]:
    columns = outcomes.history.columns
    reasons = Counter(trace.drop_reasons)
    for position in np.flatnonzero(columns.kind == DROP).tolist():
        if columns.job[position] >= outcomes.initial:
            reasons[str(columns.extra[position])] += 1
    return dict(sorted(reasons.items()))


def _notices(outcomes: Outcomes, resources: _Resources) -> dict[str, object]:
    columns = outcomes.history.columns
    counts = []
    for kind in (NOTICE, WITHDRAW):
        where = np.flatnonzero(columns.kind == kind)
        counts.append(len(set(zip(columns.job[where].tolist(), columns.at[where].tolist(), strict=True))))
    return {"told": counts[0], "withdrawn": counts[1], "spared": resources.summed(outcomes.task_spared)}


def _waits(outcomes: Outcomes, mask: Mask) -> dict[str, float | None]:
    started = mask & (outcomes.first_start >= 0) & (outcomes.submit >= 0)
    waits = (outcomes.first_start[started] - outcomes.submit[started]) / SECOND
    if not len(waits):
        return {"mean": None, "median": None, "p95": None, "max": None}
    return {
        "mean": float(waits.mean()),
        "median": float(np.median(waits)),
        "p95": float(np.percentile(waits, 95)),
        "max": float(waits.max()),
    }


def slowdowns(outcomes: Outcomes, mask: Mask) -> npt.NDArray[np.float64]:
    """Give the bounded slowdown of those jobs of a mask that have one."""
    known = mask & (outcomes.end >= 0) & (outcomes.submit >= 0) & (outcomes.runtime >= 0)
    response = (outcomes.end - outcomes.submit)[known]
    slowdown: npt.NDArray[np.float64] = response / np.maximum(outcomes.runtime[known], TAU_S * SECOND)
    return np.maximum(slowdown, 1.0)


def _slowdown(outcomes: Outcomes, mask: Mask) -> dict[str, float | None]:
    values = slowdowns(outcomes, mask)
    if not len(values):
        return {"tau_s": TAU_S, "mean": None, "p95": None}
    return {"tau_s": TAU_S, "mean": float(values.mean()), "p95": float(np.percentile(values, 95))}


def _queues(outcomes: Outcomes, resources: _Resources, mine: Mask, finished: Mask) -> list[Summary]:
    table: list[Summary] = []
    for number, name in enumerate(resources.queues):
        mask = mine & (resources.queue_of == number)
        table.append(
            {
                "name": name,
                "jobs": int(mask.sum()),
                "finished": int((mask & finished).sum()),
                "wait_s": _waits(outcomes, mask),
                "lost": resources.lost(number),
            }
        )
    return table


class _Resources:
    """Resource-time, by resource and queue. Amounts are those of the checker, GPUs in milli-GPU; time in µs."""

    def __init__(self, outcomes: Outcomes, nodes: Sequence[Node]) -> None:
        self.outcomes = outcomes
        holdings = outcomes.holdings
        history = outcomes.history
        names = [workload.queue or DEFAULT_QUEUE for workload in outcomes.workloads]
        self.queues = sorted(set(names))
        number = {name: index for index, name in enumerate(self.queues)}
        self.queue_of = np.array([number[name] for name in names], dtype=np.int64)
        self.capacity = capacity_counted(history, nodes)
        spec = history.tasks.spec[holdings.task]
        self.amounts = {name: amounts_counted(history, nodes, name, spec) for name in self.capacity}
        self.time = np.where(holdings.until < 0, outcomes.ended, holdings.until) - holdings.since
        self.queue = self.queue_of[history.tasks.job[holdings.task]]

    def shares(self, *, useful: bool) -> dict[str, float]:
        """Give held (or useful) resource-time as shares of capacity times makespan."""
        makespan = self.outcomes.ended - self.outcomes.began
        time = self.outcomes.task_useful if useful else self.time
        return {
            name: _sum(self.amounts[name], time) / (capacity * makespan)
            for name, capacity in self.capacity.items()
            if capacity and makespan
        }

    def allocated(self) -> dict[str, float]:
        """Give the shares of the capacity that are held in the end."""
        held = self.outcomes.holdings.until < 0
        shares = {
            MILLI_GPU if name == GPU else name: float(self.amounts[name][held].sum() / capacity)
            for name, capacity in self.capacity.items()
            if capacity
        }
        return {MILLI_GPU: 0.0} | shares

    def lost(self, queue: int | None = None) -> dict[str, float]:
        """Give what evictions destroyed, in resource-seconds, of one queue or of all."""
        return self.summed(self.outcomes.task_lost, queue)

    def summed(self, times: Ints, queue: int | None = None) -> dict[str, float]:
        """Give times (µs) of what was held as resource-seconds, of one queue or of all."""
        mask = times > 0
        if queue is not None:
            mask &= self.queue == queue
        time = times[mask]
        return {
            name: _sum(amounts[mask], time) / SECOND / (MILLI if name in _IN_MILLI else 1)
            for name, amounts in self.amounts.items()
        }

    def jain(self) -> float:
        """Give Jain's index over the queues' received ÷ wanted; 1 where no queue wanted anything."""
        main = GPU if self.capacity.get(GPU) else CPU
        if main not in self.amounts:
            return 1.0
        useful = self.outcomes.task_useful.astype(np.float64) * self.amounts[main]
        received = _by_group(self.queue, useful, len(self.queues))
        wanted = self._wanted(main)
        served = received[wanted > 0] / wanted[wanted > 0]
        squares = float((served**2).sum())
        return float(served.sum()) ** 2 / (len(served) * squares) if squares else 1.0

    def _wanted(self, resource: str) -> npt.NDArray[np.float64]:
        outcomes = self.outcomes
        tasks = outcomes.history.tasks
        asked = [
            demand(spec, resource) + beside.get(resource, 0)
            for spec, beside in zip(tasks.specs, outcomes.history.beside, strict=True)
        ]
        each = np.array(asked or [0], dtype=np.int64)[tasks.spec]
        jobs = len(outcomes.names)
        ask = _by_group(tasks.job, each.astype(np.float64), jobs)
        present = np.arange(jobs) < outcomes.initial
        since = np.where(present, outcomes.began, outcomes.submit)
        until = np.where(outcomes.end >= 0, outcomes.end, outcomes.ended)
        wants = (since >= 0) & np.array([state != DROPPED for state in outcomes.state], dtype=np.bool_)
        weights = np.where(wants, ask * (until - since), 0.0)
        return _by_group(self.queue_of, weights, len(self.queues))


def _by_group(group: Ints, values: npt.NDArray[np.float64], groups: int) -> npt.NDArray[np.float64]:
    sums = np.zeros(groups, dtype=np.float64)
    np.add.at(sums, group, values)
    return sums


def _sum(amounts: Ints, time: Ints) -> float:
    """Sum resource-time in floating point: bytes times µs do not fit 64 bits."""
    return float(np.dot(amounts.astype(np.float64), time.astype(np.float64)))
