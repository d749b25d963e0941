"""Standard streams that lose nothing silently: what is written is whole, or the exit code says that it is not."""

from __future__ import annotations

import errno
import io
import os
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

CLOSED: Final = "standard output is closed; let it go to a file or to /dev/null"
_READER_LEFT: Final = select.POLLERR if hasattr(select, "POLLERR") else 0


class ClosedOutput(io.IOBase):
    """Stands for a standard output that was closed before the program began: each write fails."""

    @property
    def buffer(self) -> ClosedOutput:
        """The same for bytes."""
        return self

    def write(self, _text: str | bytes, /) -> int:
        """Refuse.

        Raises
        ------
        OSError
            Always: the text would never be read.
        """
        raise OSError(errno.EBADF, CLOSED)


def prepare_streams() -> None:
    """Make both standard streams fit to be written to.

    Without a buffer (``PYTHONUNBUFFERED``) Python drops what the system did not take of a write; a buffer below the
    text writes all of it or fails. A stream that is closed gets a descriptor of its own, so that no file that is opened
    later takes its number and is written to in its place.
    """
    _fill_descriptors()
    if sys.stdout is None:
        sys.stdout = ClosedOutput()
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115  as long as the program runs
    if sys.stdout is sys.__stdout__:  # not what a program that calls `main` has put in its place
        sys.stdout = _buffered(sys.stdout)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal without UTF-8 is no reason to fail


def _fill_descriptors() -> None:
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)


def _buffered(stream: Any) -> Any:
    raw = getattr(stream, "buffer", None)
    if not isinstance(raw, io.RawIOBase):
        return stream
    below = io.BufferedWriter(raw)
    return io.TextIOWrapper(below, encoding=stream.encoding, errors=stream.errors, line_buffering=True)


def reader_left() -> bool:
    """Tell whether standard output is a pipe or socket that is not read any more."""
    try:
        look = select.poll()
        look.register(sys.stdout.fileno(), 0)
        return any(event & _READER_LEFT for _, event in look.poll(0))
    except (AttributeError, OSError, ValueError):
        return False


def silence() -> None:
    """Let nothing more be written: it is not read, and the interpreter's own last flush must not fail."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


@contextmanager
def reader_may_leave() -> Iterator[None]:
    """Go on behind the block where the reader of standard output leaves within it: there are files to write yet."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        if not reader_left():
            raise
        silence()
