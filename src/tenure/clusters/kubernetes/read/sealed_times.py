"""The times in the scheduler's own record of promises and notices, believed within bounds.

Who may write the status of pods could write them. A promise that is always young would hold its room for ever, and a
notice that is never over would keep its pod for ever.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from tenure.clusters.kubernetes.read.workloads import ObservedWorkload
from tenure.engine.state.notices import longest_notice
from tenure.model.queue import Queue
from tenure.model.settings import MINUTE
from tenure.model.workload import Nomination, Notice, Task

AHEAD: Final = 15 * MINUTE
"""So far ahead of now, in µs, a time may be that the scheduler wrote: the API server's clock may have been put back."""


def believed(made: ObservedWorkload, queues: Sequence[Queue], now: int) -> ObservedWorkload:
    """Give a workload without promises and notices of the future, and with no notice that is longer than it may be."""
    own = made.workload
    if all(task.nominated is None and task.notice is None for task in own.tasks):
        return made
    most = longest_notice(_above(own.queue or "", queues))
    tasks = tuple(_believed(task, now, most) for task in own.tasks)
    return made if tasks == own.tasks else replace(made, workload=replace(own, tasks=tasks))


def _believed(task: Task, now: int, most: int) -> Task:
    notice = _notice(task.notice, now, most)
    is_landing = task.notice is not None
    kept = (notice is not None) if is_landing else _is_timely(task.nominated, now)
    return replace(task, notice=notice, nominated=task.nominated if kept else None)


def _notice(notice: Notice | None, now: int, most: int) -> Notice | None:
    """Give a notice that ends when the longest one of its time would have ended; None for one without a time."""
    if notice is None or notice.at is None or notice.at > now + AHEAD:
        return None
    return replace(notice, deadline=min(notice.deadline, notice.at + most))


def _is_timely(nomination: Nomination | None, now: int) -> bool:
    return nomination is not None and nomination.at <= now + AHEAD


def _above(name: str, queues: Sequence[Queue]) -> list[Queue]:
    """Give a queue and those above it, upward."""
    known = {queue.name: queue for queue in queues}
    found: list[Queue] = []
    queue = known.get(name)
    while queue is not None and len(found) <= len(known):
        found.append(queue)
        queue = known.get(queue.parent or "")
    return found
