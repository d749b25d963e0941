"""Comparing sets of victims (spec: choosing victims).

In this order: fewer tasks that asked to be spared; queues of lower priority (of a set, its highest leaf's); cost, or
age where the settings say so; cores of workloads; tasks; younger first, by start, creation and place among the tasks;
name. Apart from that, a set is refused where another one pays that differs from it inside one queue only, spares no
fewer, and uses lower priorities there: of the highest priority of either less is taken, in weighted resources, or as
much and less of the next, and so on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import total_ordering
from operator import mul
from typing import TypeAlias

from tenure.model.settings import Settings
from tenure.victims.rules.pieces import Piece, cost_or_age

Key: TypeAlias = tuple[object, ...]


def key_of(settings: Settings, pieces: Sequence[Piece], follows: Sequence[int] = ()) -> Key:
    """Order of a set; it never falls when a piece is added. ``follows``: the costs of its follow-ups."""
    level, cost = -(1 << 40), sum(follows)
    spared = cores = tasks = 0
    ages = []
    for piece in pieces:
        if not piece.fresh:
            spared += piece.spared
            level = max(level, piece.leaf_priority)
            cost += piece.cost
            cores += piece.whole
            tasks += len(piece.ran)
            ages.append(piece.age)
    return spared, level, *cost_or_age(settings, ages, cost), bool(follows), cores, tasks, _Tie(pieces)


@total_ordering
class _Tie:
    """Order of sets that are alike in all else, worked out only where two of them meet: of most it is never read."""

    __slots__ = ("_known", "_pieces")

    def __init__(self, pieces: Sequence[Piece]) -> None:
        self._pieces = tuple(pieces)
        self._known: Key | None = None

    def _order(self) -> Key:
        if self._known is None:
            pieces = self._pieces
            ages = ((p.age, -p.workload.created_at, -p.tasks[-1].index) for p in pieces if not p.fresh)
            names = [(p.workload.key, t.index) for p in pieces for t in p.tasks]
            self._known = (sorted(ages, reverse=True), len(pieces), sorted(names))
        return self._known

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Tie) and self._order() == other._order()

    def __lt__(self, other: _Tie) -> bool:
        return self._order() < other._order()

    __hash__ = None  # type: ignore[assignment]


Usage: TypeAlias = tuple[tuple[int, int], ...]
"""Priorities from the highest down, each with the weighted resources that are taken of it; what sorts first is lower.
"""


def taken_by_priority(pieces: Iterable[Piece], weights: Sequence[int]) -> Usage:
    """Give what a set takes of each priority; ``weights`` are those of the resources, by row."""
    found: dict[int, int] = {}
    for piece in pieces:
        level = piece.workload.priority
        found[level] = found.get(level, 0) + sum(map(mul, weights, piece.ran_amount))
    return tuple(sorted(((level, taken) for level, taken in found.items() if taken), reverse=True))


def usage(pieces: Iterable[Piece], leaf: int, weights: Sequence[int], lowest: int) -> Usage:
    """Give what a set takes inside one queue of each priority above the ``lowest`` that could be taken there.

    What was only bound in this cycle does not count. Of the lowest priority cost decides: sets that take nothing else
    all use the lowest that there is.
    """
    inside = (p for p in pieces if p.workload.leaf == leaf and not p.fresh)
    return taken_by_priority((p for p in inside if p.workload.priority > lowest), weights)


def lowest_of(pieces: Iterable[Piece]) -> dict[int, int]:
    """Give the lowest priority of some pieces, by queue."""
    found: dict[int, int] = {}
    for piece in pieces:
        leaf, level = piece.workload.leaf, piece.workload.priority
        found[leaf] = min(level, found.get(leaf, level))
    return found


def consistent(pieces: Sequence[Piece]) -> bool:
    """Whether no task is taken twice."""
    workloads = [p.workload for p in pieces]
    if len(set(workloads)) == len(workloads):
        return True
    tasks = [t for p in pieces for t in p.tasks]
    return len(set(tasks)) == len(tasks)
