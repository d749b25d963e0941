"""Reading from a pipe or a terminal so that a signal ends it, whenever it comes.

Python notes a signal, and acts on it before its next step. One that comes after the last step before the system is
asked to read is noted, and then the read waits for as long as nothing is written: for ever, where nothing is.
"""

from __future__ import annotations

import io
import select
from typing import IO, Final

_LOOK_EVERY: Final = 200
"""Milliseconds after which it is looked whether a signal has come."""

_AT_ONCE: Final = 1 << 20
"""Bytes for which room is made before they come."""


def read_interruptibly(stream: IO[bytes], size: int) -> bytes:
    """Read so many bytes, or fewer if the stream ends before."""
    if not isinstance(stream, io.BufferedReader) or not hasattr(select, "poll"):
        return stream.read(size)
    pieces, missing = [], size
    while missing:
        _wait_until_readable(stream)
        piece = stream.read1(min(missing, _AT_ONCE))
        if not piece:
            break
        pieces.append(piece)
        missing -= len(piece)
    return b"".join(pieces)


def _wait_until_readable(stream: io.BufferedReader) -> None:
    """Wait until something can be read, or the stream has ended; files on a disk are never waited for."""
    look = select.poll()
    look.register(stream.fileno(), select.POLLIN)
    while not look.poll(_LOOK_EVERY):
        pass
