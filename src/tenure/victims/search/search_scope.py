"""What is open to a contender of reclaim while a set grows: sides close as they are taken from, and others open.

What goes on the contender's own side makes it less full, so more may be taken from further away.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from operator import ge

from tenure.engine.queues import Amount
from tenure.engine.refusal import Refusal
from tenure.engine.workloads import WorkloadState
from tenure.fairness.reclaiming import FULLNESS, ReclaimRules
from tenure.victims.bounds.victim_bounds import VictimBounds, VictimBranches
from tenure.victims.candidates.leaf_candidates import LeafCandidates
from tenure.victims.rules.pieces import Piece
from tenure.victims.search.subsets import Limits


class SearchScope:
    """The sides of one contender, of which some are open at ``first``; it closes only what the rules have refused."""

    def __init__(
        self, bounds: VictimBounds, contender: WorkloadState, groups: VictimBranches, first: Collection[int]
    ) -> None:
        self.bounds = bounds
        self.rules = ReclaimRules(bounds.session, bounds.shares, contender)
        self.path = bounds.queues.path
        self.index = bounds.queues.index
        self.groups = groups
        self.first = frozenset(first)
        self.begin()

    @property
    def leaves(self) -> list[int]:
        """The leaves that are open at first."""
        return [leaf for side in self.groups.sides if side.queue in self.first for leaf in side.below.leaves]

    def begin(self) -> None:
        """Let everything be as it is before anything is taken."""
        self._open = set(self.first)
        self._shut: set[int] = set()
        self._too_full: dict[int, Amount] = {}

    def closed(self, leaf_candidates: LeafCandidates) -> bool:
        """Whether nothing of a leaf may be taken now."""
        return self._forbids(leaf_candidates.leaf, leaf_candidates.least)

    def out(self, piece: Piece) -> bool:
        """Whether a piece may not be taken now."""
        return self._forbids(piece.workload.leaf, piece.amount)

    def _forbids(self, leaf: int, amount: Amount) -> bool:
        side = self.rules.meeting(leaf)[1]
        if side not in self._open or (self._shut and not self._shut.isdisjoint(self.path[leaf])):
            return True
        most = self._too_full.get(side)
        return most is not None and all(map(ge, amount, most))

    def refused(self, pieces: Sequence[Piece], refusal: Refusal) -> bool:
        """Hear that pieces were refused together; whether that is all there is to say about the last of them."""
        queue = self.index.get(refusal.about, -1)
        if queue < 0:
            return False
        if refusal.shield != FULLNESS:
            self._shut.add(queue)
            return True
        if len(pieces) == 1:
            self._too_full[queue] = pieces[0].amount
        return len(pieces) == 1

    def taken(self, piece: Piece) -> list[int]:
        """Hear that a piece was taken; give leaves that are open again, or for the first time."""
        mine = self.rules.meeting(piece.workload.leaf)[0]
        found: list[int] = []
        for side in self.groups.sides:
            further = side.mine < mine  # parents come before children
            known = side.queue in self._open and side.queue not in self._shut and side.queue not in self._too_full
            if further and not known and self.bounds.is_open(self.rules, side):
                self._open.add(side.queue)
                self._shut.discard(side.queue)
                self._too_full.pop(side.queue, None)
                found += side.below.leaves
        return found


@dataclass(slots=True)
class ScopeBounds:
    """The bounds for one search.

    Only pieces that are ``allowed`` can be part of a set. ``limits`` says which sets of some pieces are more than the
    rules ever allow, ``opening`` what is open to a set as it grows. ``others`` are served before the contender, and
    need room as well.
    """

    allowed: Callable[[Piece], bool]
    limits: Limits
    opening: SearchScope | None = None
    others: int = 0
