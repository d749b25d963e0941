"""What one search chooses from: the candidates that its bounds leave, looked up node by node as they are needed.

A cluster may have many thousands of candidates, of which a search for a small contender touches a few dozen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import heappop, heappush, heapreplace
from operator import attrgetter

from tenure.engine.state.session import Session
from tenure.engine.state.workloads import WorkloadState
from tenure.victims.candidates.gatherer import VictimCandidates, in_order
from tenure.victims.candidates.leaf_candidates import LeafCandidates, RowsRefused
from tenure.victims.rules.pieces import Piece, Rank

Usable = Callable[[Piece], bool]


class CandidateIndex:
    """The usable pieces of some candidates; of some it is known that they are not: the rules have ``refused`` them."""

    def __init__(self, session: Session, candidates: VictimCandidates, usable: Usable, refused: RowsRefused) -> None:
        self.session = session
        self.candidates = candidates
        self.usable = usable
        self.refused = refused
        self._candidate_leaves: dict[int, LeafCandidates] = {c.leaf: c for c in candidates.candidate_leaves}
        self._at: dict[int, list[Piece]] = {}
        self._of: dict[WorkloadState, list[Piece]] = {}

    def ordered(self) -> Iterator[Piece]:
        """Give all pieces in order."""
        leaves = ((c.level, c.but(self.refused)) for c in self.candidates.candidate_leaves)
        return filter(self.usable, in_order(leaves))

    def beyond(self, leaves: Iterable[int]) -> list[LeafCandidates]:
        """Give the candidates of leaves that were not open before."""
        found = [] if self.candidates.beyond is None else self.candidates.beyond.candidate_leaves(leaves)
        self._candidate_leaves.update((leaf_candidates.leaf, leaf_candidates) for leaf_candidates in found)
        self._at.clear()
        return found

    def of(self, workload: WorkloadState) -> list[Piece]:
        """Give the pieces of one workload."""
        found = self._of.get(workload)
        if found is None:
            leaf_candidates = self._candidate_leaves.get(workload.leaf)
            there = () if leaf_candidates is None else leaf_candidates.of(workload)
            found = self._of[workload] = [p for p in there if self.usable(p)]
        return found

    def at(self, node: int) -> list[Piece]:
        """Give the pieces that free something on a node, in order, of the leaves that have been open so far."""
        found = self._at.get(node)
        if found is None:
            there = {t.workload for t in self.session.on_node[node]}
            here = sorted((w for w in there if w.leaf in self._candidate_leaves), key=attrgetter("key"))
            found = self._at[node] = sorted_pieces(
                [p for workload in here for p in self.of(workload) if any(n == node for n, _ in p.frees)]
            )
        return found


class PieceStream:
    """Usable pieces of several leaves, the cheapest first, by their floor; leaves may come and be closed on the way."""

    def __init__(self, pool: CandidateIndex, closed: Callable[[LeafCandidates], bool]) -> None:
        self.pool = pool
        self.closed = closed
        self._heap: list[tuple[Rank, int, int, Piece, Iterator[Piece], LeafCandidates]] = []
        self._added = 0

    def add(self, candidate_leaves: Iterable[LeafCandidates]) -> None:
        """Take in the candidates of leaves, from their beginnings."""
        for leaf_candidates in candidate_leaves:
            pieces = leaf_candidates.but(self.pool.refused, cheapest_first=True)
            piece = next(pieces, None)
            if piece is not None:
                self._added += 1
                heappush(self._heap, (piece.floor, leaf_candidates.leaf, self._added, piece, pieces, leaf_candidates))

    def peek(self) -> Piece | None:
        """Give the next piece, and leave it."""
        heap = self._heap
        while heap:
            *_, piece, _, leaf_candidates = heap[0]
            if self.closed(leaf_candidates):
                heappop(heap)
            elif self.pool.usable(piece):
                return piece
            else:
                self.take()
        return None

    def take(self) -> None:
        """Leave the next piece behind."""
        _, leaf, number, _, pieces, leaf_candidates = self._heap[0]
        piece = next(pieces, None)
        if piece is None:
            heappop(self._heap)
        else:
            heapreplace(self._heap, (piece.floor, leaf, number, piece, pieces, leaf_candidates))


def sorted_pieces(pieces: Sequence[Piece]) -> list[Piece]:
    """Bring a few pieces into the order of all."""
    by_leaf: dict[int, list[Piece]] = {}
    for piece in pieces:
        by_leaf.setdefault(piece.workload.leaf, []).append(piece)
    leaves = (sorted(by_leaf[leaf], key=lambda p: p.rank) for leaf in sorted(by_leaf))
    return list(in_order((pieces[0].leaf_priority, pieces) for pieces in leaves))
