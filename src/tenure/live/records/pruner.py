"""Takes out of a history that is being written what is older than it is to be kept: once a day, part by part."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Final

from tenure.history.retention import Retention, pruning
from tenure.history.store import HistoryStore

EVERY_SECONDS: Final = 86_400.0
"""Seconds between two looks."""


class Pruner:
    """Takes out what is too old, a short transaction at a time. Not for several threads.

    Ages count from the last record, at the latest from the present. The present is what the clock said at the start and
    the time that has passed since: a clock that jumps ahead while the process runs makes no record older.

    Parameters
    ----------
    retention
        How long records are kept.
    clock
        Gives the time in µs since the epoch.
    told
        Called with the number of records that were taken out, if any were, at the end of a look.
    failed
        Hears what kept a look from its end; the next begins after the usual time.
    every
        Seconds between two looks; the first begins at once.
    """

    def __init__(
        self,
        retention: Retention,
        clock: Callable[[], int],
        told: Callable[[int], None],
        failed: Callable[[Exception], None],
        *,
        every: float = EVERY_SECONDS,
    ) -> None:
        self._retention, self._clock, self._every = retention, clock, every
        self._told, self._failed = told, failed
        self._began, self._started = clock(), time.monotonic()
        self._due = self._started
        self._look: tuple[HistoryStore, Iterator[int]] | None = None
        self._gone = 0

    def step(self, store: HistoryStore) -> bool:
        """Take out one part of what is too old, if it is time for that; gives whether there is more to do now."""
        if self._look is not None and self._look[0] is not store:
            self._look, self._due = None, time.monotonic()  # the store was opened again
        if self._look is None and time.monotonic() < self._due:
            return False
        self._due = time.monotonic() + self._every
        look, self._look = self._look, None
        try:
            parts = look[1] if look is not None else self._begin(store)
            gone = next(parts, None)
        except Exception as error:  # noqa: BLE001  whatever a store comes up with, it is written all the same
            self._failed(error)
            return False
        if gone is None:
            if self._gone:
                self._told(self._gone)
            self._gone = 0
            return False
        self._gone += gone
        self._look = store, parts
        return True

    def _begin(self, store: HistoryStore) -> Iterator[int]:
        span = store.span()
        present = min(self._clock(), self._began + round((time.monotonic() - self._started) * 1_000_000))
        return iter(()) if span is None else pruning(store, min(span[1], present), self._retention)
