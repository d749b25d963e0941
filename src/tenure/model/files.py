"""Writing files so that a failure leaves the old file as it was."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_STREAMS: Final = {"/dev/stdout": 1, "/dev/stderr": 2}
_DESCRIPTORS: Final = (Path("/dev/fd"), Path("/proc/self/fd"))


def write_atomically(path: str | Path, content: str | bytes) -> None:
    """Write a file as a whole or not at all; text as UTF-8.

    The content goes to a temporary file beside the target, reaches the disk, and then takes the target's name. A full
    disk or an interruption leaves the old file. A target that is no regular file is written to directly, and so are
    the program's own streams by name (``/dev/stdout``), behind what they have; a link keeps pointing to its file.

    Raises
    ------
    OSError
        It cannot be written; the error names the target.

    """
    given = Path(path)
    data = content.encode() if isinstance(content, str) else content
    descriptor = _descriptor(given)
    if descriptor is not None:
        sys.stdout.flush()
        with _named(path), os.fdopen(os.dup(descriptor), "wb") as stream:
            stream.write(data)
        return
    if given.exists() and not given.is_file():  # asked before links are resolved: a pipe has no path of its own
        if given.is_dir():
            raise IsADirectoryError(21, "is a directory; name a file in it", str(path))
        with _named(path), given.open("wb") as stream:
            stream.write(data)
        return
    with _named(path):
        _replace(given.resolve(), data)


@contextmanager
def _named(path: str | Path) -> Iterator[None]:
    """Let an error of the system say the name that the user gave."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None


def is_stream(path: str | Path) -> bool:
    """Tell whether a path leads to something that takes what is written in turn, not to a regular file."""
    given = Path(path)
    return _descriptor(given) is not None or (given.exists() and not given.is_file())


def _descriptor(path: Path) -> int | None:
    """Give the number of the program's own stream that a path names; None for any other path."""
    found = _STREAMS.get(str(path))
    if found is None and path.parent in _DESCRIPTORS and path.name.isdecimal():
        found = int(path.name)
    return found


def _replace(target: Path, data: bytes) -> None:
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:100]}.", suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        Path(temporary).chmod(target.stat().st_mode & 0o7777 if target.exists() else 0o666 & ~_umask())
        Path(temporary).replace(target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _umask() -> int:
    """Give the process's mask for new files; it can only be read by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
