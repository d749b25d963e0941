"""Lines in an order that is kept: where a few of many have changed, only those are put in their places anew."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable
from typing import Any, Generic, TypeAlias, TypeVar

T = TypeVar("T")
SortKey: TypeAlias = Callable[[T], Any]


class KeptOrder(Generic[T]):
    """Lines, sorted by a key that no two of them have in common. ``lines`` is not changed once it was given."""

    def __init__(self, key: SortKey[T], lines: Iterable[T]) -> None:
        self.key = key
        self.lines = sorted(lines, key=key)
        self._keys = list(map(key, self.lines))

    def after(self, gone: Collection[T], came: Collection[T]) -> KeptOrder[T]:
        """Give the order without some lines, each of which is there, and with others in their places."""
        made: KeptOrder[T] = KeptOrder(self.key, ())
        keys: list[Any] = []
        lines: list[T] = []
        last = 0
        for index in sorted(bisect_left(self._keys, self.key(line)) for line in gone):
            keys += self._keys[last:index]
            lines += self.lines[last:index]
            last = index + 1
        keys += self._keys[last:]
        lines += self.lines[last:]
        last = 0
        for line in sorted(came, key=self.key):
            index = bisect_left(keys, self.key(line), last)
            made._keys += keys[last:index]
            made.lines += lines[last:index]
            made._keys.append(self.key(line))
            made.lines.append(line)
            last = index
        made._keys += keys[last:]
        made.lines += lines[last:]
        return made
