"""Precedence: which classes of contenders are more deserving than which kinds of candidates, all at once.

Candidates that stand alike are of one kind: same leaf, same priority, the same amount that goes and that is then asked
for again. Keys of the queue order are compared as ranks, so that one comparison of arrays answers for all.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import numpy as np

from tenure.engine.room.nodes import Ints
from tenure.engine.serving.order import Key, queue_key
from tenure.engine.state.session import Session
from tenure.fairness.current import CurrentShares
from tenure.requeue.candidates import CandidateKind, RequeueCandidate
from tenure.requeue.pending_index import ContenderClass
from tenure.requeue.room import Mask

LAST_NAME = "\U0010ffff"
"""Behind every name of a queue."""

OWN, OTHER = -1, -2
"""Where a path is shorter than the deepest: of a candidate, of a contender."""


class Precedence:
    """Classes of contenders against kinds of candidates.

    ``kind`` numbers the kind of each candidate. Of one that may go in parts only a bound is known: a contender that
    could be more deserving than any part of it counts as such.
    """

    def __init__(
        self,
        session: Session,
        shares: CurrentShares,
        contenders: Sequence[ContenderClass],
        candidates: Sequence[RequeueCandidate],
    ) -> None:
        self.session = session
        self.shares = shares
        self.contenders = contenders
        self.equals = session.settings.requeue.contenders == "any"
        numbers: dict[CandidateKind, int] = {}
        self.kind = np.array([numbers.setdefault(c.kind(session), len(numbers)) for c in candidates], np.int64)
        self.kinds = list(numbers)
        self._rank()

    def _rank(self) -> None:
        """Put the keys of all queues that may be compared into one order."""
        path = self.session.queues.path
        theirs = sorted({(queue, cls.step.amount) for cls in self.contenders for queue in path[cls.alike.leaf]})
        keys = [queue_key(self.session, self.shares, queue, amount) for queue, amount in theirs]
        for kind in self.kinds:
            keys += self._keys_without(kind)
        rank = [0] * len(keys)
        for place, number in enumerate(sorted(range(len(keys)), key=keys.__getitem__)):
            rank[number] = place
        self._rank_of = {pair: rank[number] for number, pair in enumerate(theirs)}
        self._kind_ranks: list[list[int]] = []
        position = len(theirs)
        for kind in self.kinds:
            self._kind_ranks.append(rank[position : position + len(path[kind.leaf])])
            position += len(path[kind.leaf])

    def _keys_without(self, kind: CandidateKind) -> list[Key]:
        """Keys of a candidate's leaf and all above it, the candidate being gone and asking again.

        Of one that may go in parts, keys that are at least as great as with any part gone.
        """
        session, queues = self.session, self.session.queues
        if kind.held is None:
            keys = [queue_key(session, self.shares, q, kind.asks) for q in queues.path[kind.leaf]]
            return [(*key[:5], inf, inf, LAST_NAME) for key in keys]
        with session.scenario():
            queues.release(kind.leaf, kind.held, fixed=False)
            return [queue_key(session, self.shares, q, kind.asks) for q in queues.path[kind.leaf]]

    def rows(self) -> dict[ContenderClass, Mask]:
        """Give, for each class, the kinds than which it is more deserving."""
        path = self.session.queues.path
        depth = max((len(p) for p in path), default=0)
        kinds, ranks = self._paths([k.leaf for k in self.kinds], self._kind_ranks, depth, OWN)
        leaf_of = np.array([k.leaf for k in self.kinds], np.int64)
        priority_of = np.array([k.priority for k in self.kinds], np.int64)
        everywhere = np.arange(len(self.kinds))
        found = {}
        for cls in self.contenders:
            own = [self._rank_of[queue, cls.step.amount] for queue in path[cls.alike.leaf]]
            mine, my_ranks = self._paths([cls.alike.leaf], [own], depth, OTHER)
            fork = (mine[0] != kinds).argmax(axis=1)
            row = my_ranks[0][fork] < ranks[everywhere, fork]
            same = cls.alike.priority >= priority_of if self.equals else cls.alike.priority > priority_of
            found[cls] = np.where(leaf_of == cls.alike.leaf, same, row)
        return found

    def _paths(self, leaves: Sequence[int], ranks: Sequence[Sequence[int]], depth: int, fill: int) -> tuple[Ints, Ints]:
        """Paths from the top down and the ranks along them, ``int64[leaves, depth]``."""
        path = self.session.queues.path
        queues = np.full((len(leaves), depth), fill, np.int64)
        along = np.zeros((len(leaves), depth), np.int64)
        for number, leaf in enumerate(leaves):
            length = len(path[leaf])
            queues[number, :length] = path[leaf][::-1]
            along[number, :length] = ranks[number][::-1]
        return queues, along
