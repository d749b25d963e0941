"""What may be taken from one leaf, in order; what a search does not come to is not worked out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush
from itertools import count

import numpy as np

from tenure.engine.nodes import Ints
from tenure.engine.queues import Amount
from tenure.engine.refusal import Refusal
from tenure.engine.workloads import WorkloadState
from tenure.victims.pieces import Piece, Rank
from tenure.victims.usage_table import UsageEntries

MANY_GONE = 16
"""Workloads that were dropped from a lot, from which on their pieces are taken out of it: if they are half of it."""


class DeferredPieces:
    """Workloads of one priority whose pieces are worked out when it is their turn.

    ``least`` says of each what its pieces cost at least, ``amounts`` are such that every piece holds one of them or
    more, ``entries`` gives what all free at most. ``work_out`` gives the pieces of a workload, none if it is no
    candidate.
    """

    def __init__(
        self,
        least: Mapping[WorkloadState, int],
        amounts: Collection[Amount],
        entries: Callable[[], UsageEntries],
        work_out: Callable[[WorkloadState], list[Piece]],
    ) -> None:
        self.line = sorted(zip(least.values(), range(len(least)), least, strict=True), reverse=True)
        self.left = set(least)
        self.amounts = amounts
        self.entries = entries
        self.work_out = work_out


class LeafCandidates:
    """The pieces that may be taken from one leaf, the best to take first, and which workloads there were refused.

    Workloads that were taken from are dropped at the next look. No piece holds less than ``least``. ``level``
    is the priority of the queue, ``uniform`` says that all workloads have one priority.
    """

    def __init__(
        self,
        leaf: int,
        level: int,
        pieces: Sequence[Piece],
        refused: Sequence[tuple[WorkloadState, Refusal]] = (),
        shielded: int = 0,
        later: DeferredPieces | None = None,
    ) -> None:
        self.leaf = leaf
        self.level = level
        self.refused = refused
        self.shielded = shielded
        self.uniform = later is not None or len({p.rank[0] for p in pieces}) <= 1
        amounts = [*(p.amount for p in pieces), *(later.amounts if later is not None else ())]
        self.least: Amount = tuple(map(min, zip(*amounts, strict=True))) if amounts else ()
        self._later = later
        self._of: dict[WorkloadState, list[Piece]] = {}
        self._sorted = sorted(pieces, key=_rank)
        self._fresh = [p for p in self._sorted if p.fresh]
        self._heap: list[tuple[Rank, int, Piece]] = []
        self._number = count()
        self._gone: set[WorkloadState] = set()
        self._by_floor: list[Piece] | None = None
        self._frees: tuple[Ints, Ints] | None = None
        for piece in self._sorted:
            self._of.setdefault(piece.workload, []).append(piece)
        if later is not None:
            self._heap, self._sorted = [(p.rank, next(self._number), p) for p in self._sorted], []

    def __len__(self) -> int:
        """Number of workloads."""
        return len(self._of) + (0 if self._later is None else len(self._later.left))

    def drop(self, workload: WorkloadState) -> None:
        """A workload is no candidate any more."""
        if self._of.pop(workload, None) is not None:
            self._gone.add(workload)
            self._by_floor = self._frees = None
            if len(self._gone) >= max(MANY_GONE, len(self._of)):
                self._clear()
        elif self._later is not None and workload in self._later.left:
            self._later.left.discard(workload)

    def _clear(self) -> None:
        gone = self._gone
        self._sorted = [p for p in self._sorted if p.workload not in gone]
        self._heap = [entry for entry in self._heap if entry[2].workload not in gone]
        heapify(self._heap)
        self._gone = set()

    def of(self, workload: WorkloadState) -> Sequence[Piece]:
        """Give the pieces of one workload."""
        found = self._of.get(workload)
        if found is None:
            later = self._later
            return self._work_out(later, workload) if later is not None and workload in later.left else ()
        return found

    def _work_out(self, later: DeferredPieces, workload: WorkloadState) -> Sequence[Piece]:
        later.left.discard(workload)
        found = later.work_out(workload)
        if found:
            self._of[workload] = sorted(found, key=_rank)
        for piece in found:
            heappush(self._heap, (piece.rank, next(self._number), piece))
        return self._of.get(workload, ())

    def _more(self) -> bool:
        """Find the next piece in the order; False if there is none."""
        if self._later is not None:
            self._look_ahead(self._later)
        if self._heap:
            self._sorted.append(heappop(self._heap)[2])
            return True
        return False

    def _look_ahead(self, later: DeferredPieces) -> None:
        """Work out all that might come before what is worked out."""
        line, heap = later.line, self._heap
        while line and (not heap or line[-1][0] <= heap[0][2].cost):
            workload = line.pop()[2]
            if workload in later.left:
                self._work_out(later, workload)

    def all(self) -> Iterator[Piece]:
        """Give all pieces, those of lower priority first, then by cost."""
        position = 0
        while position < len(self._sorted) or self._more():
            piece = self._sorted[position]
            position += 1
            if piece.workload not in self._gone:
                yield piece

    def cheapest_first(self) -> Iterator[Piece]:
        """Give all pieces by their floor."""
        if self._later is None:
            if self._by_floor is None:
                self._by_floor = sorted(self.all(), key=lambda p: p.floor)
            yield from self._by_floor
        else:
            yield from (p for p in self._fresh if p.workload not in self._gone)
            yield from (p for p in self.all() if not p.fresh)

    def frees(self, rows: int) -> tuple[Ints, Ints]:
        """What all of them free together, at most: nodes, and ``int64[rows, nodes]`` beside them."""
        if self._frees is None and self._later is not None:
            held = self._later.entries()
            self._frees = held.node, held.frees.astype(np.int64)
        if self._frees is None:
            entries = [entry for piece in self._largest() for entry in piece.frees]
            nodes = np.array([node for node, _ in entries], np.int64)
            self._frees = nodes, np.array([amounts for _, amounts in entries], np.int64).reshape(-1, rows).T
        return self._frees

    def _largest(self) -> list[Piece]:
        return [p for own in self._of.values() for p in ([w for w in own if w.whole] or own)]


def _rank(piece: Piece) -> Rank:
    return piece.rank
