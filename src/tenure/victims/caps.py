"""The most that queues let go, whoever asks: kept for as long as nothing changes in them.

A queue's ``allocated`` is a new object whenever anything below it changes, and the old one again once that is undone,
so what was worked out holds as long as the object is the same.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from math import inf
from operator import add

import numpy as np
from numpy.typing import NDArray

from tenure.engine.queues import Amount, QueueTree
from tenure.victims.holdings import Holdings

Cap = tuple[float, ...]
"""The most that may be taken from a queue, by row of amounts."""

Rows = tuple[int, ...]

Sides = dict[int, list["Sibling"]]
"""By a queue above a contender: the siblings of that queue, below which something is open to the contender."""


@dataclass(slots=True, eq=False)
class Sibling:
    """A queue, and the leaves below it that are open to some contenders.

    ``_known`` has by rows what they let go, and what the queue held when that was worked out.
    """

    queue: int
    leaves: Sequence[int]
    _known: dict[Rows, tuple[Amount, Below]] = field(default_factory=dict)

    def below(self, caps: Caps, rows: Rows) -> Below:
        """Give what its leaves let go, whoever asks."""
        allocated = caps.queues.allocated[self.queue]
        known = self._known.get(rows)
        if known is None or known[0] is not allocated:
            known = self._known[rows] = allocated, self._below(caps, rows)
        return known[1]

    def _below(self, caps: Caps, rows: Rows) -> Below:
        leaves: dict[int, Cap] = {}
        total: Cap = (0,) * len(caps.queues.resources)
        for leaf in self.leaves:
            held = caps.holdings.held(leaf)
            if any(held) and (own := caps.of_leaf(leaf, self.queue, rows)):
                leaves[leaf] = own
                total = tuple(map(add, total, map(min, held, own)))
        return Below(leaves, total)


@dataclass(slots=True, eq=False)
class Below:
    """What the leaves below a queue let go: each of them at most, and all together."""

    leaves: dict[int, Cap]
    total: Cap
    _on_nodes: dict[int, NDArray[np.float64]] = field(default_factory=dict)

    def on_nodes(self, holdings: Holdings, row: int, count: int, *, capped: bool) -> NDArray[np.float64]:
        """Give what they let go of one resource on each of ``count`` nodes; a cap holds for what queues count."""
        found = self._on_nodes.get(row)
        if found is None:
            entries = [(holdings.entries(leaf), own[row] if capped else inf) for leaf, own in self.leaves.items()]
            nodes = np.concatenate([held.node for held, _ in entries])
            amounts = np.concatenate([np.minimum(held.frees[row], max(0.0, most)) for held, most in entries])
            found = self._on_nodes[row] = np.bincount(nodes, weights=amounts, minlength=count).astype(np.float64)
        return found


class Caps:
    """The caps of one session's queues."""

    def __init__(self, queues: QueueTree, holdings: Holdings) -> None:
        self.queues = queues
        self.holdings = holdings
        self._largest: dict[int, tuple[Amount, Amount]] = {}
        self._sides: dict[int, Sides] = {}
        self._siblings: dict[tuple[int, ...], Sibling] = {}

    def sides(self, contender: int) -> Sides:
        """Where something is open to a contender of a leaf: neither a fence nor a policy keeps it from it."""
        found = self._sides.get(contender)
        if found is None:
            queues, reach = self.queues, self.holdings.open_to(contender)
            found = self._sides[contender] = {}
            for mine in queues.path[contender]:
                siblings = [self._sibling(q, reach) for q in queues.siblings(mine) if q != mine]
                found[mine] = [s for s in siblings if s.leaves]
        return found

    def _sibling(self, queue: int, reach: Collection[int]) -> Sibling:
        """Give the sibling with the leaves that are in reach, the same one for all contenders that reach the same."""
        leaves = tuple(leaf for leaf in self.queues.leaves[queue] if leaf in reach)
        return self._siblings.setdefault((queue, *leaves), Sibling(queue, leaves))

    def of_leaf(self, leaf: int, top: int, rows: Rows) -> Cap | None:
        """The most that all queues from a leaf up to ``top`` let go: none may lose what it is guaranteed."""
        least: Cap | None = None
        for queue in self.queues.path[leaf]:
            cap = self.of_queue(queue, self.queues.guaranteed[queue], rows)
            if cap is None:
                return None
            least = cap if least is None else tuple(map(min, least, cap))
            if queue == top:
                break
        return least

    def of_queue(self, queue: int, limit: Sequence[int], rows: Rows) -> Cap | None:
        """The most that can go while every piece is taken from more than ``limit``; None if nothing.

        Where a single resource is beyond its limit, all but the last piece must fit into what is beyond.
        """
        allocated = self.queues.allocated[queue]
        over = [row for row in rows if allocated[row] > max(0, limit[row])]
        if not over:
            return None
        cap = [inf] * len(allocated)
        if len(over) == 1:
            row = over[0]
            cap[row] = allocated[row] - max(0, limit[row]) - 1 + self._largest_below(queue)[row]
        return tuple(cap)

    def _largest_below(self, queue: int) -> Amount:
        allocated = self.queues.allocated[queue]
        known = self._largest.get(queue)
        if known is None or known[0] is not allocated:
            of_leaves = map(self.holdings.largest, self.queues.leaves[queue])
            known = self._largest[queue] = allocated, tuple(map(max, zip(*of_leaves, strict=True)))
        return known[1]
