"""What stands in the way where a queue cannot be brought under its max: which guarantee, shield or bound."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tenure.engine.quota_state import QuotaBlocker
from tenure.engine.refusal import Refusal
from tenure.engine.state.workloads import TaskState, WorkloadState
from tenure.ledger.entries import LinearBound
from tenure.quota.choose import QuotaChoice
from tenure.quota.problem import QuotaSelection
from tenure.victims.rules.pieces import Piece

GUARANTEED, OVERSHOOT, STUCK, EXHAUSTED = "guaranteed", "overshoot", "stuck", "search-exhausted"
MOST_LISTED = 50

Obstacle = tuple[Piece, tuple[int, ...], int | None]
"""What would still help, what it would free, and the number of the bound that forbids it, if one does."""


def blockers(choice: QuotaChoice, stuck: Iterable[TaskState]) -> tuple[QuotaBlocker, ...]:
    """Name what keeps the rest from being taken, in the order of the tree; each once."""
    queues = choice.problem.queues
    leaving = (t.workload for t in stuck if choice.problem.top in queues.path[t.workload.leaf])
    shielded = [(w, r.shield, r.until) for w, r in choice.pool.refused] + [(w, STUCK, None) for w in leaving]
    named = (QuotaBlocker(queues.queues[w.leaf].name, why, None, w.key, until) for w, why, until in shielded)
    found = dict.fromkeys([*(_blocker(choice, o) for o in _obstacles(choice)), *named])
    order = {queue.name: number for number, queue in enumerate(queues.queues)}
    ordered = sorted(found, key=lambda b: (order[b.queue], b.reason, b.workload or "", b.resource or ""))
    return tuple(ordered[:MOST_LISTED])


def over_budget(choice: QuotaChoice) -> Iterator[tuple[WorkloadState, Refusal]]:
    """Give the workloads that would still help, and that a disruption budget spares."""
    for piece, _, number in _obstacles(choice):
        row = None if number is None else choice.problem.bounds.names[number]
        if isinstance(row, LinearBound):
            yield piece.workload, Refusal(row.shield, row.refusal, choice.problem.candidates.spared_until(piece))


def _obstacles(choice: QuotaChoice) -> Iterator[Obstacle]:
    selection = QuotaSelection(choice.problem)
    for piece in choice.pieces:
        selection.try_add(piece)
    for piece in choice.pool.pieces:
        net = selection.net(piece)
        if net is not None and any(net[row] > 0 for row in choice.left):
            yield piece, net, selection.blocked_by(piece, net)


def _blocker(choice: QuotaChoice, obstacle: Obstacle) -> QuotaBlocker:
    problem, queues, (piece, net, number) = choice.problem, choice.problem.queues, obstacle
    if number is not None:
        bound = problem.bounds.names[number]
        if isinstance(bound, LinearBound):
            leaf = queues.queues[piece.workload.leaf].name
            return QuotaBlocker(leaf, bound.shield, None, piece.workload.key, problem.candidates.spared_until(piece))
        queue, row = bound
        return QuotaBlocker(queues.queues[queue].name, GUARANTEED, queues.resources[row])
    top = queues.queues[problem.top].name
    for row in problem.rows:
        if problem.never and net[row] > choice.left.get(row, 0):
            return QuotaBlocker(top, OVERSHOOT, queues.resources[row])
    return QuotaBlocker(top, EXHAUSTED)
