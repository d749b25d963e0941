"""Cover bounds: the least that has to be moved off a node so that so many members fit there (design: exact plans).

They ignore where what is moved would land, and what it would take along, so they bound every plan from below. As the
linear relaxation of making room is worthless (it removes a part of everything), these bounds carry the whole proof.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tenure.rescheduler.milp.node_tasks import NodeTasks
from tenure.rescheduler.problem.definition import Ints, Mask, MoveProblem, PendingMembers

NEVER = 1 << 50
"""Cost of what cannot be had."""

ENUMERATED = 11
"""Up to so many tasks on a node, all sets of them are looked at; beyond, each resource alone bounds the cost."""
_CHUNK = 1 << 21


class CoverBounds:
    """Bounds for one entry of `Problem.asks`; ``there`` is what several of them share, if it has been made.

    ``least`` is ``int64[nodes, members + 1]``: what ``m`` members on a node cost at least, `NEVER` where so many never
    fit. ``total`` is ``int64[count + 1]``: what ``m`` members anywhere cost at least.
    """

    def __init__(self, problem: MoveProblem, ask: PendingMembers, there: NodeTasks | None = None) -> None:
        self.problem = problem
        self.ask = ask
        self.there = there = NodeTasks(problem) if there is None else there
        self.most = _most(problem, ask, there)
        width = int(min(self.most.max(initial=0), ask.count))
        self.least = np.full((problem.size, width + 1), NEVER, np.int64)
        self.least[:, 0] = 0
        self._fill(np.flatnonzero(self.most > 0))
        domains = problem.domain[ask.group]
        self.total = np.full(ask.count + 1, NEVER, np.int64)
        for number in np.unique(domains[domains >= 0]).tolist():
            found = cheapest(self.least[domains == number], ask.count)
            self.total = np.minimum(self.total, found)

    def _fill(self, nodes: Ints) -> None:
        """Work out ``least`` for all nodes: exactly where the tasks are few, else by a bound."""
        shapes, there = self.problem.shapes[self.ask.cls], self.there
        many = there.count[nodes] > ENUMERATED
        for part, tasks in there.rows(nodes[many]):
            self._bound_singly(part, tasks)
        few = nodes[~many]
        for part, tasks in there.rows(few):
            shape, row = self._pairs(part)
            step = max(1, _CHUNK // max(1, tasks.shape[1] * there.ask.shape[1]))
            for first in range(0, len(row), step):
                some = row[first : first + step]
                self._cover(there.ask[shape[first : first + step]], part[some], tasks[some])
        if len(shapes) > 1:  # members may mix shapes: bounded by each resource's smallest ask
            self.least[few, 2:] = np.minimum(self.least[few, 2:], self.least[few, 1:2])

    def _pairs(self, nodes: Ints) -> tuple[Ints, Ints]:
        """Give each shape with each of the nodes on which it may cost something: shapes, and places in ``nodes``.

        A shape costs nothing where there is room for the most members as it is; then no other is looked at there. One
        that does not fit once all have left is not to be had.
        """
        shapes, there = np.array(self.problem.shapes[self.ask.cls], np.int64), self.there
        asked = there.ask[shapes][:, :, None]
        most = np.minimum(self.most[nodes], self.least.shape[1] - 1)
        allowed = self.problem.allowed[shapes][:, nodes]
        fits = np.asarray((most * asked <= there.free[:, nodes]).all(axis=1) & allowed)
        free: Mask = np.asarray(fits.any(axis=0), bool)
        for node, members in zip(nodes[free], most[free], strict=True):
            self.least[node, 1 : members + 1] = 0
        shape, row = np.nonzero(allowed & ~free & (asked <= there.emptied[:, nodes]).all(axis=1))
        return shapes[shape], row

    def _cover(self, ask: Ints, nodes: Ints, tasks: Ints) -> None:
        """The cheapest tasks that have to go for shapes on nodes with few tasks, row by row.

        ``ask`` is ``int64[rows, kinds]``, ``nodes`` ``int64[rows]``, ``tasks`` ``int64[rows, tasks]``. Only what is
        short for the most members counts, and only tasks that free some of that.
        """
        free = self.there.free[:, nodes].T
        most = np.minimum(self.most[nodes], self.least.shape[1] - 1)
        short: Mask = np.asarray(most[:, None] * ask > free, bool)
        takes = np.where((tasks >= 0)[:, :, None], self.there.takes[tasks], 0)
        cost = self.problem.cost[tasks]
        useful: Mask = np.asarray(((takes > 0) & short[:, None, :]).any(axis=2), bool)
        kind = short.argmax(axis=1)
        alone = np.take_along_axis(takes, kind[:, None, None], axis=2)[:, :, 0]
        equal = (alone == 0) | (alone == alone.max(axis=1, initial=0)[:, None])
        scarce = short.sum(axis=1)
        simple: Mask = np.asarray((scarce == 0) | ((scarce == 1) & equal.all(axis=1)), bool)
        every = np.arange(len(nodes))
        missing = np.arange(1, self.least.shape[1])[:, None] * ask[every, kind] - free[every, kind]
        price = _of_equals(np.where(useful, alone, 0)[simple], cost[simple], missing[:, simple])
        self._put(nodes[simple], most[simple], price)
        number = np.where(simple, -1, useful.sum(axis=1))
        for many in np.unique(number[number >= 0]).tolist():
            rows = np.flatnonzero(number == many)
            chosen = np.argsort(~useful[rows], axis=1, kind="stable")[:, :many]
            kinds = np.flatnonzero(short[rows].any(axis=0))
            step = max(1, _CHUNK // ((1 << many) * len(kinds)))
            for first in range(0, len(rows), step):
                part, index = rows[first : first + step], chosen[first : first + step]
                freed = np.take_along_axis(takes[part][:, :, kinds], index[:, :, None], axis=1)
                price = _of_sets(
                    free[part][:, kinds], ask[part][:, kinds], freed, np.take_along_axis(cost[part], index, axis=1),
                    self.least.shape[1] - 1,
                )  # fmt: skip
                self._put(nodes[part], most[part], price)

    def _put(self, nodes: Ints, most: Ints, price: Ints) -> None:
        """Write down what members cost on some nodes, if that is less: ``int64[members, rows]``, up to the most."""
        for members, found in enumerate(price, 1):
            np.minimum.at(self.least[:, members], nodes, np.where(members <= most, found, NEVER))

    def _bound_singly(self, nodes: Ints, tasks: Ints) -> None:
        """A bound from one resource at a time: the cheapest part of tasks that frees enough of it."""
        there, most = self.there, np.minimum(self.most[nodes], self.least.shape[1] - 1)
        asks = there.ask[list(self.problem.shapes[self.ask.cls])].min(axis=0)
        bound = np.zeros((self.least.shape[1] - 1, len(nodes)), np.int64)
        for row, asked in enumerate(asks.tolist()):
            free = there.free[row, nodes]
            if (most * asked <= free).all():
                continue
            frees = np.where(tasks >= 0, there.takes[tasks, row], 0)
            cover = _FractionalCover(frees, self.problem.cost[tasks])
            for members, known in enumerate(bound, 1):
                np.maximum(known, cover.least(members * asked - free), out=known)
        for members, found in enumerate(bound, 1):
            inside = members <= most
            self.least[nodes[inside], members] = found[inside]


def bounds_of(problem: MoveProblem) -> list[CoverBounds]:
    """Give the bounds of all asks of a problem."""
    there = NodeTasks(problem)
    return [CoverBounds(problem, ask, there) for ask in problem.asks]


def _most(problem: MoveProblem, ask: PendingMembers, there: NodeTasks) -> Ints:
    """How many members fit on each node if everything that may be moved left it."""
    emptied = there.emptied
    most = np.zeros(problem.size, np.int64)
    for shape in problem.shapes[ask.cls]:
        asked = there.ask[shape]
        rows = np.flatnonzero(asked > 0)
        fit = (emptied[rows] // asked[rows][:, None]).min(axis=0) if len(rows) else np.full(problem.size, ask.count)
        fit = np.where(problem.allowed[shape] & (emptied >= 0).all(axis=0), np.maximum(fit, 0), 0)
        most += fit
    most[problem.domain[ask.group] < 0] = 0
    return np.minimum(most, ask.count)


def _of_equals(frees: Ints, cost: Ints, missing: Ints) -> Ints:
    """Give the price of what is ``missing`` of one resource where each task that frees any frees as much.

    ``frees`` and ``cost`` are ``int64[nodes, tasks]``, ``missing`` and the price ``int64[members, nodes]``.
    """
    each = np.maximum(frees.max(axis=1, initial=0), 1)
    wanted = -(-np.maximum(missing, 0) // each)
    there = (frees > 0).sum(axis=1)
    sums = np.zeros((len(frees), frees.shape[1] + 1), np.int64)
    np.cumsum(np.sort(np.where(frees > 0, cost, NEVER), axis=1), axis=1, out=sums[:, 1:])
    price = sums[np.arange(len(frees)), np.minimum(wanted, there)]
    found: Ints = np.where(wanted > there, NEVER, price)
    return found


def _of_sets(free: Ints, ask: Ints, freed: Ints, cost: Ints, width: int) -> Ints:
    """Give the price of members by trying all sets of tasks: ``int64[members, rows]``.

    ``free`` and ``ask`` are ``int64[rows, kinds]``, ``freed`` is ``int64[rows, tasks, kinds]``, ``cost``
    ``int64[rows, tasks]``.
    """
    price = sums_of_sets(cost[:, :, None])[:, :, 0]
    room = free[:, None, :] + sums_of_sets(freed)
    found = np.full((width, len(cost)), NEVER, np.int64)
    for members in range(1, width + 1):
        fits = (room >= (members * ask)[:, None, :]).all(axis=2)
        found[members - 1] = np.where(fits, price, NEVER).min(axis=1)
    return found


class _FractionalCover:
    """The cheapest parts of tasks that free enough of one resource, node by node: ``int64[nodes, tasks]`` each."""

    def __init__(self, frees: Ints, cost: Ints) -> None:
        rate = np.divide(cost, frees, out=np.full(frees.shape, np.inf), where=frees > 0)
        order = np.argsort(rate, axis=1, kind="stable")
        self.frees, self.cost = (np.take_along_axis(of, order, axis=1) for of in (frees, cost))
        self.sums, self.prices = np.cumsum(self.frees, axis=1), np.cumsum(self.cost, axis=1)

    def least(self, missing: Ints) -> Ints:
        """Cost, rounded up, of covering ``missing`` on each node; `NEVER` if all together do not do."""
        found = np.where(missing > 0, NEVER, 0)
        some = np.flatnonzero((missing > 0) & (self.sums[:, -1] >= missing))
        missing = missing[some]
        last = (self.sums[some] < missing[:, None]).sum(axis=1)
        before = np.maximum(last - 1, 0)
        rest = missing - np.where(last > 0, self.sums[some, before], 0)
        whole = np.where(last > 0, self.prices[some, before], 0)
        found[some] = whole + _part(self.cost[some, last], rest, self.frees[some, last])
        return found


def _part(cost: Ints, part: Ints, of: Ints) -> Ints:
    """Cost of a part of something, rounded up; the remainder is multiplied in Python where it might not fit."""
    if int(of.max(initial=1)) < 1 << 31:
        return np.asarray(cost // of * part - (-(cost % of * part) // of), np.int64)
    figures = zip(cost.tolist(), part.tolist(), of.tolist(), strict=True)
    return np.array([-(-price * some // whole) for price, some, whole in figures], np.int64)


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
    each = np.diff(useful, axis=1)
    ends = useful[:, 1:] >= NEVER
    if (ends[:, 1:] | (each[:, 1:] >= each[:, :-1])).all() and (ends[:, 1:] >= ends[:, :-1]).all():
        prices = np.sort(each[~ends])[:count]  # each further member of a node costs no less than the one before
        total[1 : len(prices) + 1] = np.minimum(np.cumsum(prices), NEVER)
        return total
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
