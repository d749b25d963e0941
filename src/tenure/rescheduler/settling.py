"""What was moved too lately to be moved again: `settle`, growing with every move (spec: what it must never do)."""

from __future__ import annotations

from itertools import pairwise

from tenure.engine.session import Session

MOVES = ("reschedule", "consolidate")
MOST_DOUBLINGS = 10


def settled(session: Session) -> set[tuple[str, str]]:
    """Give the tasks, by workload and name, that must be left alone for now."""
    settle = session.settings.rescheduler.settle
    times: dict[tuple[str, str], set[int]] = {}
    for entry in session.evictions:
        if entry.cause in MOVES:
            times.setdefault((entry.workload, entry.task), set()).add(min(entry.at, session.now))
    return {key for key, moved in times.items() if session.now < max(moved) + rest(sorted(moved), settle)}


def rest(times: list[int], settle: int) -> int:
    """How long after its last move a task is left alone, in µs.

    Parameters
    ----------
    times
        When it was moved, ascending, in µs since the epoch; at least one.
    settle
        The setting, in µs. It doubles for each move that came within twice the rest before it.
    """
    doublings = 0
    for earlier, later in pairwise(times):
        wait = settle << doublings
        doublings = min(doublings + 1, MOST_DOUBLINGS) if later - earlier <= 2 * wait else 0
    return settle << doublings
