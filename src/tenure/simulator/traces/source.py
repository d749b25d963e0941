"""Opening a trace file: gzip, encodings, and everything that can be wrong with a file as such."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, cast

from tenure.model.documents.encoding import decoded
from tenure.model.documents.interruptible import read_interruptibly
from tenure.model.values.problems import IS_FOLDER, InputProblem, InvalidInputError

GZIP_MAGIC = b"\x1f\x8b"
PARQUET_MAGIC = b"PAR1"
MAX_BYTES = 160 << 20
"""Bytes of a trace that are read, after unpacking; larger ones are cut into parts."""

MAX_EXPANSION = 200
"""How many times its size a packed trace may unpack to, beyond `MAX_BOMB` bytes; real ones pack to a tenth."""

MAX_BOMB = 16 << 20
"""Bytes that any packed trace may unpack to."""

PIECE = 1 << 20
HEAD = 64 * 1024
"""Bytes from which it is told what a file is."""

MAX_COUNTED = 100_000
"""Malformed lines after which reading stops."""

MAX_PROBLEMS = 100
"""Malformed lines that are reported one by one; a file of another kind would otherwise fill the screen."""


@dataclass(frozen=True, slots=True)
class TraceSource:
    """A file's content, decompressed."""

    path: Path
    data: bytes

    @property
    def name(self) -> str:
        """The file as the user named it, for messages."""
        return str(self.path)

    @property
    def is_parquet(self) -> bool:
        """Whether the content is Apache Parquet."""
        return self.data.startswith(PARQUET_MAGIC)

    @property
    def head(self) -> str:
        """The beginning of the content, by which it is told what the file is; what is no UTF-8 is replaced."""
        return self.data[:HEAD].decode("utf-8-sig", errors="replace")

    def text(self) -> str:
        """Decode the content as UTF-8.

        Raises
        ------
        InvalidInputError
            It is not UTF-8; the first line that is not is named.
        """
        return decoded(self.name, self.data)

    def lines(self) -> Iterator[str]:
        """Give the lines of `text` one after the other, each with its end, without a second copy of all of it."""
        self.text()
        return iter(io.TextIOWrapper(io.BytesIO(self.data), encoding="utf-8-sig", newline="\n"))

    def problem(self, line: int, message: str, path: str = "") -> InputProblem:
        """Make a problem of this file."""
        return InputProblem(self.name, line, path, message)

    def fail(self, message: str, line: int = 0) -> InvalidInputError:
        """Make the error of a file that is wrong as a whole."""
        return InvalidInputError([self.problem(line, message)])


def open_source(path: Path) -> TraceSource:
    """Read a whole file into memory, and decompress it if its first bytes say that it is gzipped.

    Raises
    ------
    InvalidInputError
        The file is missing, a directory, not readable, empty, or a gzip that is cut or damaged.
    """
    try:
        with path.open("rb") as stream:
            data = _read(path, stream)
        if data.startswith(GZIP_MAGIC):
            data = _decompress(path, data)
    except (OSError, ValueError) as error:
        raise InvalidInputError([InputProblem(str(path), 0, "", _os_message(path, error))]) from error
    if not data.strip():
        raise InvalidInputError([InputProblem(str(path), 0, "", "the file is empty: a trace has at least one record")])
    return TraceSource(path, data)


def _read(path: Path, stream: IO[bytes], packed: int | None = None) -> bytes:
    """Read a stream to its end, piece by piece, up to `MAX_BYTES`; a packed one up to what its size allows."""
    pieces, size = [], 0
    expected = MAX_BYTES if packed is None else max(MAX_BOMB, MAX_EXPANSION * packed)
    while piece := read_interruptibly(stream, PIECE):
        pieces.append(piece)
        size += len(piece)
        if expected < size <= MAX_BYTES:
            message = f"unpacks to more than {MAX_EXPANSION} times its size, which no trace does: unpack it first"
            raise InvalidInputError([InputProblem(str(path), 0, "", message)])
        if size > MAX_BYTES:
            message = f"is larger than the {MAX_BYTES >> 20} MiB of a trace that are read, unpacked: cut it into parts"
            raise InvalidInputError([InputProblem(str(path), 0, "", message)])
    return b"".join(pieces)


def _os_message(path: Path, error: OSError | ValueError) -> str:
    if isinstance(error, ValueError):
        return f"is no name of a file: {error}"
    if isinstance(error, FileNotFoundError):
        return "there is no such file"
    if isinstance(error, IsADirectoryError) or path.is_dir():
        return IS_FOLDER
    if isinstance(error, PermissionError):
        return "permission denied: the file cannot be read"
    return f"cannot be read: {error.strerror or error}"


def _decompress(path: Path, data: bytes) -> bytes:
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as unpacked:
            return _read(path, cast("IO[bytes]", unpacked), len(data))
    except EOFError as error:
        message = "the gzip file ends too early: it was cut, fetch it again"
        raise InvalidInputError([InputProblem(str(path), 0, "", message)]) from error
    except (OSError, zlib.error) as error:
        message = f"the gzip file is damaged ({error}): fetch it again"
        raise InvalidInputError([InputProblem(str(path), 0, "", message)]) from error


@dataclass(slots=True)
class ProblemList:
    """Problems of single lines, collected so that all are reported together."""

    source: TraceSource
    problems: list[InputProblem] = field(default_factory=list)
    more: int = 0

    def add(self, line: int, message: str, path: str = "") -> None:
        """Note one; beyond `MAX_PROBLEMS` they are only counted."""
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(self.source.problem(line, message, path))
        else:
            self.more += 1
            if self.more >= MAX_COUNTED:
                self.problems.append(self.source.problem(line, "so many lines are wrong that reading stopped here"))
                self.raise_if_any()

    def raise_if_any(self) -> None:
        """Raise `InvalidInputError` with all of them, if there are any."""
        if not self.problems:
            return
        if self.more:
            self.problems.append(self.source.problem(0, f"and {self.more} more lines like these"))
        raise InvalidInputError(self.problems)
