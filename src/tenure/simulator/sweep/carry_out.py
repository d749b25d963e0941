"""Carrying out a sweep: what the journal has not yet is worked on, and written down as it is done."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tenure.simulator.sweep.journal import SweepJournal
from tenure.simulator.sweep.points import SweepPoint
from tenure.simulator.sweep.runners import SweepRunner, Work

Look = Callable[[int, int], None]
"""Hears how many points are done, of how many."""


def carry_out(
    points: Sequence[SweepPoint],
    work: Work,
    runner: SweepRunner,
    journal: SweepJournal | None = None,
    look: Look = lambda _done, _count: None,
) -> list[dict[str, Any]]:
    """Give the result of every point, in their order. Points of one key are worked on once.

    What the journal has is taken from there, so a sweep that was killed goes on where it was.
    """
    found = dict(journal.results) if journal is not None else {}
    left = list({point.key: point for point in points if point.key not in found}.values())
    wanted = len({point.key for point in points})
    look(wanted - len(left), wanted)
    done = wanted - len(left)
    for number, result in runner(work, [point.task for point in left]):
        key = left[number].key
        if journal is not None:
            journal.add(key, result)
        found[key] = result
        done += 1
        look(done, wanted)
    return [found[point.key] for point in points]
