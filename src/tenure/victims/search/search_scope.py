"""What is open to a contender: by what reclaim may take, and while a set grows.

Branches close as they are taken from, and others open: what goes on the contender's own side makes it less full, so
more may be taken from further away.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cache
from itertools import islice
from operator import ge

from tenure.engine.refusal import Refusal
from tenure.engine.state.queues import Amount
from tenure.engine.state.session import Session
from tenure.fairness.reclaiming import FULLNESS
from tenure.victims.bounds.branches import VictimBranches
from tenure.victims.candidates.leaf_candidates import LeafCandidates
from tenure.victims.rules.pieces import Piece
from tenure.victims.search.alike_pieces import AlikePieces


class SearchScope:
    """The scope of one search: here everything is open, and stays so.

    ``others`` need room before the contender; ``by_priority``: inside one queue that comes before cost; ``shut``:
    nothing is open to begin with.
    """

    others = 0
    by_priority = True
    shut = False

    def allows(self, piece: Piece) -> bool:  # noqa: ARG002
        """Whether a piece can be part of a set at all."""
        return True

    def limits(self, pieces: Sequence[Piece]) -> Callable[[Sequence[Piece]], bool] | None:  # noqa: ARG002
        """Say which sets of some pieces are more than the rules ever allow, and so is every larger; None: of none."""
        return None

    def begin(self) -> None:
        """Let everything be as it is before anything is taken."""

    def closed(self, leaf_candidates: LeafCandidates) -> bool:  # noqa: ARG002
        """Whether nothing of a leaf may be taken now."""
        return False

    def out(self, piece: Piece) -> bool:  # noqa: ARG002
        """Whether a piece may not be taken now."""
        return False

    def refused(self, pieces: Sequence[Piece], refusal: Refusal) -> bool:  # noqa: ARG002
        """Hear that pieces were refused together; whether that is all there is to say about the last of them."""
        return False

    def taken(self, piece: Piece) -> list[int]:  # noqa: ARG002
        """Hear that a piece was taken; give leaves that are open again, or for the first time."""
        return []


class CheapestScope(SearchScope):
    """The scope of a search among so many pieces, one of each kind, whatever their priority.

    Those come first that find a place elsewhere as things are, then the cheapest.
    """

    by_priority = False

    def __init__(self, session: Session, pieces: Iterable[Piece], most: int) -> None:
        lands = cache(lambda cls: bool(session.scorer.fits(cls, slice(None))[0].any()))
        in_order = sorted(pieces, key=lambda p: (not all(lands(t.cls) for t in p.tasks), p.cost))
        self.cheapest = frozenset(islice(AlikePieces(session).first_of_each(in_order), most))

    def allows(self, piece: Piece) -> bool:
        """Whether a piece is one of them."""
        return piece in self.cheapest


class ReclaimScope(SearchScope):
    """The scope of reclaim: pieces and sets of them that are no more than their queues let go."""

    def __init__(self, branches: VictimBranches) -> None:
        self.branches = branches
        self.rules = branches.rules

    def allows(self, piece: Piece) -> bool:
        """Whether its leaf, and the sibling above that, let so much go at all."""
        rows, amount, known = self.rules.rows, piece.amount, self.branches.of(piece.workload.leaf)
        return known is not None and all(
            amount[row] <= min(known[1][row], known[0].cap[row]) for row in rows if amount[row]
        )

    def limits(self, pieces: Sequence[Piece]) -> Callable[[Sequence[Piece]], bool]:
        """Say which sets take more from a leaf or a sibling than it lets go."""
        return self.branches.too_much(pieces)


class GrowingScope(ReclaimScope):
    """The scope of reclaim while a set grows: some branches are open at ``first``.

    Only what the rules have refused is closed.
    """

    def __init__(self, branches: VictimBranches, first: Collection[int], others: int) -> None:
        super().__init__(branches)
        self.others = others
        self.path = branches.queues.path
        self.index = branches.queues.index
        self.first = frozenset(first)
        self.shut = not first
        self.begin()

    @property
    def leaves(self) -> list[int]:
        """The leaves that are open at first."""
        return [leaf for branch in self.branches if branch.queue in self.first for leaf in branch.below.leaves]

    def begin(self) -> None:
        """Let the first branches be open, and no others."""
        self._open = set(self.first)
        self._shut: set[int] = set()
        self._too_full: dict[int, Amount] = {}

    def closed(self, leaf_candidates: LeafCandidates) -> bool:
        """Whether not even the least of a leaf may be taken now."""
        return self._forbids(leaf_candidates.leaf, leaf_candidates.least)

    def out(self, piece: Piece) -> bool:
        """Whether its branch is closed, or too full for so much."""
        return self._forbids(piece.workload.leaf, piece.amount)

    def _forbids(self, leaf: int, amount: Amount) -> bool:
        queue = self.rules.meeting(leaf)[1]
        if queue not in self._open or (self._shut and not self._shut.isdisjoint(self.path[leaf])):
            return True
        most = self._too_full.get(queue)
        return most is not None and all(map(ge, amount, most))

    def refused(self, pieces: Sequence[Piece], refusal: Refusal) -> bool:
        """Close what a refusal is about: a queue, or a branch for as much as one piece holds."""
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
        """Open what is further away, if something may be taken there now."""
        mine = self.rules.meeting(piece.workload.leaf)[0]
        found: list[int] = []
        for branch in self.branches:
            further, queue = branch.mine < mine, branch.queue  # parents come before children
            is_open = queue in self._open and queue not in self._shut and queue not in self._too_full
            if further and not is_open and self.branches.is_open(branch):
                self._open.add(queue)
                self._shut.discard(queue)
                self._too_full.pop(queue, None)
                found += branch.below.leaves
        return found
