"""A mapping as another one shows it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

K = TypeVar("K")
S = TypeVar("S")
T = TypeVar("T")


class MappedView(Mapping[K, T]):
    """The view of a mapping with something of each value in its place; it copies nothing."""

    def __init__(self, source: Mapping[K, S], give: Callable[[S], T]) -> None:
        self._source, self._give = source, give

    def __getitem__(self, key: K) -> T:
        """Give what is asked of the value of a key."""
        return self._give(self._source[key])

    def __iter__(self) -> Iterator[K]:
        """Give the keys."""
        return iter(self._source)

    def __len__(self) -> int:
        """Give how many there are."""
        return len(self._source)
