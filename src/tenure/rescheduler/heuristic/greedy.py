"""The greedy plan: several beam searches, and what they found made cheaper by leaving in place what need not move."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, product

import numpy as np

from tenure.rescheduler.heuristic.beam import BeamSearch, Found
from tenure.rescheduler.heuristic.places import PlannedNodes
from tenure.rescheduler.milp.cover_bounds import NEVER, CoverBounds, cheapest
from tenure.rescheduler.problem.definition import Mask, MoveProblem, TaskMove

WIDTH = 16
"""How many half-made plans are kept."""
DOMAINS = 12
"""How many choices of a domain for each group are tried."""
_EACH = 6
"""How many domains of one group are combined with those of others."""


def greedy(problem: MoveProblem, covers: Sequence[CoverBounds], width: int = WIDTH) -> Found | None:
    """Give cost, moves and landings of the cheapest plan found; None if none was.

    Parameters
    ----------
    problem
        The problem.
    covers
        Bounds for each of its asks.
    width
        How many half-made plans are kept: the effort, in steps and not in time.
    """
    best: Found | None = None
    bound = max((int(c.total[-1]) for c in covers), default=0)
    places = PlannedNodes(problem)
    choices = list(islice(_choices(problem, covers), DOMAINS))
    if choices and not bound:  # where it fits as it is, one half-made plan is enough to see it
        found = BeamSearch(places, choices[0], NEVER, 1).run(members_first=True)
        if found is not None and not found[1]:
            return found
    for where in choices:
        for members_first, loops in ((True, False), (False, False), (True, True))[: 3 if width > WIDTH else 2]:
            limit = NEVER if best is None else best[0]
            found = BeamSearch(places, where, limit, width).run(members_first=members_first, loops=loops)
            if found is not None:
                best = spared(problem, found)
            if best is not None and best[0] <= bound:
                return best
    return best


def _choices(problem: MoveProblem, covers: Sequence[CoverBounds]) -> Iterator[list[Mask]]:
    """Where the members of each ask may land: all those of a group in one domain, the most promising first."""
    together = problem.together()
    each = _EACH if len(together) <= _EACH else 2
    ranked = []
    for groups, numbers in together:
        known = np.unique(numbers[numbers >= 0]).tolist()
        inside = [numbers == number for number in known]
        prices = [_price(covers, groups, mask) if len(known) > 1 else 0 for mask in inside]
        found = sorted((price, n) for n, price in enumerate(prices) if price < NEVER)
        ranked.append([(price, inside[n]) for price, n in found[: each if len(together) > 1 else None]])
    choices = product(*(range(len(r)) for r in ranked))
    for choice in sorted(choices, key=lambda c: (sum(ranked[i][n][0] for i, n in enumerate(c)), c)):
        where = [cover.most > 0 for cover in covers]
        for (groups, _), options, n in zip(together, ranked, choice, strict=True):
            where = [
                mask & options[n][1] if ask.group in groups else mask
                for ask, mask in zip(problem.asks, where, strict=True)
            ]
        if all(mask.any() for mask in where):
            yield where


def _price(covers: Sequence[CoverBounds], groups: frozenset[int], inside: Mask) -> int:
    """What the members of some groups cost at least in one domain."""
    mine = [cover for cover in covers if cover.ask.group in groups]
    return sum(int(cheapest(cover.least[inside], cover.ask.count)[-1]) for cover in mine)


def spared(problem: MoveProblem, found: Found) -> Found:
    """Leave in place what need not move: where there is room in the end, or another of its class comes in its stead."""
    cost, moves, landings = found
    room = problem.free.copy()
    for move in moves:
        room[:, move.origin] += problem.ask[problem.shape[move.task]]
        room[:, move.target] -= problem.ask[move.shape]
    for landing in landings:
        room[:, landing.node] -= problem.ask[landing.shape]
    left = {m.task: m for m in moves}
    together: dict[int, int] = {}
    for move in moves:
        unit = int(problem.unit[move.task])
        together[unit] = together.get(unit, 0) + 1
    again = True
    while again:
        again = False
        for move in sorted(left.values(), key=lambda m: (-int(problem.cost[m.task]), m.task)):
            if problem.unit[move.task] >= 0 and together[int(problem.unit[move.task])] > 1:
                continue
            if not _stays(problem, room, left, move):
                continue
            del left[move.task]
            cost -= int(problem.cost[move.task])
            again = True
    return cost, tuple(sorted(left.values(), key=lambda m: m.task)), landings


def _stays(problem: MoveProblem, room: np.ndarray, left: dict[int, TaskMove], move: TaskMove) -> bool:
    """Whether a task can stay after all; if so, room and the other's way are changed accordingly."""
    shape = int(problem.shape[move.task])
    asked = problem.ask[shape]
    if (room[:, move.origin] >= asked).all():
        room[:, move.origin] -= asked
        room[:, move.target] += problem.ask[move.shape]
        return True
    for other in left.values():
        alike = (
            other.target == move.origin and other.shape == shape and problem.cls[other.task] == problem.cls[move.task]
        )
        if alike and other.origin != move.target and other.task != move.task:
            left[other.task] = TaskMove(other.task, other.origin, move.target, move.shape)
            return True
    return False
