"""Whether a watch works, and if not, why and for how long."""

from __future__ import annotations

import threading
import time

BROKEN_SECONDS = 20.0
"""A watch that has not worked for so long is broken: nothing is decided by what it last said without being told so."""


class WatchHealth:
    """The health of a watch, which its own thread tells and all others read.

    ``error`` says why it does not work, and ``is_forbidden`` whether that is for want of a right. Once ``stopped`` is
    set, what breaks is no failure.
    """

    def __init__(self, stopped: threading.Event) -> None:
        self.error = ""
        self.is_forbidden = False
        self._failing_since: float | None = None
        self._stopped = stopped

    @property
    def broken_for(self) -> float:
        """Seconds for which it has not worked; 0 while it does."""
        since = self._failing_since
        return 0.0 if since is None else time.monotonic() - since

    def works(self) -> None:
        """Note that it works."""
        self.error, self.is_forbidden, self._failing_since = "", False, None

    def fails(self, error: str, *, is_forbidden: bool = False) -> None:
        """Note that it does not work; the time counts from the first of several failures."""
        if self._stopped.is_set():
            return
        self.error, self.is_forbidden = error, is_forbidden
        if self._failing_since is None:
            self._failing_since = time.monotonic()
