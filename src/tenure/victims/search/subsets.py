"""All subsets of a few pieces, the best first, without those that the rules never allow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import heapify, heappop, heappush

from tenure.model.settings import Settings
from tenure.victims.rules.pieces import Piece
from tenure.victims.rules.set_order import Key, Usage, consistent, key_of, usage
from tenure.victims.search.search_scope import SearchScope

LEAST = -(1 << 40)
"""Below every priority."""


class PieceSubsets:
    """The subsets of some pieces in order; what is learnt on the way leaves out all that come later and hold it.

    ``beyond`` is the first set that is more than the ``scope`` lets go. ``weights`` are those of resources, by row, and
    ``lowest`` is the lowest priority that could be taken, by queue.
    """

    def __init__(self, settings: Settings, weights: Sequence[int], scope: SearchScope) -> None:
        self.settings = settings
        self.weights = weights
        self.lowest: dict[int, int] = {}
        self.scope = scope
        self.beyond: list[Piece] | None = None
        self._barred: dict[frozenset[Piece], bool] = {}

    def usage(self, pieces: Sequence[Piece], leaf: int) -> Usage:
        """Give what some pieces take of which priority inside one queue."""
        return usage(pieces, leaf, self.weights, self.lowest.get(leaf, LEAST))

    def key(self, pieces: list[Piece], alone: int | None, follows: Sequence[int] = ()) -> Key:
        """Order sets, ``follows`` being the costs of what follows.

        Inside one queue (``alone``) what is taken of which priority comes before everything else but what is spared.
        """
        key = key_of(self.settings, pieces, follows)
        return key if alone is None else (key[0], self.usage(pieces, alone), *key[1:])

    def of(self, pieces: list[Piece], alone: int | None) -> Iterator[tuple[Key, list[Piece]]]:
        """Give all subsets in their order."""
        too_much = self.scope.limits(pieces)
        heap: list[tuple[Key, tuple[int, ...]]] = [(self.key([p], alone), (n,)) for n, p in enumerate(pieces)]
        heapify(heap)
        while heap:
            key, numbers = heappop(heap)
            subset = [pieces[n] for n in numbers]
            if self._never(subset):
                continue
            yield key, subset
            if self._never(subset):
                continue
            for number in range(numbers[-1] + 1, len(pieces)):
                larger = [*subset, pieces[number]]
                if not consistent(larger):
                    continue
                if too_much is not None and too_much(larger):
                    self.beyond = self.beyond or larger
                else:
                    heappush(heap, (self.key(larger, alone), (*numbers, number)))

    def bar(self, pieces: frozenset[Piece], *, beyond: bool = False) -> None:
        """Leave out every set that holds all of these; with ``beyond``, and others."""
        self._barred[pieces] = beyond

    def _never(self, pieces: list[Piece]) -> bool:
        if not self._barred:
            return False
        chosen = frozenset(pieces)
        return any(part < chosen or (part == chosen and not beyond) for part, beyond in self._barred.items())
