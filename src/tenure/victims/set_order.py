"""Comparing sets of victims (spec: choosing victims).

In this order: queues of lower priority (of a set, its highest leaf's); cost, or age where the settings say so; cores
of workloads; tasks; younger first, by start, creation and place among the tasks; name. Apart from that, a set is
beaten by one that differs from it inside one queue only and uses lower priorities there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from tenure.model.settings import Settings
from tenure.victims.pieces import Piece

Key: TypeAlias = tuple[object, ...]


def key_of(settings: Settings, pieces: Sequence[Piece], follows: Sequence[int] = ()) -> Key:
    """Order of a set; it never falls when a piece is added. ``follows``: the costs of its follow-ups."""
    if len(pieces) == 1 and settings.victims == "cost" and not pieces[0].fresh:
        piece = pieces[0]
        alone = ((piece.age, -piece.workload.created_at, -piece.tasks[-1].index),)
        return (
            piece.leaf_priority,
            piece.cost + sum(follows),
            bool(follows),
            int(piece.whole),
            len(piece.ran),
            alone,
            1,
            _names(pieces),
        )
    real = [p for p in pieces if not p.fresh]
    level = max((p.leaf_priority for p in real), default=-(1 << 40))
    cost = sum(p.cost for p in real) + sum(follows)
    ages = tuple(sorted((p.age for p in real), reverse=True))
    if settings.victims == "cost":
        second: tuple[object, ...] = (cost,)
    elif settings.victims == "youngest":
        second = (ages, cost)
    else:
        second = (tuple(sorted((-p.age for p in real), reverse=True)), cost)
    cores = sum(p.whole for p in real)
    tasks = sum(len(p.ran) for p in real)
    youth = tuple(sorted(((p.age, -p.workload.created_at, -p.tasks[-1].index) for p in real), reverse=True))
    return (level, *second, bool(follows), cores, tasks, youth, len(pieces), _names(pieces))


def _names(pieces: Sequence[Piece]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted([(p.workload.key, t.index) for p in pieces for t in p.tasks]))


def priorities(pieces: Iterable[Piece], leaf: int) -> list[int]:
    """Priorities that a set uses inside one queue, highest first."""
    return sorted((p.workload.priority for p in pieces if p.workload.leaf == leaf and not p.fresh), reverse=True)


def uses_lower(one: Sequence[int], other: Sequence[int]) -> bool:
    """Whether one list of priorities is lower than another, compared from the highest on as far as both go."""
    return next((a < b for a, b in zip(one, other, strict=False) if a != b), False)


def consistent(pieces: Sequence[Piece]) -> bool:
    """Whether no task is taken twice."""
    workloads = [p.workload for p in pieces]
    if len(set(workloads)) == len(workloads):
        return True
    tasks = [t for p in pieces for t in p.tasks]
    return len(set(tasks)) == len(tasks)
