"""The least that any set of victims for a demand could cost: what a contender cannot pay need not be searched for.

For one more task to have room on a node, what is missing there has to be freed by pieces that stand there. The cheapest
way to free so much of one resource, where pieces might be taken in parts, is no dearer than any whole pieces that do
it; the least of all nodes is no dearer than any set. Since the cheapest goes first, further tasks cost no less on a
node than the first. Half of a piece may seem cheap where no whole one is, so pieces that are too dear by themselves are
left out.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from copy import copy
from math import inf

import numpy as np
from numpy.typing import NDArray

from tenure.engine.room.nodes import Ints
from tenure.engine.room.slots import fitting
from tenure.engine.state.cost import SECOND
from tenure.victims.bounds.room_demand import RoomDemand
from tenure.victims.candidates.gatherer import VictimCandidates
from tenure.victims.candidates.leaf_candidates import Floats

Bools = NDArray[np.bool_]


class PriceBound:
    """Prices below which no set makes room for a demand, in millionths of a weighted resource-second.

    What prices have grown by in ``waited`` (µs) does not count, see `tenure.shields.patience.counted`.
    """

    def __init__(self, need: RoomDemand, candidates: VictimCandidates, waited: int = 0) -> None:
        self.need = need
        self._where, self._amounts, self._spread, prices, growth = candidates.priced(need.nodes)
        self._prices: Floats = np.maximum(prices - growth * waited / SECOND, 0)

    def least(self, below: float = inf) -> float:
        """Give a price below which no set makes room of pieces that each cost less than ``below``; inf if none does."""
        taken = self._prices < below
        return max((self._for_class(number, taken) for number in range(len(self.need.parts))), default=0.0)

    def least_if_paid(self, too_dear: Callable[[float], bool]) -> float:
        """Give a price below which no set makes room; one with a piece that is too dear counts as that piece alone."""
        least = self.least()
        if least == inf or too_dear(least):
            return least
        prices: list[float] = np.unique(self._prices).tolist()
        first = bisect_left(prices, x=True, key=too_dear)
        return least if first == len(prices) else max(least, min(prices[first], self.least(prices[first])))

    def falls(self, cheaper_at: Ints, until: int) -> list[int]:
        """Give the times before ``until`` at which something that costs anything becomes cheaper, in order."""
        found: list[int] = np.unique(cheaper_at[(self._prices > 0) & (cheaper_at < until)]).tolist()
        return found

    def without(self, free: Bools) -> PriceBound:
        """Give the same bound where some pieces cost nothing."""
        found = copy(self)
        found._prices = np.where(free, 0.0, self._prices)  # noqa: SLF001  of its own class
        return found

    def _for_class(self, number: int, taken: Bools) -> float:
        """Give the least price of room for all tasks of a class."""
        part = self.need.parts[number]
        missing = part.needed - part.count
        if missing <= 0:
            return 0.0
        least = float(self._for_one_more(number, taken, self._prices).min(initial=inf))
        if missing == 1 or least == inf:
            return least
        gains = self._gains(number, taken)
        nodes = np.flatnonzero(gains > 0)
        each = self._for_one_more(number, taken, self._prices / self._spread)[nodes]
        order = np.argsort(each, kind="stable")
        tasks = np.minimum(np.cumsum(gains[nodes][order]), missing)
        if not tasks.size or tasks[-1] < missing:
            return inf
        return max(least, float(each[order] @ np.diff(tasks, prepend=0)))

    def _gains(self, number: int, taken: Bools) -> Ints:
        """Give by node for how many more tasks of a class there is room without all pieces that may be taken."""
        part, nodes = self.need.parts[number], self.need.nodes
        room = nodes.room[nodes.rows :].copy()
        for row, _ in part.asks:
            room[row] += np.bincount(self._where[taken], self._amounts[row][taken], len(nodes)).astype(np.int64)
        return fitting(room, part.asks, part.static) - part.per_node

    def _for_one_more(self, number: int, taken: Bools, prices: Floats) -> Floats:
        """Give by node the least price of room for one more task of a class; inf where there is none."""
        part, nodes = self.need.parts[number], self.need.nodes
        open_to = part.static & (part.per_node >= 0)
        least = np.where(open_to, 0.0, inf)
        where, prices = self._where[taken], prices[taken]
        for row, amount in part.asks:
            missing = (part.per_node + 1) * amount - nodes.room[nodes.rows + row]
            np.maximum(least, _by_node(missing, where, self._amounts[row][taken], prices), out=least)
        return least


def _by_node(missing: Ints, where: Ints, freed: Ints, prices: Floats) -> Floats:
    """Give by node the price of freeing what is missing of one resource, the cheapest for its amount first."""
    found: Floats = np.where(missing > 0, np.inf, 0.0)
    useful = np.flatnonzero((freed > 0) & (missing[where] > 0))
    if not useful.size:
        return found
    each = prices[useful] / freed[useful]
    order = useful[np.lexsort((each, where[useful]))]
    node, amount, price = where[order], freed[order], prices[order]
    first = np.flatnonzero(np.r_[True, node[1:] != node[:-1]])
    size = np.diff(np.r_[first, node.size])
    amount_before = np.cumsum(amount) - amount
    price_before = np.cumsum(price) - price
    amount_before -= np.repeat(amount_before[first], size)
    price_before = price_before - np.repeat(price_before[first], size)
    left = missing[node] - amount_before
    last = (left > 0) & (left <= amount)  # the piece with which there is enough
    found[node[last]] = price_before[last] + price[last] * (left[last] / amount[last])
    return found
