"""Writing files so that a failure leaves the old file as it was."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def write_atomically(path: str | Path, content: str | bytes) -> None:
    """Write a file as a whole or not at all; text as UTF-8.

    The content goes to a temporary file beside the target, reaches the disk, and then takes the target's name. A full
    disk or an interruption leaves the old file. A target that is no regular file (``/dev/stdout``) is written to
    directly; a link keeps pointing to its file.

    Raises
    ------
    OSError
        It cannot be written; the error names the target.

    """
    given = Path(path)
    data = content.encode() if isinstance(content, str) else content
    if given.exists() and not given.is_file():  # asked before links are resolved: a pipe has no path of its own
        if given.is_dir():
            raise IsADirectoryError(21, "is a directory; name a file in it", str(path))
        with given.open("wb") as stream:
            stream.write(data)
        return
    target = given.resolve()
    try:
        _replace(target, data)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None


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
