"""Readings that are taken now and then, while a setting needs them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

EVERY: Final = 30.0
"""Seconds between two looks; metrics servers measure about as often."""

FRESH: Final = 150_000_000
"""µs after which a reading says nothing any more."""


class PeriodicReads:
    """A thread that calls ``read`` every half minute for as long as its readings are wanted."""

    def __init__(self, name: str, read: Callable[[], None]) -> None:
        self._read = read
        self._wanted = threading.Event()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Begin, as soon as they are wanted."""
        self._thread.start()

    def stop(self) -> None:
        """End."""
        self._stopped.set()
        self._wanted.set()

    def want(self, *, wanted: bool) -> None:
        """Say whether they are wanted from now on."""
        if wanted:
            self._wanted.set()
        else:
            self._wanted.clear()

    def _run(self) -> None:
        while True:
            self._wanted.wait()
            if self._stopped.is_set():
                return
            self._read()
            self._stopped.wait(EVERY)
