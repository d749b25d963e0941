"""Scalar loops over one node, for when so few nodes changed that vectors would cost more than they save.

Each says the same as a vector operation in `tenure.engine.room.score`; a property test holds them together.
"""

from __future__ import annotations

from collections.abc import Sequence

from tenure.model.values.resources import MILLI

UNFIT, WAITS, BINDS = 0, 1, 2
"""Whether a task fits nowhere, fits once what terminates has left, or can be bound now."""


def fit(column: Sequence[int], ask: Sequence[tuple[int, int]], rows: int) -> int:
    """Fit of one task on one node by its column of ``room``; ``ask`` lists row and amount of what it takes."""
    for row, amount in ask:
        if column[rows + row] < amount:
            return UNFIT
    for row, amount in ask:
        if column[row] < amount:
            return WAITS
    return BINDS


def choose_devices(
    free: Sequence[int], later: Sequence[int], milli: int, count: int, *, packed: bool
) -> tuple[int, ...]:
    """Give ``count`` devices with at least ``milli`` free, or fewer if there are not so many.

    Packed: those first that will be the fullest (``later``: what is free once what terminates has left), else the
    emptiest; the lower number where they are equal.
    """
    fits = [
        (then if packed else -then, i) for i, (have, then) in enumerate(zip(free, later, strict=True)) if have >= milli
    ]
    return tuple(sorted(i for _, i in sorted(fits)[:count]))


def whole_devices(free: Sequence[int], count: int) -> tuple[int, ...]:
    """Give the first ``count`` devices that are wholly free."""
    return tuple([i for i, have in enumerate(free) if have == MILLI][:count])
