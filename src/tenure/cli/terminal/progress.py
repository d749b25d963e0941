"""Progress of a simulation or a plan on a terminal, and an end by Ctrl-C at a moment at which all is consistent."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import FrameType
from typing import IO, Any, Protocol

from tenure.report.tables import terminal, text_width
from tenure.report.words import duration

INTERVAL_S = 0.1
"""Seconds between two changes of the line."""

SECOND = 1_000_000


class ProgressState(Protocol):
    """The progress of a simulation: jobs done, of how many, and the virtual time in µs."""

    @property
    def done(self) -> int:
        """Jobs that have ended or were dropped."""

    @property
    def jobs(self) -> int:
        """Jobs of the trace."""

    @property
    def now(self) -> int:
        """Virtual time in µs."""


class ProgressLine:
    """A line that is written over and over: jobs, rate, time left and virtual time.

    Parameters
    ----------
    stream
        Where to; nothing is written unless it is a terminal.
    clock
        Seconds that only grow.
    """

    def __init__(self, stream: IO[str] | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self.stream = sys.stderr if stream is None else stream
        self.clock = clock
        self.live = self.stream.isatty()
        self.began = clock()
        self.next = self.began + INTERVAL_S
        self.shown = 0

    def __call__(self, step: ProgressState) -> None:
        """Show how far it is, unless that was shown just now."""
        if not self.live:
            return
        now = self.clock()
        if now >= self.next:
            self.next = now + INTERVAL_S
            self.show(progress_text(step.done, step.jobs, step.now, now - self.began))

    def show(self, text: str) -> None:
        """Replace the line."""
        if not self.live:
            return
        text = text[: terminal(self.stream).width - 1]
        width = text_width(text)
        self.stream.write(f"\r{text}{' ' * max(0, self.shown - width)}")
        self.stream.flush()
        self.shown = width

    def clear(self) -> None:
        """Take the line away."""
        if self.live and self.shown:
            self.stream.write(f"\r{' ' * self.shown}\r")
            self.stream.flush()
            self.shown = 0


@contextmanager
def busy(what: str, stream: IO[str] | None = None, first: float = 1.0) -> Iterator[None]:
    """Show on a terminal what is being done and for how long, once it takes longer than ``first`` seconds."""
    line = ProgressLine(stream)
    if not line.live:
        yield
        return
    ended = threading.Event()

    def show() -> None:
        while not ended.wait(first):
            line.show(f"{what} …  {duration(round(line.clock() - line.began))}")

    shower = threading.Thread(target=show, daemon=True)
    shower.start()
    try:
        yield
    finally:
        ended.set()
        shower.join()
        line.clear()


def reading(*, live: bool = False) -> AbstractContextManager[None]:
    """Show on a terminal that something is read, but of a live cluster: what is odd there is told while it is read."""
    return nullcontext() if live else busy("reading")


def progress_text(done: int, jobs: int, now: int, elapsed: float) -> str:
    """Put progress in words. ``now`` is µs of virtual time, ``elapsed`` seconds that passed."""
    rate = done / elapsed if elapsed > 0 else 0.0
    left = f"{duration(round((jobs - done) / rate))} left" if rate else "just begun"
    share = f"{done * 100 // jobs}%" if jobs else "100%"
    return f"{share}  {done:,} of {jobs:,} jobs  {rate:,.0f} jobs/s  {left}  virtual time {duration(now / SECOND)}"


class Interruption:
    """The state of Ctrl-C: whether it was pressed. `check` raises at a moment of the caller's choice."""

    def __init__(self) -> None:
        self.wanted = False

    def check(self) -> None:
        """Raise `KeyboardInterrupt` if Ctrl-C was pressed."""
        if self.wanted:
            self.wanted = False
            raise KeyboardInterrupt


@contextmanager
def interruptible() -> Iterator[Interruption]:
    """Hold the first Ctrl-C, or SIGTERM, back until `Interruption.check`; the second one comes through at once.

    An interruption in the middle of a decision would leave half of it in the log.
    """
    interruption = Interruption()

    def note(number: int, frame: FrameType | None) -> None:
        if interruption.wanted:
            signal.default_int_handler(number, frame)
        interruption.wanted = True

    before: list[tuple[signal.Signals, Any]] = []
    try:
        before.extend((number, signal.signal(number, note)) for number in (signal.SIGINT, signal.SIGTERM))
    except ValueError:  # not the main thread: nobody presses Ctrl-C here
        yield interruption
        return
    try:
        yield interruption
    finally:
        for number, handler in before:
            signal.signal(number, handler)
