"""The least that any set of victims for a demand could cost: what a contender cannot pay need not be searched for.

For one more task to have room on a node, what is missing there has to be freed by pieces that stand there. The cheapest
way to free so much of one resource, where pieces might be taken in parts, is no dearer than any whole pieces that do
it; the least of all nodes is no dearer than any set.
"""

from __future__ import annotations

import numpy as np

from tenure.engine.cost import SECOND
from tenure.engine.nodes import Ints
from tenure.victims.candidates import VictimCandidates
from tenure.victims.leaf_candidates import Floats
from tenure.victims.room_bounds import RoomDemand


def least_price(need: RoomDemand, candidates: VictimCandidates, waited: int = 0) -> float:
    """Give a price below which no set makes room, in millionths of a weighted resource-second; inf if none does.

    What prices have grown by in ``waited`` (µs) does not count, see `tenure.shields.patience.counted`.
    """
    where, amounts, prices, growth = candidates.priced(need.nodes)
    prices = np.maximum(prices - growth * waited / SECOND, 0)
    return max((_for_one_more(need, n, where, amounts, prices) for n in range(len(need.parts))), default=0.0)


def _for_one_more(need: RoomDemand, number: int, where: Ints, amounts: Ints, prices: Floats) -> float:
    """Give the least price of room for one more task of a class."""
    part, nodes = need.parts[number], need.nodes
    if part.count >= part.needed:
        return 0.0
    open_to = part.cls.static & (part.per_node >= 0)
    least = np.where(open_to, 0.0, np.inf)
    for row, amount in part.asks:
        missing = (part.per_node + 1) * amount - nodes.room[nodes.rows + row]
        np.maximum(least, _by_node(missing, where, amounts[row], prices), out=least)
    return float(least.min(initial=np.inf))


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
