"""What is held below one leaf, by node and priority, as arrays that are kept up to date."""

from __future__ import annotations

from operator import add, sub
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tenure.engine.nodes import Ints
from tenure.engine.queues import Amount

Place = tuple[int, int]
"""Node and priority."""

MANY = 64
"""Places from which on it is looked at whether they are empty."""


class UsageEntries(NamedTuple):
    """The entries of a usage table by node and priority: ``frees`` is ``float64[rows, entries]``, whole numbers."""

    node: Ints
    priority: Ints
    frees: NDArray[np.float64]


class UsageTable:
    """The sums of usage by node and priority; a sum that is nothing keeps its place."""

    def __init__(self, rows: int) -> None:
        self._sums: dict[Place, Amount] = {}
        self._slots: dict[Place, int] = {}
        self._dirty: set[Place] = set()
        self._empty = 0
        self._keys = np.zeros((2, 0), np.int64)
        self._frees = np.zeros((rows, 0))

    def detach(self) -> None:
        """Share nothing any more with the one of which this is a copy."""
        self._sums, self._slots, self._dirty = self._sums.copy(), self._slots.copy(), self._dirty.copy()
        self._keys, self._frees = self._keys.copy(), self._frees.copy()

    def add(self, place: Place, frees: Amount, sign: int) -> None:
        """Count what is held at a place, or count it no more."""
        known = self._sums.get(place)
        if known is None:
            self._sums[place] = frees
        else:
            after = self._sums[place] = tuple(map(add if sign > 0 else sub, known, frees))
            self._empty += (not any(after)) - (not any(known))
        self._dirty.add(place)

    def entries(self) -> UsageEntries:
        """Everything, as arrays."""
        if self._dirty:
            self._forget_empty()
            self._write(sorted(self._dirty))
            self._dirty.clear()
        count = len(self._slots)
        node, priority = self._keys[:, :count]
        return UsageEntries(node, priority, self._frees[:, :count])

    def _write(self, places: list[Place]) -> None:
        new = [place for place in places if place not in self._slots]
        first = len(self._slots)
        self._slots.update(zip(new, range(first, first + len(new)), strict=True))
        beyond = len(self._slots) - self._keys.shape[1]
        if beyond > 0:
            more = ((0, 0), (0, beyond + len(self._slots)))
            self._keys, self._frees = np.pad(self._keys, more), np.pad(self._frees, more)
        if new:
            self._keys[:, first : first + len(new)] = np.array(new, np.int64).T
        columns = [self._slots[place] for place in places]
        self._frees[:, columns] = np.array([self._sums[place] for place in places], np.float64).T

    def _forget_empty(self) -> None:
        """Give places back where most are empty."""
        if len(self._slots) < MANY or 2 * self._empty < len(self._slots):
            return
        self._empty = 0
        self._sums = {place: sums for place, sums in self._sums.items() if any(sums)}
        self._slots.clear()
        self._dirty = set(self._sums)
