"""What evictions lost and gained of late, read off the history now and then, beside the loop."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from tenure.history import open_history
from tenure.history.accounts import closed_accounts
from tenure.history.errors import HistoryError
from tenure.model.cluster import EvictionOutcome
from tenure.model.problems import InvalidInputError
from tenure.model.settings import BreakerSettings
from tenure.shields.breaker import gathered

EVERY_SECONDS: Final = 20.0
"""So often it is looked what became known."""


class EvictionAccount:
    """A thread that reads the account. ``outcomes`` is None until it was read once; what was read last stays.

    Parameters
    ----------
    address
        The history's store.
    clock
        Gives the time in µs since the epoch.
    told
        Called with what was read where it is not the same as before.
    every
        Seconds between two looks.
    """

    def __init__(
        self,
        address: str,
        clock: Callable[[], int],
        told: Callable[[tuple[EvictionOutcome, ...]], None],
        every: float = EVERY_SECONDS,
    ) -> None:
        self.outcomes: tuple[EvictionOutcome, ...] | None = None
        self.window = BreakerSettings().window
        self._address, self._clock, self._told, self._every = address, clock, told, every
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
            found: tuple[EvictionOutcome, ...] | None
            try:
                found = self._read()
            except (HistoryError, InvalidInputError):
                found = self.outcomes  # the drain tells of what is wrong with the store
            if found is not None and found != self.outcomes:
                self.outcomes = found
                self._told(found)
            self._stopped.wait(self._every)

    def _read(self) -> tuple[EvictionOutcome, ...]:
        now, window = self._clock(), self.window
        with open_history(self._address) as store:
            return gathered(closed_accounts(store, now - window, now + 1), window)
