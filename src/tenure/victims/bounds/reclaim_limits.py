"""The most that queues let go to any contender: kept for as long as nothing changes in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf

import numpy as np
from numpy.typing import NDArray

from tenure.engine.memo import Memo
from tenure.engine.state.queues import QueueTree
from tenure.victims.candidates.preemptible_usage import PreemptibleUsage

Cap = tuple[float, ...]
"""The most that may be taken from a queue, by row of amounts."""

Rows = tuple[int, ...]

Siblings = dict[int, list["SiblingLimits"]]
"""By a queue above a contender: the siblings of that queue, below which something is open to the contender."""


@dataclass(frozen=True, slots=True, eq=False)
class SiblingLimits:
    """A queue, and the leaves below it that are open to some contenders; ``children`` are those with such leaves."""

    queue: int
    children: Sequence[SiblingLimits]


@dataclass(slots=True)
class SubtreeLimits:
    """The limits on what the leaves below a queue let go: each of them, all together, and the queue itself."""

    leaves: dict[int, Cap]
    total: Cap
    cap: Cap
    _on_nodes: dict[int, NDArray[np.float64]] = field(default_factory=dict, compare=False)

    def on_nodes(self, holdings: PreemptibleUsage, row: int, count: int) -> NDArray[np.float64]:
        """Give what they let go of one resource on each of ``count`` nodes."""
        found = self._on_nodes.get(row)
        if found is None:
            nodes, amounts = [np.zeros(0, np.int64)], [np.zeros(0)]
            for leaf, own in self.leaves.items():
                held = holdings.entries(leaf)
                nodes.append(held.node)
                amounts.append(np.minimum(held.frees[row], max(0.0, own[row])))
            sums = np.bincount(np.concatenate(nodes), weights=np.concatenate(amounts), minlength=count)
            found = self._on_nodes[row] = np.minimum(sums, max(0.0, self.cap[row]))
        return found


class ReclaimLimits:
    """The caps of one session's queues.

    ``below`` gives what the leaves below a sibling let go to any contender; preemptible usage has to be caught up.
    """

    def __init__(self, queues: QueueTree, holdings: PreemptibleUsage) -> None:
        self.queues = queues
        self.holdings = holdings
        versions = queues.versions
        self.below = Memo[tuple[SiblingLimits, Rows], SubtreeLimits](
            lambda pair: self._below(*pair), lambda pair: versions[pair[0].queue]
        )
        self._siblings: dict[tuple[int, frozenset[int]], SiblingLimits | None] = {}

    def siblings(self, contender: int) -> Siblings:
        """Where something is open to a contender of a leaf: neither a fence nor a policy keeps it from it."""
        queues, reach = self.queues, self.holdings.open_to(contender)
        return {
            mine: [s for q in queues.siblings(mine) if q != mine and (s := self._sibling(q, reach)) is not None]
            for mine in queues.path[contender]
        }

    def _sibling(self, queue: int, reach: frozenset[int]) -> SiblingLimits | None:
        """Give a queue with what is in reach below it, the same one for all who reach the same; None for nothing."""
        key = queue, reach
        if key not in self._siblings:
            below = (self._sibling(child, reach) for child in self.queues.children[queue])
            children = [s for s in below if s is not None]
            self._siblings[key] = SiblingLimits(queue, children) if children or queue in reach else None
        return self._siblings[key]

    def _below(self, sibling: SiblingLimits, rows: Rows) -> SubtreeLimits:
        """None of the queues from a leaf up to this one may lose what it is guaranteed."""
        queue, none = sibling.queue, (0,) * len(self.queues.resources)
        cap = self.of_queue(queue, self.queues.guaranteed[queue], rows)
        if cap is None:
            return SubtreeLimits({}, none, none)
        if self.queues.leaf[queue]:
            held = self.holdings.held(queue)
            return SubtreeLimits({queue: cap} if any(held) else {}, tuple(map(min, held, cap)), cap)
        parts = [part for child in sibling.children if (part := self.below((child, rows))).leaves]
        leaves = {leaf: tuple(map(min, own, cap)) for part in parts for leaf, own in part.leaves.items()}
        total = tuple(map(min, cap, map(sum, zip(none, *(part.total for part in parts), strict=True))))
        return SubtreeLimits(leaves, total, cap)

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
            largest = self.holdings.largest(self.queues.leaves[queue], row)
            cap[row] = allocated[row] - max(0, limit[row]) - 1 + largest
        return tuple(cap)
