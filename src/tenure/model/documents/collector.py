"""Keeps the garbage collector from work in vain."""

from __future__ import annotations

import atexit
import gc
from collections.abc import Iterator
from contextlib import contextmanager


def count_as_old() -> None:
    """Count all that was made as old, without looking it through: the collector comes to it last."""
    if not gc.get_freeze_count():
        gc.freeze()
        gc.unfreeze()


def end_without_collecting() -> None:
    """Let the process end without a last search for garbage: the system takes back all of its memory at once."""
    atexit.unregister(gc.freeze)
    atexit.register(gc.freeze)


@contextmanager
def collector_paused() -> Iterator[None]:
    """Hold the garbage collector while millions of objects are made of which none is garbage."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@contextmanager
def collector_seldom() -> Iterator[None]:
    """Let the garbage collector look through what is new ten times less often: what stays is counted as old."""
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(10 * before[0], *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
