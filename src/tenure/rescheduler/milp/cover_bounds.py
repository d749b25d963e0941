"""Cover bounds: the least that has to be moved off a node so that so many members fit there (design: exact plans).

They ignore where what is moved would land, and what it would take along, so they bound every plan from below. As the
linear relaxation of making room is worthless (it removes a part of everything), these bounds carry the whole proof.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from numpy.typing import NDArray

from tenure.rescheduler.problem.definition import Ints, MoveProblem, PendingMembers

NEVER = 1 << 50
"""Cost of what cannot be had."""

ENUMERATED = 11
"""Up to so many tasks on a node, all sets of them are looked at; beyond, each resource alone bounds the cost."""
_CHUNK = 1 << 21


class CoverBounds:
    """Bounds for one entry of `Problem.asks`.

    ``least`` is ``int64[nodes, members + 1]``: what ``m`` members on a node cost at least, `NEVER` where so many never
    fit. ``total`` is ``int64[count + 1]``: what ``m`` members anywhere cost at least.
    """

    def __init__(self, problem: MoveProblem, ask: PendingMembers) -> None:
        self.problem = problem
        self.ask = ask
        self.most = _most(problem, ask)
        width = int(min(self.most.max(initial=0), ask.count))
        self.least = np.full((problem.size, width + 1), NEVER, np.int64)
        self.least[:, 0] = 0
        takes = problem.takes()
        tasks_of = [np.zeros(0, np.int64)] * problem.size
        order = np.argsort(problem.node, kind="stable")
        places = np.searchsorted(problem.node[order], np.arange(problem.size + 1))
        for node in range(problem.size):
            tasks_of[node] = order[places[node] : places[node + 1]]
        self._fill(takes, tasks_of, width)
        domains = problem.domain[ask.group]
        self.total = np.full(ask.count + 1, NEVER, np.int64)
        for number in np.unique(domains[domains >= 0]).tolist():
            found = cheapest(self.least[domains == number], ask.count)
            self.total = np.minimum(self.total, found)

    def _fill(self, takes: Ints, tasks_of: list[Ints], width: int) -> None:
        """Work out ``least`` for all nodes, those with the same number of tasks together."""
        problem = self.problem
        by_number: dict[int, list[int]] = defaultdict(list)
        for node in np.flatnonzero(self.most > 0).tolist():
            by_number[len(tasks_of[node])].append(node)
        for number, nodes in sorted(by_number.items()):
            if number > ENUMERATED:
                for node in nodes:
                    self._bound_singly(node, takes[tasks_of[node]], problem.cost[tasks_of[node]])
                continue
            step = max(1, _CHUNK // ((1 << number) * max(1, takes.shape[1])))
            for first in range(0, len(nodes), step):
                part = nodes[first : first + step]
                index = np.array([tasks_of[n] for n in part], np.int64).reshape(len(part), number)
                price = sums_of_sets(problem.cost[index][:, :, None])[:, :, 0]
                self._fill_chunk(np.array(part), sums_of_sets(takes[index]), price, width)

    def _fill_chunk(self, nodes: Ints, freed: Ints, price: Ints, width: int) -> None:
        problem = self.problem
        room = problem.free[:, nodes].T[:, None, :] + freed
        for shape in problem.shapes[self.ask.cls]:
            ask = problem.ask[shape]
            for members in range(1, width + 1):
                fits = (room >= members * ask).all(axis=2) & problem.allowed[shape, nodes][:, None]
                best = np.where(fits, price, NEVER).min(axis=1)
                self.least[nodes, members] = np.minimum(self.least[nodes, members], best)
        if len(problem.shapes[self.ask.cls]) > 1:  # members may mix shapes: bounded by each resource's smallest ask
            self.least[nodes, 2:] = np.minimum(self.least[nodes, 2:], self.least[nodes, 1:2])

    def _bound_singly(self, node: int, takes: Ints, cost: Ints) -> None:
        """A bound from one resource at a time: the cheapest part of tasks that frees enough of it."""
        problem = self.problem
        asks = problem.ask[list(problem.shapes[self.ask.cls])].min(axis=0)
        for members in range(1, min(self.least.shape[1] - 1, int(self.most[node])) + 1):
            bound = 0
            for row, missing in enumerate((members * asks - problem.free[:, node]).tolist()):
                if missing > 0:
                    bound = max(bound, _fractional(takes[:, row], cost, missing))
            self.least[node, members] = bound


def _most(problem: MoveProblem, ask: PendingMembers) -> Ints:
    """How many members fit on each node if everything that may be moved left it."""
    emptied = problem.free.copy()
    np.add.at(emptied.T, problem.node, problem.takes())
    most = np.zeros(problem.size, np.int64)
    for shape in problem.shapes[ask.cls]:
        asked = problem.ask[shape]
        rows = np.flatnonzero(asked > 0)
        fit = (emptied[rows] // asked[rows][:, None]).min(axis=0) if len(rows) else np.full(problem.size, ask.count)
        fit = np.where(problem.allowed[shape] & (emptied >= 0).all(axis=0), np.maximum(fit, 0), 0)
        most += fit
    most[problem.domain[ask.group] < 0] = 0
    return np.minimum(most, ask.count)


def _fractional(frees: Ints, cost: Ints, missing: int) -> int:
    """Cost, rounded up, of the cheapest fractional cover of ``missing``; `NEVER` if all together do not do."""
    useful = np.flatnonzero(frees > 0)
    order = useful[np.argsort(cost[useful] / frees[useful], kind="stable")]
    sums = np.cumsum(frees[order])
    if not len(sums) or sums[-1] < missing:
        return NEVER
    last = int(np.searchsorted(sums, missing))
    whole = int(cost[order[:last]].sum())
    rest = missing - (int(sums[last - 1]) if last else 0)
    return whole - (-int(cost[order[last]]) * rest // int(frees[order[last]]))


def subsets(number: int) -> Ints:
    """All sets of ``number`` things: ``int64[2 ** number, number]`` of zeros and ones."""
    return (np.arange(1 << number)[:, None] >> np.arange(number)) & 1


def sums_of_sets(of: Ints) -> Ints:
    """Add up all sets of things, in the order of `subsets`: ``int64[nodes, things, rows]`` to ``[nodes, sets, rows]``.

    The sets with a thing are those of the things before it, with it: one sum for each set.
    """
    nodes, number, rows = of.shape
    sums = np.zeros((nodes, 1 << number, rows), np.int64)
    for thing in range(number):
        here = 1 << thing
        np.add(sums[:, :here], of[:, thing, None], out=sums[:, here : 2 * here])
    return sums


def cheapest(least: Ints, count: int) -> Ints:
    """Give the least cost of ``m`` members over all nodes, for every ``m`` up to ``count``.

    Parameters
    ----------
    least
        ``int64[nodes, members + 1]``.
    count
        How many.
    """
    total = np.full(count + 1, NEVER, np.int64)
    total[0] = 0
    width = least.shape[1] - 1
    if width <= 0 or not count:
        return total
    if width == 1:
        prices = np.sort(least[:, 1])[:count]
        total[1 : len(prices) + 1] = np.minimum(np.cumsum(prices), NEVER)
        return total
    useful = least[(least[:, 1:] < NEVER).any(axis=1)]
    for row in _best_rows(useful, count):
        before = total.copy()
        for members in range(1, min(width, count) + 1):
            if row[members] < NEVER:
                total[members:] = np.minimum(total[members:], before[: count + 1 - members] + row[members])
    return np.minimum(total, NEVER)


def _best_rows(least: Ints, count: int) -> NDArray[np.int64]:
    """Nodes that can be in a cheapest choice: for some number of members among the ``count`` cheapest."""
    keep = np.zeros(len(least), bool)
    for members in range(1, least.shape[1]):
        keep[np.argsort(least[:, members], kind="stable")[:count]] = True
    rows: NDArray[np.int64] = least[keep]
    return rows
