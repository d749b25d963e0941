"""The most that queues let go, whoever asks: kept for as long as nothing changes in them.

A queue's ``allocated`` is a new object whenever anything below it changes, and the old one again once that is undone,
so what was worked out holds as long as the object is the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from tenure.engine.queues import Amount, QueueTree
from tenure.victims.holdings import Holdings

Cap = tuple[float, ...]
"""The most that may be taken from a queue, by row of amounts."""

Rows = tuple[int, ...]

Sides = dict[int, dict[int, list[int]]]
"""By the child towards the contender of the ancestor that both share, by the child towards the others: leaves."""


class Caps:
    """The caps of one session's queues."""

    def __init__(self, queues: QueueTree, holdings: Holdings) -> None:
        self.queues = queues
        self.holdings = holdings
        self._largest: dict[int, tuple[Amount, Amount]] = {}
        self._leaves: dict[tuple[int, int, Rows], tuple[Amount, Cap | None]] = {}
        self._sides: dict[int, Sides] = {}

    def sides(self, contender: int) -> Sides:
        """Leaves from which neither a fence nor their policy keeps a contender of a leaf, by where they meet."""
        found = self._sides.get(contender)
        if found is None:
            found = self._sides[contender] = {}
            for leaf in sorted(self.holdings.open_to(contender)):
                mine, theirs = self.queues.meeting(contender, leaf)
                found.setdefault(mine, {}).setdefault(theirs, []).append(leaf)
        return found

    def of_leaf(self, leaf: int, top: int, rows: Rows) -> Cap | None:
        """The most that all queues from a leaf up to ``top`` let go: none may lose what it is guaranteed."""
        key, allocated = (leaf, top, rows), self.queues.allocated[top]
        known = self._leaves.get(key)
        if known is None or known[0] is not allocated:
            known = self._leaves[key] = allocated, self._of_leaf(leaf, top, rows)
        return known[1]

    def _of_leaf(self, leaf: int, top: int, rows: Rows) -> Cap | None:
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
