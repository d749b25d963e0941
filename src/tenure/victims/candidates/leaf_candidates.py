"""What may be taken from one leaf, in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tenure.engine.refusal import Refusal
from tenure.engine.room.nodes import Ints
from tenure.engine.state.queues import Amount
from tenure.engine.state.workloads import WorkloadState
from tenure.victims.rules.pieces import Piece

Floats = NDArray[np.float64]


class PricedPieces(NamedTuple):
    """Pieces on each of their nodes, one entry each: the node, ``int64[rows, entries]`` that is freed there.

    ``spread``: on how many nodes the piece is; ``prices`` and ``growth`` are those of the whole piece.
    """

    nodes: Ints
    freed: Ints
    spread: Ints
    prices: Floats
    growth: Floats


RowsRefused = Callable[[int, tuple[int, ...]], bool]
"""Whether it is known that the rules let nothing of a leaf go that holds resources in these rows."""

MANY_GONE = 16
"""Workloads that were dropped, from which on their pieces are taken out: if they are half of all."""


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
    ) -> None:
        self.leaf = leaf
        self.level = level
        self.refused = refused
        self.shielded = shielded
        self.uniform = len({p.rank[0] for p in pieces}) <= 1
        self.least: Amount = tuple(map(min, zip(*(p.amount for p in pieces), strict=True)))
        self._sorted = sorted(pieces, key=lambda p: p.rank)
        self._stretches: dict[bool, list[tuple[tuple[int, ...], list[Piece]]]] = {}
        self._of: dict[WorkloadState, list[Piece]] = {}
        self._gone: set[WorkloadState] = set()
        self._priced: PricedPieces | None = None
        for piece in self._sorted:
            self._of.setdefault(piece.workload, []).append(piece)

    def __len__(self) -> int:
        """Number of workloads."""
        return len(self._of)

    def drop(self, workload: WorkloadState) -> None:
        """A workload is no candidate any more."""
        if self._of.pop(workload, None) is None:
            return
        self._gone.add(workload)
        self._priced = None
        if len(self._gone) >= max(MANY_GONE, len(self._of)):
            self._sorted, self._stretches = list(self.all()), {}
            self._gone.clear()

    def of(self, workload: WorkloadState) -> Sequence[Piece]:
        """Give the pieces of one workload."""
        return self._of.get(workload, ())

    def all(self) -> Iterator[Piece]:
        """Give all pieces, those of lower priority first, then by cost."""
        return (p for p in self._sorted if p.workload not in self._gone)

    def but(self, refused: RowsRefused, *, cheapest_first: bool = False) -> Iterator[Piece]:
        """Give all pieces in order, or by their floor, but those that are known to be refused by then."""
        if cheapest_first not in self._stretches:
            pieces = sorted(self._sorted, key=lambda p: p.floor) if cheapest_first else self._sorted
            found = [(rows, list(alike)) for rows, alike in groupby(pieces, attrgetter("rows"))]
            self._stretches[cheapest_first] = found
        leaf, gone = self.leaf, self._gone
        for rows, pieces in self._stretches[cheapest_first]:
            for piece in pieces:
                if refused(leaf, rows):
                    break
                if piece.workload not in gone:
                    yield piece

    def priced(self, rows: int) -> PricedPieces:
        """Give each piece on each of its nodes."""
        if self._priced is None:
            found = [(*entry, len(p.frees), p.cost, p.growth) for p in self.all() for entry in p.frees]
            nodes, freed, spread, prices, growth = zip(*found, strict=True) if found else ((), (), (), (), ())
            self._priced = PricedPieces(
                np.array(nodes, np.int64),
                np.array(freed, np.int64).reshape(-1, rows).T,
                np.array(spread, np.int64),
                np.array(prices, np.float64),
                np.array(growth, np.float64),
            )
        return self._priced
