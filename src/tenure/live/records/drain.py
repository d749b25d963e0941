"""Takes records to a store beside the loop, which never waits for it.

What cannot be written yet is kept, up to a bound; beyond it the oldest go, and once the store is back a record says
from when to when something is missing. Records have keys, so writing one again after a doubtful answer adds nothing.
While nothing waits to be written, the store is looked after.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Final

from tenure.history.drained_store import DrainedStore
from tenure.history.errors import HistoryError
from tenure.history.record import Draft, Origin, key_of, payload_of
from tenure.history.store import HistoryStore
from tenure.live.records.backlog import Backlog, HistoryGap
from tenure.model.values.problems import InvalidInputError

MOST: Final = 200_000
"""Records that wait at most."""

BATCH: Final = 5_000
PAUSES: Final = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
"""Seconds between tries while the store is away."""

PATIENCE: Final = 30.0
"""A store that has not answered for so many seconds counts as away."""


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
        Called when records are missing from the store that is written now, because some had to be dropped, or because
        another store has taken its place: what can be read off the cluster again may be handed over again.
    most
        Records that wait at most.
    pauses
        Seconds between tries while the store is away.
    patience
        A store that has not answered for so many seconds counts as away.
    tends
        Takes one step of looking after the store, as taking out what is too old, and gives whether there are more; it
        is called while nothing waits to be written, and raises nothing.
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
        patience: float = PATIENCE,
        tends: Callable[[HistoryStore], bool] = lambda _: False,
    ) -> None:
        self.origin = origin
        self.told, self.lost = told, lost
        self.pauses, self.patience, self.tends = pauses, patience, tends
        self.written = 0
        self._unwritable = 0
        self._backlog = Backlog(most)
        self._store = DrainedStore(address, origin)
        self._error = ""
        self._busy_since: float | None = None
        self._told_of_silence = False
        self._thread = threading.Thread(target=self._run, name="history", daemon=True)

    @property
    def backlog(self) -> int:
        """Count what waits to be written."""
        return len(self._backlog)

    @property
    def dropped(self) -> int:
        """Count the records that will never be written."""
        return self._backlog.dropped + self._unwritable

    @property
    def trouble(self) -> str:
        """Say why nothing is written; empty where nothing keeps records from being written."""
        since = self._busy_since
        silent = 0.0 if since is None else time.monotonic() - since
        return self._error or (f"{self._store.place}: it does not answer" if silent > self.patience else "")

    def start(self) -> None:
        """Begin to write."""
        self._thread.start()

    def add(self, drafts: Sequence[Draft]) -> None:
        """Hand records over; never waits."""
        if not self._told_of_silence and not self._error and self.trouble:
            self._told_of_silence = True
            self.told(_TROUBLE.format(self.trouble))
        if drafts:
            self._backlog.add(drafts)

    def stop(self, seconds: float = 5.0) -> None:
        """Write what waits, for so long at most, and end; what is left is told."""
        self._backlog.stop()
        if self._thread.is_alive():
            self._thread.join(seconds)
        if self.backlog:
            self.told(f"{self.backlog} records of the history were never written")

    def _run(self) -> None:
        tries = 0
        while True:
            batch = self._backlog.take(BATCH)
            if not batch:
                break
            self._busy_since = time.monotonic()
            error = self._attempt(batch)
            self._busy_since = None
            if error is None:
                tries = 0
                self._back()
                while self._backlog.is_idle and self._store.tend(self.tends):
                    self._busy_since = time.monotonic()
                self._busy_since = None
                continue
            self._away(error)
            if self._backlog.is_stopped:
                break
            self._backlog.pause(self.pauses[min(tries, len(self.pauses) - 1)])
            tries += 1
        self._store.close()

    def _attempt(self, batch: list[Draft]) -> str | None:
        """Write a batch and the gap before it; gives what kept it from that."""
        try:
            self._write(batch)
        except (HistoryError, InvalidInputError) as error:
            return str(error)
        except Exception as error:  # noqa: BLE001  this thread must not end, whatever a store comes up with
            return f"{self._store.place}: {type(error).__name__}: {error}"
        return None

    def _write(self, batch: list[Draft]) -> None:
        if self._store.open():
            self.told(f"another history stands at {self._store.place} than was written before; it is written now")
            self.lost()
        written, unwritable = self._store.append(batch)
        self.written += written
        gap = self._backlog.offer_gap()
        gaps = [] if gap is None else [gap_record(self.origin, gap, "the store could not be written in time")]
        for draft, why in unwritable:
            what = f"a record of kind {draft.kind} cannot be written: {why}"
            self.told(f"{what}; the history goes on without it")
            self._unwritable += 1
            gaps.append(gap_record(self.origin, HistoryGap(draft.at, draft.at, 1), what))
        if gaps:
            self._store.append(gaps)

    def _away(self, error: str) -> None:
        before, self._error = self._error, error
        if error != before:
            self.told(_TROUBLE.format(error))
        self._store.close()

    def _back(self) -> None:
        was_away = self._error or self._told_of_silence
        self._error, self._told_of_silence = "", False
        if was_away:
            self.told(f"the history is written again; {self.backlog} records wait")
        if self._backlog.written() is not None:
            self.lost()


def gap_record(origin: Origin, gap: HistoryGap, why: str) -> Draft:
    """Give the record that says what is missing."""
    payload = payload_of(since=gap.since, until=gap.until, why=why)
    return Draft(gap.since, "gap", value=gap.number, payload=payload, key=key_of(origin, "gap", *gap))


_TROUBLE: Final = "the history cannot be written: {}; scheduling goes on"
