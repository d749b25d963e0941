"""Writing files so that a failure leaves the old file as it was."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

from tenure.model.values.problems import IS_FOLDER

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
    data = content.encode() if isinstance(content, str) else content
    if Path(path).is_dir():
        raise IsADirectoryError(21, IS_FOLDER, str(path))
    with _named(path):
        if is_stream(path):  # asked before links are resolved: a pipe has no path of its own
            with _stream(Path(path)) as stream:
                stream.write(data)
        else:
            _replace(Path(path).resolve(), data)


@contextmanager
def part_of(path: str | Path) -> Iterator[Path]:
    """Give a file that is written bit by bit and, once it is whole, takes the place of a target.

    It lies beside the target, or, where that takes what is written in turn, in a folder of its own, and is then copied
    into it. A link keeps pointing to its file. After an error the target is as it was.

    Raises
    ------
    OSError
        The target cannot be written.
    """
    if is_stream(path):
        with tempfile.TemporaryDirectory(prefix="tenure-") as folder:
            part = Path(folder, "part")
            yield part
            with part.open("rb") as whole, _stream(Path(path)) as stream:
                shutil.copyfileobj(whole, stream)
        return
    target = Path(path).resolve()
    part = _beside(target)
    try:
        yield part
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def _stream(path: Path) -> IO[bytes]:
    """Open what takes what is written in turn; a stream of the program's own goes on behind what it has."""
    descriptor = _descriptor(path)
    if descriptor is None:
        return path.open("wb")
    sys.stdout.flush()
    return os.fdopen(os.dup(descriptor), "wb")


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
    temporary = _beside(target)
    try:
        with temporary.open("wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _beside(target: Path) -> Path:
    """Make an empty file beside a target, under a name that no other file has, which may be read as the target may."""
    mode = target.stat().st_mode & 0o7777 if target.exists() else 0o666 & ~_umask()
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:100]}.", suffix=".tmp")
    try:
        os.fchmod(handle, mode)
    finally:
        os.close(handle)
    return Path(temporary)


def _umask() -> int:
    """Give the process's mask for new files; it can only be read by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
