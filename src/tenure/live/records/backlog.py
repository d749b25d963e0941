"""Records that wait to be written, up to a bound: beyond it the oldest go, and what has gone is remembered as a gap."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from tenure.history.record import Draft


class HistoryGap(NamedTuple):
    """Records that were dropped: from when to when (µs since the epoch), and how many."""

    since: int
    until: int
    number: int


class Backlog:
    """The queue between those who make records and the one who writes them: safe for several threads.

    ``most`` records wait at most; ``dropped`` counts those that had to go.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.dropped = 0
        self.is_stopped = False
        self._waiting: deque[Draft] = deque()
        self._under_way = 0
        self._gap: HistoryGap | None = None
        self._offered_gap: HistoryGap | None = None
        self._changed = threading.Condition()

    def __len__(self) -> int:
        """Count what waits, with what is being written."""
        return len(self._waiting)

    @property
    def is_idle(self) -> bool:
        """Whether nothing waits, and it is not stopped."""
        return not self._waiting and not self.is_stopped

    def add(self, drafts: Sequence[Draft]) -> None:
        """Take records in."""
        with self._changed:
            self._waiting.extend(drafts)
            excess = len(self._waiting) - self.most
            if excess > 0:
                self._drop(excess)
            self._changed.notify()

    def take(self, most: int) -> list[Draft]:
        """Wait for records, and give the oldest; none once it is stopped and empty."""
        with self._changed:
            while not self._waiting and not self.is_stopped:
                self._changed.wait()
            batch = [self._waiting[i] for i in range(min(most, len(self._waiting)))]
            self._under_way = len(batch)
            return batch

    def offer_gap(self) -> HistoryGap | None:
        """Give the gap before what was taken last.

        It stays as it is until it is written, whatever is dropped meanwhile: a store whose answer was lost may hold it
        already, and what it counts must not be counted again by a larger one.
        """
        with self._changed:
            if self._offered_gap is None:
                self._offered_gap, self._gap = self._gap, None
            return self._offered_gap

    def written(self) -> HistoryGap | None:
        """Forget what was taken last, and give the gap that was offered with it: both are written."""
        with self._changed:
            for _ in range(self._under_way):
                self._waiting.popleft()
            self._under_way = 0
            gap, self._offered_gap = self._offered_gap, None
            return gap

    def pause(self, seconds: float) -> None:
        """Keep what was taken last, and wait for so long, or until it is stopped."""
        with self._changed:
            self._under_way = 0
            self._changed.wait_for(lambda: self.is_stopped, seconds)

    def stop(self) -> None:
        """Let nobody wait any longer."""
        with self._changed:
            self.is_stopped = True
            self._changed.notify()

    def _drop(self, number: int) -> None:
        """Leave out the oldest, but those that are being written at this moment."""
        spared = self._under_way if 2 * self._under_way <= self.most else 0
        kept = [self._waiting.popleft() for _ in range(spared)]
        self._under_way = spared
        self._note_gap([self._waiting.popleft() for _ in range(min(number, len(self._waiting)))])
        self._waiting.extendleft(reversed(kept))

    def _note_gap(self, gone: Sequence[Draft]) -> None:
        since, until = min(d.at for d in gone), max(d.at + d.value * (d.kind == "usage") for d in gone)
        known = self._gap or HistoryGap(since, until, 0)
        self._gap = HistoryGap(min(since, known.since), max(until, known.until), known.number + len(gone))
        self.dropped += len(gone)
