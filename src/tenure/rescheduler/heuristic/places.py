"""Nodes as they become while a plan is searched: what has left, what has arrived, and what one more would cost there.

A node in one condition is a *place*. Places are numbered as they are met, and what is found out about one is kept, as
a search comes back to the same few of them again and again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from operator import le
from typing import NamedTuple

import numpy as np

from tenure.rescheduler.milp.cover_bounds import ENUMERATED, NEVER, CoverBounds, subsets
from tenure.rescheduler.milp.node_tasks import NodeTasks
from tenure.rescheduler.problem.definition import Ints, MoveProblem, PendingMembers

SETS = 4
"""How many sets of tasks are considered for making room at one place."""


class PlacementOption(NamedTuple):
    """A way to take in one of a class at a place: who leaves for it, at which price, and the place that results."""

    price: int
    shape: int
    gone: tuple[int, ...]
    place: int


class PlannedNode(NamedTuple):
    """A node with the tasks that may still leave it, and the room on it."""

    node: int
    tasks: tuple[int, ...]
    room: tuple[int, ...]


class PlannedNodes:
    """The states of nodes that a search for a plan has met so far.

    Those numbered below `Problem.size` are the nodes before any move.
    """

    def __init__(self, problem: MoveProblem) -> None:
        self.problem = problem
        self.takes = problem.takes()
        self._taken: list[list[int]] = self.takes.tolist()
        order = np.argsort(problem.node, kind="stable")
        bounds = np.searchsorted(problem.node[order], np.arange(problem.size + 1))
        rooms = problem.free.T.tolist()
        self.places = [
            PlannedNode(node, tuple(order[bounds[node] : bounds[node + 1]].tolist()), tuple(rooms[node]))
            for node in range(problem.size)
        ]
        self._numbers = {place: number for number, place in enumerate(self.places)}
        self._asked: list[list[int]] = problem.ask.tolist()
        self._most: list[tuple[int, ...]] = []
        self._options: dict[tuple[int, int], tuple[PlacementOption, ...]] = {}
        self._prices: dict[int, Ints] = {}
        self._ranked: dict[int, list[tuple[int, int]]] = {}
        self._snug: dict[int, list[int]] = {}
        self._anywhere = replace(problem, domain=np.zeros((1, problem.size), np.int64))
        self._there = NodeTasks(problem)
        self.scale = np.maximum(1, problem.ask.max(axis=0, initial=1))
        self.bulk = (problem.ask / self.scale).sum(axis=1)

    def prices(self, kind: int) -> Ints:
        """What one of a kind needs to have moved off each node at least, before any move: ``int64[nodes]``."""
        if kind not in self._prices:
            cls = kind >> 1
            problem = self._anywhere
            if not kind & 1:
                problem = replace(problem, cost=np.where(problem.cls == cls, NEVER, problem.cost))
            least = CoverBounds(problem, PendingMembers(group=0, cls=cls, count=1), self._there).least
            never = np.full(self.problem.size, NEVER, np.int64)
            self._prices[kind] = np.minimum(least[:, 1], NEVER) if least.shape[1] > 1 else never
        return self._prices[kind]

    def ranked(self, kind: int) -> list[tuple[int, int]]:
        """Prices and nodes where one of a class might land, the cheapest first, as they are before any move."""
        if kind not in self._ranked:
            prices = self.prices(kind)
            order = np.argsort(prices, kind="stable")
            order = order[prices[order] < NEVER]
            self._ranked[kind] = list(zip(prices[order].tolist(), order.tolist(), strict=True))
        return self._ranked[kind]

    def snug(self, kind: int) -> list[int]:
        """Nodes where one of a class fits as it is, the one with the least room left over first."""
        if kind not in self._snug:
            nodes = np.flatnonzero(self.prices(kind) == 0)
            left = (self.problem.free[:, nodes] / self.scale[:, None]).sum(axis=0)
            self._snug[kind] = nodes[np.argsort(left, kind="stable")].tolist()
        return self._snug[kind]

    def number(self, place: PlannedNode) -> int:
        """Give the number of a place, a new one if it was not met before."""
        found = self._numbers.setdefault(place, len(self.places))
        if found == len(self.places):
            self.places.append(place)
        return found

    def without(self, number: int, tasks: tuple[int, ...]) -> int:
        """Give the place that results when tasks leave."""
        place = self.places[number]
        room = tuple(map(sum, zip(place.room, *(self._taken[task] for task in tasks), strict=True)))
        return self.number(PlannedNode(place.node, tuple(t for t in place.tasks if t not in tasks), room))

    def options(self, number: int, kind: int) -> tuple[PlacementOption, ...]:
        """Ways to take one of a class in, the cheapest first; nothing leaves where there is room."""
        key = (number, kind)
        if key not in self._options:
            self._options[key] = self._options_at(number, kind)
        return self._options[key]

    def _options_at(self, number: int, kind: int) -> tuple[PlacementOption, ...]:
        problem, place, most = self.problem, self.places[number], self._emptied(number)
        allowed = problem.allowed[:, place.node]
        shapes = [s for s in problem.shapes[kind >> 1] if allowed[s] and all(map(le, self._asked[s], most))]
        fits = [s for s in shapes if all(map(le, self._asked[s], place.room))]
        if fits:
            return (self._option(place, min(fits), (), 0),)
        found: list[PlacementOption] = []
        for shape in shapes:
            found += self._of_shape(place, shape, -1 if kind & 1 else kind >> 1)
        found.sort(key=lambda o: (o.price, len(o.gone), o.shape))
        return tuple(found[:SETS])

    def _emptied(self, number: int) -> tuple[int, ...]:
        """Give the room that a place would have if all left: most places are too small for most."""
        while len(self._most) <= number:
            place = self.places[len(self._most)]
            freed = self.takes[list(place.tasks)].sum(axis=0).tolist()
            self._most.append(tuple(have + more for have, more in zip(place.room, freed, strict=True)))
        return self._most[number]

    def _of_shape(self, place: PlannedNode, shape: int, alike: int) -> list[PlacementOption]:
        problem = self.problem
        missing = [need - have for need, have in zip(self._asked[shape], place.room, strict=True)]
        rows = [row for row, short in enumerate(missing) if short > 0]
        useful = [t for t in place.tasks if problem.cls[t] != alike and any(self.takes[t, row] > 0 for row in rows)]
        if not useful:
            return []
        useful.sort(key=lambda t: (int(problem.cost[t]), t))
        found: list[PlacementOption] = []
        kinds = set()
        for gone in self._sets(useful, rows, [missing[row] for row in rows]):
            kind = tuple(sorted((int(problem.cls[t]), int(problem.unit[t])) for t in gone))
            if kind not in kinds:
                kinds.add(kind)
                found.append(self._option(place, shape, gone, int(problem.cost[list(gone)].sum())))
            if len(found) == SETS:
                break
        return found

    def _sets(self, useful: list[int], rows: list[int], missing: list[int]) -> Iterator[tuple[int, ...]]:
        """Sets of which no part is enough, the cheapest first; of many tasks, sets that are cheap."""
        frees, prices = self.takes[useful][:, rows], self.problem.cost[useful]
        wanted = np.array(missing, np.int64)
        if len(useful) > ENUMERATED:
            if (frees.sum(axis=0) < wanted).any():
                return
            worth = prices / (frees / wanted).clip(max=1.0).sum(axis=1)
            for order in (np.argsort(worth, kind="stable"), np.arange(len(useful))):
                yield tuple(sorted(useful[i] for i in _enough(frees, wanted, order)))
            useful, frees, prices = useful[:ENUMERATED], frees[:ENUMERATED], prices[:ENUMERATED]
        chosen = subsets(len(useful))
        enough = np.flatnonzero((chosen @ frees >= wanted).all(axis=1))
        kept: list[int] = []
        for mask in enough[np.argsort(chosen[enough] @ prices, kind="stable")].tolist():
            if not any(mask & smaller == smaller for smaller in kept):
                kept.append(mask)
                yield tuple(t for bit, t in enumerate(useful) if mask >> bit & 1)

    def _option(self, place: PlannedNode, shape: int, gone: tuple[int, ...], price: int) -> PlacementOption:
        freed = self.takes[list(gone)].sum(axis=0) if gone else 0
        room = tuple((np.array(place.room, np.int64) - self.problem.ask[shape] + freed).tolist())
        left = tuple(t for t in place.tasks if t not in gone)
        return PlacementOption(price, shape, gone, self.number(PlannedNode(place.node, left, room)))


def _enough(frees: Ints, wanted: Ints, order: Ints) -> list[int]:
    """Take rows in an order until they are enough, then put back what is not needed, the last taken first."""
    sums = np.cumsum(frees[order], axis=0)
    taken: list[int] = order[: int(np.argmax((sums >= wanted).all(axis=1))) + 1].tolist()
    beyond = frees[taken].sum(axis=0) - wanted
    for row in reversed(taken[:-1]):
        if (frees[row] <= beyond).all():
            taken.remove(row)
            beyond = beyond - frees[row]
    return taken
