"""The journal of a sweep: a line of JSON for each point that is done, on disk before the next one is told of."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from tenure.model.values.problems import InputProblem, InvalidInputError


class SweepJournal:
    """The results of a sweep by key, in a file that only grows. A line that a kill cut off counts as not written.

    Use it as a context; only one sweep at a time may have it open.

    Raises
    ------
    InvalidInputError
        The file is no journal, or another sweep writes to it.
    OSError
        It cannot be read or written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.results: dict[str, dict[str, Any]] = {}
        self._file: IO[bytes] | None = None

    def __enter__(self) -> Self:
        """Open the file and read what was done."""
        file = self.path.open("a+b")
        try:
            self._lock(file)
            self._read(file)
        except BaseException:
            file.close()
            raise
        self._file = file
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def add(self, key: str, result: dict[str, Any]) -> None:
        """Write that a point is done; once this returns, it stays done."""
        assert self._file is not None
        line = json.dumps({"key": key, "result": result}, ensure_ascii=False, allow_nan=False)
        self._file.write(line.encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())
        self.results[key] = result

    def _lock(self, file: IO[bytes]) -> None:
        import fcntl  # noqa: PLC0415  not on every system, and only sweeps need it

        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise self._problem(0, "another sweep writes to it; wait for that, or name another folder") from None

    def _read(self, file: IO[bytes]) -> None:
        file.seek(0)
        whole = 0
        for number, line in enumerate(file, 1):
            if not line.endswith(b"\n"):
                break  # cut off by a kill
            try:
                entry = json.loads(line)
                self.results[str(entry["key"])] = dict(entry["result"])
            except (ValueError, KeyError, TypeError):
                raise self._problem(number, "is no line of a sweep's journal; name another folder") from None
            whole += len(line)
        file.truncate(whole)

    def _problem(self, line: int, message: str) -> InvalidInputError:
        return InvalidInputError([InputProblem(str(self.path), line, "", message)])
