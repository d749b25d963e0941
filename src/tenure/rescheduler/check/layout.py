"""The independent checker of moves that are made for the layout's sake: it shares nothing with what finds them.

It adds up the worth of both layouts from their definition, node by node, and is written to be read.
"""

from __future__ import annotations

from collections.abc import Sequence

from tenure.rescheduler.check.plan import Waves, check
from tenure.rescheduler.problem.definition import Certificate, MoveAnswer, TaskMove
from tenure.rescheduler.problem.improvement import LayoutProblem

NOISE = 1e-6


def check_layout(
    asked: LayoutProblem,
    moves: Sequence[TaskMove],
    *,
    gain: float,
    net: float,
    bound: float,
    waves: Waves | None = None,
) -> list[str]:
    """Give everything that is wrong with moves and with what is said of them; nothing if it is right.

    Parameters
    ----------
    asked
        What was asked.
    moves
        The plan.
    gain, net, bound
        What is claimed, in weighted resources.
    waves
        The plan in order, if it is to be replayed as well.
    """
    cost = sum(int(asked.problem.cost[m.task]) for m in moves)
    certificate = Certificate(cost=cost, lower_bound=0, method="greedy")
    faults = check(asked.problem, MoveAnswer(tuple(moves), (), certificate), waves)
    faults += [
        f"task {m.task} lands on node {m.target}, which is no target" for m in moves if not asked.targets[m.target]
    ]
    own = worth_of(asked, _where(asked, moves)) - worth_of(asked, _where(asked, ()))
    if not asked.hidden and abs(own - gain) > NOISE:
        faults.append(f"the moves gain {own:.6f} and not {gain:.6f}")
    if abs(gain - asked.least * cost - net) > NOISE:
        faults.append(f"net of {cost} at {asked.least} a gain of {gain:.6f} is not {net:.6f}")
    if moves and net <= 0:
        faults.append(f"the moves do not pay: {net:.6f} is left of the gain")
    if net > bound + NOISE:
        faults.append(f"what is left of the gain, {net:.6f}, is above the bound {bound:.6f}")
    return faults


def _where(asked: LayoutProblem, moves: Sequence[TaskMove]) -> list[tuple[int, int]]:
    """Node and shape of every task once moves are made."""
    places = [(int(n), int(s)) for n, s in zip(asked.problem.node, asked.problem.shape, strict=True)]
    for move in moves:
        places[move.task] = move.target, move.shape
    return places


def worth_of(asked: LayoutProblem, places: Sequence[tuple[int, int]]) -> float:
    """Add up what a layout is worth, in weighted resources, but for what the arrays do not show.

    Parameters
    ----------
    asked
        The layout as it is.
    places
        Node and shape of every task instead.
    """
    problem, terms = asked.problem, asked.terms
    kinds = range(len(asked.price))
    room = [[float(asked.room[kind, node]) for kind in kinds] for node in range(problem.size)]
    count = [int(n) for n in asked.fixed]
    total = 0.0
    for task, (node, shape) in enumerate(places):
        home, own = int(problem.node[task]), int(problem.shape[task])
        for kind in kinds:
            room[home][kind] += float(asked.takes[own, kind])
            room[node][kind] -= float(asked.takes[shape, kind])
        count[node] += 1
        if len(asked.liking):
            total += float(asked.liking[task, node])
    for node in range(problem.size):
        for kind in kinds:
            size = float(asked.capacity[kind, node])
            if size > 0:
                total += terms.packed * float(asked.price[kind]) * room[node][kind] ** 2 / size
        if count[node] == 0:
            total += terms.whole * float(asked.whole[node])
    return total
