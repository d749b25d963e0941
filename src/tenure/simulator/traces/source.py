"""Opening a trace file: gzip, encodings, and everything that can be wrong with a file as such."""

from __future__ import annotations

import gzip
import zlib
from dataclasses import dataclass, field
from pathlib import Path

from tenure.model.problems import InputProblem, InvalidInputError

GZIP_MAGIC = b"\x1f\x8b"
PARQUET_MAGIC = b"PAR1"
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

    def text(self) -> str:
        """Decode the content as UTF-8.

        Raises
        ------
        InvalidInputError
            It is not UTF-8; the first line that is not is named.
        """
        try:
            return self.data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = self.data.count(b"\n", 0, error.start) + 1
            raise InvalidInputError([self.problem(line, "not text: a trace is a UTF-8 text file")]) from error

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
        data = path.read_bytes()
    except OSError as error:
        raise InvalidInputError([InputProblem(str(path), 0, "", _os_message(path, error))]) from error
    if data.startswith(GZIP_MAGIC):
        data = _decompress(path, data)
    if not data.strip():
        raise InvalidInputError([InputProblem(str(path), 0, "", "the file is empty: a trace has at least one record")])
    return TraceSource(path, data)


def _os_message(path: Path, error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "there is no such file"
    if isinstance(error, IsADirectoryError) or path.is_dir():
        return "this is a directory: name the trace file itself"
    if isinstance(error, PermissionError):
        return "permission denied: the file cannot be read"
    return f"cannot be read: {error.strerror or error}"


def _decompress(path: Path, data: bytes) -> bytes:
    try:
        return gzip.decompress(data)
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

    def raise_if_any(self) -> None:
        """Raise `InvalidInputError` with all of them, if there are any."""
        if not self.problems:
            return
        if self.more:
            self.problems.append(self.source.problem(0, f"and {self.more} more lines like these"))
        raise InvalidInputError(self.problems)
