"""What is read off the history now and then, beside the loop: what evictions lost and gained of late.

For how long finished workloads ran is read as well, where that says how long others are expected to go on.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from tenure.engine.run_times import RunTimes
from tenure.history import open_history
from tenure.history.errors import HistoryError
from tenure.history.reading.accounts import closed_accounts
from tenure.history.reading.finished_runs import RUNS_SINCE, finished_runs
from tenure.history.record import Origin
from tenure.history.scope import Scope
from tenure.history.store import HistoryStore
from tenure.model.cluster import EvictionOutcome, FinishedRuns
from tenure.model.settings import BreakerSettings
from tenure.model.values.problems import InvalidInputError
from tenure.shields.breaker import gathered

SETTLED: Final = 60_000_000
"""What is younger than this (µs) may not be written yet."""

EVERY_SECONDS: Final = 20.0
"""So often it is looked what became known."""

STANDING_BY_SECONDS: Final = 1.0
"""So soon after this process has begun to lead it is looked at the latest."""


class EvictionAccount:
    """A thread that reads the account while this process leads.

    ``outcomes`` is what was read last; None until it was read once since this process leads.

    ``finished`` has the finished runs, as long as they are ``wanted``.

    Parameters
    ----------
    address
        The history's store.
    origin
        The cluster and node pool whose workloads are looked at.
    clock
        Gives the time in µs since the epoch.
    told
        Called with what was read where it is not the same as before; with None once it is forgotten.
    leads
        Whether this process decides; one that stands by has no use for the account.
    failed
        Hears of an error that is not the store's; those the drain tells of.
    every
        Seconds between two looks.
    """

    def __init__(
        self,
        address: str,
        origin: Origin,
        clock: Callable[[], int],
        told: Callable[[tuple[EvictionOutcome, ...] | None], None],
        *,
        leads: Callable[[], bool],
        failed: Callable[[BaseException], None],
        every: float = EVERY_SECONDS,
    ) -> None:
        self.outcomes: tuple[EvictionOutcome, ...] | None = None
        self.window = BreakerSettings().window
        self.wanted, self.finished = False, tuple[FinishedRuns, ...]()
        self._runs, self._runs_until = RunTimes(), 0
        self._scope = Scope(origin.cluster, origin.pool)
        self._address, self._clock, self._told, self._every = address, clock, told, every
        self._leads, self._failed = leads, failed
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="account", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End; what is being read is left."""
        self._stopped.set()

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                self._look()
            except (HistoryError, InvalidInputError):
                pass  # the drain tells of what is wrong with the store
            except Exception as error:  # noqa: BLE001  no thread ends silently
                self._failed(error)
            self._stopped.wait(self._every if self._leads() else STANDING_BY_SECONDS)

    def _look(self) -> None:
        """Read the account and tell of it where it has changed; forget it where another process leads."""
        found = self._read() if self._leads() else None
        if found != self.outcomes:
            self._told(found)
        self.outcomes = found

    def _read(self) -> tuple[EvictionOutcome, ...]:
        now, window = self._clock(), self.window
        with open_history(self._address) as store:
            store.scope = self._scope
            if self.wanted:
                self._read_runs(store, now)
            return gathered(closed_accounts(store, now - window, now + 1), window)

    def _read_runs(self, store: HistoryStore, now: int) -> None:
        """Add the workloads that have finished since the last look, but for the last seconds, still to be written."""
        since, until = max(self._runs_until, now - RUNS_SINCE), now - SETTLED
        found = finished_runs(store, since, until)
        self._runs.add(found)
        self._runs_until = max(since, until)
        if found:
            self.finished = self._runs.plain()
