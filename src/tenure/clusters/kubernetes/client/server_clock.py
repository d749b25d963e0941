"""The API server's time: what it wrote is compared with it, and not with the clock of the machine that decides."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from email.utils import parsedate_to_datetime
from statistics import median
from typing import Final

TOLERANCE: Final = 2_000_000
"""µs by which the machine's own clock may differ: the server's says whole seconds, so that less cannot be told."""

_SAMPLES: Final = 15
_EVERY: Final = 0.5
_SLOWEST: Final = 1.0
"""Seconds between two samples at least, and seconds that an answer may have taken to be one."""

_HALF_SECOND: Final = 500_000


class ServerClock:
    """A clock that goes by the API server's where this machine's is wrong. Safe to use from several threads.

    Each answer carries the server's time in whole seconds. Of the last samples the median counts, so that neither one
    slow answer nor one server of several decides.
    """

    def __init__(
        self,
        wall: Callable[[], int] = lambda: time.time_ns() // 1000,
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        self._wall = wall
        self._steady = steady
        self._origins: deque[float] = deque(maxlen=_SAMPLES)
        self._last = -_EVERY

    def steady(self) -> float:
        """Give the seconds of a clock that never jumps, for `note`."""
        return self._steady()

    def note(self, date: str | None, sent: float) -> None:
        """Take the ``Date`` of an answer to a request that was sent at ``sent`` (as `steady` says)."""
        there = self._steady()
        if date is None or there - self._last < _EVERY or there - sent > _SLOWEST:
            return
        try:
            said = round(parsedate_to_datetime(date).timestamp() * 1_000_000)
        except (ValueError, OverflowError):
            return
        self._last = there
        self._origins.append(said + _HALF_SECOND - (sent + there) / 2 * 1_000_000)

    def now(self) -> int:
        """Give the time in µs since the epoch: this machine's, or where that is off the server's."""
        own = self._wall()
        if not self._origins:
            return own
        server = round(median(self._origins.copy()) + self._steady() * 1_000_000)
        return own if abs(server - own) <= TOLERANCE else server

    @property
    def skew(self) -> float:
        """Seconds by which this machine's clock is ahead of the server's; 0 where that is less than can be told."""
        return (self._wall() - self.now()) / 1_000_000
