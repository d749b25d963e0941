"""A lock that threads are given in the order in which they asked for it: that of `threading` may be had by the last."""

from __future__ import annotations

import threading
from collections import deque


class OrderedLock:
    """A lock for ``with``. A thread that asks is served before all that ask later; it may not ask while it has it."""

    def __init__(self) -> None:
        self._own = threading.Lock()
        self._is_held = False
        self._waiting: deque[threading.Event] = deque()

    @property
    def waiting(self) -> int:
        """How many threads wait for it."""
        return len(self._waiting)

    def __enter__(self) -> None:
        """Wait for the turn."""
        with self._own:
            if not self._is_held:
                self._is_held = True
                return
            mine = threading.Event()
            self._waiting.append(mine)
        mine.wait()

    def __exit__(self, *_: object) -> None:
        """Hand it to the one that has waited longest."""
        with self._own:
            if self._waiting:
                self._waiting.popleft().set()
            else:
                self._is_held = False
