"""Which terms mean tasks with given labels: found for all terms at once, by what each of their selectors asks.

A selector asks for labels and keys that have to be there, and for some that must not. By each of these the index has
the terms that ask for it, so that a task costs what its own labels are about and an addition for each term, and not a
look into every selector. However many terms there are, other tasks are not held against each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tenure.model.selectors import LabelSelector, Requirement
from tenure.model.values.resources import Pairs

Asked = str | tuple[str, str]
"""A key of a label, or a label."""

Ints = NDArray[np.int64]

_NEVER: Final = -1
"""How many labels a term asks for that means no task."""

_BARRED: Final = -2
_NOTHING: Final = np.zeros(0, np.int64)


class TermIndex:
    """The index of terms, which are numbered in the order in which they are added.

    ``sees`` says whether the term of a number looks at the tasks of a namespace.
    """

    def __init__(self, sees: Callable[[int, str], bool]) -> None:
        self._sees = sees
        self._needed: list[int] = []
        self._wanted: dict[Asked, list[int]] = {}
        self._barred: dict[Asked, list[int]] = {}
        self._near: dict[str, Ints] = {}
        self._looked_at: dict[str, int] = {}
        self._counts = np.zeros(0, np.int64)

    def add(self, selectors: Sequence[LabelSelector | None]) -> None:
        """Add the next term, which means the tasks that all of some selectors match."""
        row, needed = len(self._needed), 0
        for selector in selectors:
            if selector is None or any(r.operator in ("Gt", "Lt") for r in selector.match_expressions):
                self._needed.append(_NEVER)
                return
        for selector in selectors:
            assert selector is not None
            for is_wanted, any_of in _asked(selector):
                needed += is_wanted
                for one in any_of:
                    (self._wanted if is_wanted else self._barred).setdefault(one, []).append(row)
        self._needed.append(needed)

    def matching(self, labels: Pairs, namespace: str) -> tuple[int, ...]:
        """Give the numbers of the terms that mean a task with these labels in a namespace, in their order."""
        near = self._looking_at(namespace)
        if not len(near):
            return ()
        own: list[Asked] = [*labels, *(key for key, _ in labels)]
        met = [row for one in own for row in self._wanted.get(one, ())]
        found = np.bincount(np.array(met, np.int64), minlength=len(self._counts))
        found[[row for one in own for row in self._barred.get(one, ())]] = _BARRED
        return tuple(near[found[near] == self._counts[near]].tolist())

    def _looking_at(self, namespace: str) -> Ints:
        """Give the terms that look at a namespace; those that came since the last time are asked now."""
        count = len(self._needed)
        if len(self._counts) != count:
            self._counts = np.array(self._needed, np.int64)
        first, near = self._looked_at.get(namespace, 0), self._near.get(namespace, _NOTHING)
        if first < count:
            new = [row for row in range(first, count) if self._sees(row, namespace)]
            near = self._near[namespace] = np.concatenate([near, np.array(new, np.int64)])
            self._looked_at[namespace] = count
        return near


def _asked(selector: LabelSelector) -> Iterator[tuple[bool, Iterable[Asked]]]:
    """Give what a selector asks: whether one of some labels or keys has to be there, or none of them may be."""
    for pair in selector.match_labels:
        yield True, (pair,)
    for requirement in selector.match_expressions:
        yield requirement.operator in ("In", "Exists"), _meant(requirement)


def _meant(requirement: Requirement) -> Iterable[Asked]:
    if requirement.operator in ("In", "NotIn"):
        return dict.fromkeys((requirement.key, value) for value in requirement.values)
    return (requirement.key,)
