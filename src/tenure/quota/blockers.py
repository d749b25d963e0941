"""What stands in the way where a queue cannot be brought under its max: which guarantee, shield or bound."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tenure.engine.quota_state import QuotaBlocker
from tenure.engine.workloads import TaskState
from tenure.quota.choose import Choice
from tenure.quota.problem import Problem, Selection
from tenure.quota.takes import Take

GUARANTEED, OVERSHOOT, STUCK, EXHAUSTED = "guaranteed", "overshoot", "stuck", "search-exhausted"
MOST_LISTED = 50


def blockers(choice: Choice, stuck: Iterable[TaskState]) -> tuple[QuotaBlocker, ...]:
    """Name what keeps the rest from being taken, in the order of the tree; each once."""
    found = dict.fromkeys([*_guarantees(choice), *_shields(choice), *_stuck(choice, stuck)])
    order = {queue.name: number for number, queue in enumerate(choice.problem.queues.queues)}
    ordered = sorted(found, key=lambda b: (order[b.queue], b.reason, b.workload or "", b.resource or ""))
    return tuple(ordered[:MOST_LISTED])


def _guarantees(choice: Choice) -> Iterator[QuotaBlocker]:
    problem = choice.problem
    selection = Selection(problem)
    for take in choice.takes:
        selection.try_add(take)
    for take in choice.pool.takes:
        net = selection.net(take)
        if net is not None and any(net[row] > 0 for row in choice.left):
            yield _obstacle(problem, selection, take, net)


def _obstacle(problem: Problem, selection: Selection, take: Take, net: tuple[int, ...]) -> QuotaBlocker:
    queues = problem.queues
    number = selection.blocked_by(take, net)
    if number is not None:
        queue, row = problem.names[number]
        return QuotaBlocker(queues.queues[queue].name, GUARANTEED, queues.resources[row])
    top = queues.queues[problem.top].name
    for row in problem.rows:
        if problem.never and net[row] > problem.need[row] - selection.freed[row]:
            return QuotaBlocker(top, OVERSHOOT, queues.resources[row])
    return QuotaBlocker(top, EXHAUSTED)


def _shields(choice: Choice) -> Iterator[QuotaBlocker]:
    queues = choice.problem.queues
    for workload, refusal in choice.pool.refused:
        name = queues.queues[workload.leaf].name
        yield QuotaBlocker(name, refusal.shield, None, workload.key, refusal.until)


def _stuck(choice: Choice, stuck: Iterable[TaskState]) -> Iterator[QuotaBlocker]:
    queues = choice.problem.queues
    for task in stuck:
        if choice.problem.top in queues.path[task.workload.leaf]:
            yield QuotaBlocker(queues.queues[task.workload.leaf].name, STUCK, None, task.workload.key)
