"""Takes records to a store beside the loop, which never waits for it.

What cannot be written yet is kept, up to a bound; beyond it the oldest go, and once the store is back a record says
from when to when something is missing. Records have keys, so writing one again after a doubtful answer adds nothing.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from tenure.history import open_history
from tenure.history.errors import HistoryError
from tenure.history.record import Draft, Origin, key_of, payload_of
from tenure.history.store import HistoryStore
from tenure.model.problems import InvalidInputError

MOST: Final = 200_000
"""Records that wait at most."""

BATCH: Final = 5_000
PAUSES: Final = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
"""Seconds between tries while the store is away."""


class HistoryDrain:
    """A thread that writes what it is handed, in order, at least once.

    Parameters
    ----------
    address
        The store.
    origin
        Whose history it is.
    told
        Hears in a sentence that the store is away, and that it is back.
    lost
        Called once the store is back after some records had to be dropped: what can be read off the cluster again may
        be handed over again.
    """

    def __init__(
        self,
        address: str,
        origin: Origin,
        *,
        told: Callable[[str], None] = lambda _: None,
        lost: Callable[[], None] = lambda: None,
        most: int = MOST,
        pauses: Sequence[float] = PAUSES,
    ) -> None:
        self.address, self.origin = address, origin
        self.told, self.lost = told, lost
        self.most, self.pauses = most, pauses
        self.written = 0
        self.dropped = 0
        self.trouble = ""
        self._gap: tuple[int, int, int] | None = None
        self._waiting: deque[Draft] = deque()
        self._under_way = 0
        self._changed = threading.Condition()
        self._stopped = False
        self._store: HistoryStore | None = None
        self._thread = threading.Thread(target=self._run, name="history", daemon=True)

    @property
    def backlog(self) -> int:
        """Count what waits to be written."""
        return len(self._waiting)

    def start(self) -> None:
        """Begin to write."""
        self._thread.start()

    def add(self, drafts: Sequence[Draft]) -> None:
        """Hand records over; never waits."""
        if not drafts:
            return
        with self._changed:
            self._waiting.extend(drafts)
            excess = len(self._waiting) - self.most
            if excess > 0:
                self._drop(excess)
            self._changed.notify()

    def stop(self, seconds: float = 5.0) -> None:
        """Write what waits, for so long at most, and end."""
        with self._changed:
            self._stopped = True
            self._changed.notify()
        if self._thread.is_alive():
            self._thread.join(seconds)

    def _drop(self, number: int) -> None:
        """Leave out the oldest, but those that are being written at this moment."""
        spared = self._under_way if 2 * self._under_way <= self.most else 0
        kept = [self._waiting.popleft() for _ in range(spared)]
        self._under_way = spared
        self._note_gap([self._waiting.popleft() for _ in range(min(number, len(self._waiting)))])
        self._waiting.extendleft(reversed(kept))

    def _note_gap(self, gone: Sequence[Draft]) -> None:
        since, until = min(d.at for d in gone), max(d.at + d.value * (d.kind == "usage") for d in gone)
        if self._gap is None:
            self._gap = since, until, len(gone)
        else:
            self._gap = min(since, self._gap[0]), max(until, self._gap[1]), self._gap[2] + len(gone)
        self.dropped += len(gone)

    def _run(self) -> None:
        tries = 0
        while True:
            with self._changed:
                while not self._waiting and not self._stopped:
                    self._changed.wait()
                if not self._waiting:
                    break
                batch = [self._waiting[i] for i in range(min(BATCH, len(self._waiting)))]
                gap = self._gap
                self._under_way = len(batch)
            try:
                self._write(batch, gap)
            except (OSError, InvalidInputError) as error:
                self._away(error)
                if self._stopped:
                    break
                with self._changed:
                    self._under_way = 0
                    self._changed.wait_for(lambda: self._stopped, self.pauses[min(tries, len(self.pauses) - 1)])
                tries += 1
                continue
            tries = 0
            self._back(gap)
        self._close()

    def _write(self, batch: list[Draft], gap: tuple[int, int, int] | None) -> None:
        if self._store is None:
            self._store = open_history(self.address, write=True)
        self.written += self._store.append(self.origin, batch)
        if gap is not None:
            since, until, number = gap
            payload = payload_of(since=since, until=until, why="the store could not be written in time")
            key = key_of(self.origin, "gap", *gap)
            self._store.append(self.origin, [Draft(since, "gap", value=number, payload=payload, key=key)])

    def _away(self, error: Exception) -> None:
        text = str(error)
        if text != self.trouble:
            self.told(f"the history cannot be written: {text}; scheduling goes on")
        self.trouble = text
        self._close()

    def _back(self, gap: tuple[int, int, int] | None) -> None:
        if self.trouble:
            self.told(f"the history is written again; {len(self._waiting)} records wait")
            self.trouble = ""
        with self._changed:
            for _ in range(self._under_way):
                self._waiting.popleft()
            self._under_way = 0
            if self._gap == gap:
                self._gap = None
        if gap is not None:
            self.lost()

    def _close(self) -> None:
        store, self._store = self._store, None
        if store is not None:
            try:
                store.close()
            except HistoryError as error:
                self.trouble = str(error)
