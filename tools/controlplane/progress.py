"""Says that a long step goes on, so that nobody takes it for one that hangs: often on a terminal, seldom in a log."""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType
from typing import Final, Self, TextIO

ON_TERMINAL: Final = 1.0
"""Seconds between two signs on a terminal, where each takes the last one's place."""

IN_LOG: Final = 30.0
"""Seconds between two signs in a log, where each is a line."""


class LongStep:
    """A step that takes long. While it lasts, what it is and its seconds are told on standard error."""

    def __init__(self, what: str, to: TextIO | None = None) -> None:
        self._what = what
        self._to = to or sys.stderr
        self._is_terminal = self._to.isatty()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._tell, daemon=True)

    def __enter__(self) -> Self:
        """Say that it begins, and go on saying that it lasts."""
        self._began = time.monotonic()
        self._line(f"{self._what} …", ends=not self._is_terminal)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Say how long it took, or that it failed."""
        self._ended.set()
        self._thread.join()
        self._line(f"{self._what}: {'done' if kind is None else 'failed'} after {self._seconds()} s")

    def _tell(self) -> None:
        while not self._ended.wait(ON_TERMINAL if self._is_terminal else IN_LOG):
            self._line(f"{self._what} … {self._seconds()} s", ends=not self._is_terminal)

    def _seconds(self) -> int:
        return round(time.monotonic() - self._began)

    def _line(self, text: str, *, ends: bool = True) -> None:
        self._to.write(("\r\x1b[K" if self._is_terminal else "") + text + ("\n" if ends else ""))
        self._to.flush()
