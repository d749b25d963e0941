"""What one search chooses from: the candidates that its bounds leave, looked up node by node as they are needed.

A cluster may have many thousands of candidates, of which a search for a small contender touches a few dozen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from tenure.engine.session import Session
from tenure.engine.workloads import WorkloadState
from tenure.victims.candidates import Candidates, Lot, in_order
from tenure.victims.pieces import Piece

Usable = Callable[[Piece], bool]


class Pool:
    """The usable pieces of some candidates."""

    def __init__(self, session: Session, candidates: Candidates, usable: Usable) -> None:
        self.session = session
        self.candidates = candidates
        self.usable = usable
        self._lots: dict[int, Lot] = {lot.leaf: lot for lot in candidates.lots}
        self._at: dict[int, list[Piece]] = {}
        self._of: dict[WorkloadState, list[Piece]] = {}

    def of_one_priority(self, leaf: int) -> bool:
        """Whether all candidates of a leaf have one priority, so that the cheapest is the first."""
        return self._lots[leaf].uniform

    def first(self, count: int) -> list[Piece]:
        """Give the first pieces in order."""
        return list(islice(filter(self.usable, self.candidates.all()), count))

    def ordered(self) -> Iterator[Piece]:
        """Give all pieces in order."""
        return filter(self.usable, self.candidates.all())

    def cheapest_first(self) -> Iterator[Piece]:
        """Give all pieces by their floor."""
        return filter(self.usable, self.candidates.cheapest_first())

    def of(self, workload: WorkloadState) -> list[Piece]:
        """Give the pieces of one workload."""
        found = self._of.get(workload)
        if found is None:
            lot = self._lots.get(workload.leaf)
            pieces = lot.of.get(workload, ()) if lot is not None else ()
            found = self._of[workload] = [p for p in pieces if self.usable(p)]
        return found

    def at(self, node: int) -> list[Piece]:
        """Give the pieces that free something on a node, in order."""
        found = self._at.get(node)
        if found is None:
            here = dict.fromkeys(t.workload for t in self.session.on_node[node])
            found = self._at[node] = sorted_pieces(
                [p for workload in here for p in self.of(workload) if any(n == node for n, _ in p.frees)]
            )
        return found


def sorted_pieces(pieces: Sequence[Piece]) -> list[Piece]:
    """Bring a few pieces into the order of all."""
    by_leaf: dict[int, list[Piece]] = {}
    for piece in pieces:
        by_leaf.setdefault(piece.workload.leaf, []).append(piece)
    return list(in_order([sorted(by_leaf[leaf], key=lambda p: p.rank) for leaf in sorted(by_leaf)]))
