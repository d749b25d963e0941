"""The price of an eviction: what victims are compared by.

It is what the eviction destroys (`tenure.engine.state.cost`). Where ``minRuntime.mode`` is ``price``, a workload that
has not run for its minimum runtime is as dear as if it lost all of that; and each earlier eviction makes it dearer by
``worth.repeatFactor`` times as much. A price belongs to the victim: it does not depend on the contender.
"""

from __future__ import annotations

from collections.abc import Sequence

from tenure.engine.state.cost import MICRO, SECOND, cost_of_all, rate
from tenure.engine.state.session import Session
from tenure.engine.state.workloads import TaskState, WorkloadState
from tenure.shields.min_runtime import clock, priced_runtime


def price_of_all(session: Session, tasks: Sequence[TaskState]) -> int:
    """Give the price of evicting active tasks of one workload together, in millionths of a weighted resource-second."""
    workload = tasks[0].workload
    cost = cost_of_all(session, tasks)
    floor = _lost_at_least(session, workload)
    if floor:
        cost = max(cost, sum(round(rate(session, t) * floor / SECOND * MICRO) for t in tasks))
    factor = repeat_factor(session, workload)
    return cost if factor == 1 else round(cost * factor)


def any_price(session: Session) -> bool:
    """Whether the price of any workload may be another than what its eviction costs."""
    settings = session.settings
    return bool(settings.worth.repeat_factor or settings.min_runtime.mode != "shield" or session.queues.own_modes)


def growth_of_all(session: Session, tasks: Sequence[TaskState]) -> int:
    """Give by how much the price of evicting active tasks of one workload grows in a second, where nothing is saved."""
    return round(sum(rate(session, t) for t in tasks) * repeat_factor(session, tasks[0].workload) * MICRO)


def repeat_factor(session: Session, workload: WorkloadState) -> float:
    """Give how many times as dear the earlier evictions of a workload make the next one."""
    worth = session.settings.worth
    more = worth.repeat_factor
    return 1 + more * workload.times_evicted(session.now, worth.forgotten_after) if more else 1


def _lost_at_least(session: Session, workload: WorkloadState) -> int:
    """Give the time in µs that a workload counts as losing at least: its minimum runtime until it has run for that."""
    if floor_until(session, workload) is None:
        return 0
    return priced_runtime(session.settings, session.queues, workload.leaf)


def floor_until(session: Session, workload: WorkloadState) -> int | None:
    """Give until when (µs since the epoch) a workload counts as losing its minimum runtime; None where it does not."""
    minimum = priced_runtime(session.settings, session.queues, workload.leaf)
    start = clock(session, workload) if minimum else None
    return start + minimum if start is not None and session.now < start + minimum else None
