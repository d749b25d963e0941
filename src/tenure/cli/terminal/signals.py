"""Signals that end a command in an orderly way."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Final

ENDING: Final = (signal.SIGTERM, signal.SIGINT)
"""The signals that ask for an orderly end."""


@contextmanager
def end_as_interruption() -> Iterator[None]:
    """Let SIGTERM end the block as Ctrl-C does, by `KeyboardInterrupt`: there are processes to end with it."""
    if threading.current_thread() is not threading.main_thread():  # no signal comes here
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def on_end(stop: Callable[[], None]) -> None:
    """Call ``stop`` when the process is asked to end.

    A handler runs in the main thread, between any two of its steps: that thread may hold a lock that ``stop`` waits
    for, and would never release it. So the handler tells a thread, by what may be done at any time.
    """
    asked: SimpleQueue[int] = SimpleQueue()

    def wait() -> None:
        while True:
            asked.get()
            stop()

    threading.Thread(target=wait, name="signals", daemon=True).start()
    for number in ENDING:
        signal.signal(number, lambda number, _: asked.put(number))
