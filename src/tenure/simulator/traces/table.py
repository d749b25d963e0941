"""Reading tables: CSV with a header, every malformed line reported with its number."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from tenure.model.kinds import LONGEST_NAME
from tenure.model.problems import shorten
from tenure.simulator.traces.source import ProblemList, TraceSource

V = TypeVar("V")

MAX_TASKS = 500_000
"""Tasks of a trace that are simulated, about a KiB of memory each; those outside of --from and --to do not count."""


class TableRow:
    """A line of a table. A cell that cannot be read is reported and makes the row not `ok`; reading goes on."""

    __slots__ = ("_cells", "_columns", "_problems", "line", "ok")

    def __init__(self, line: int, cells: Sequence[str], columns: dict[str, int], problems: ProblemList) -> None:
        self.line = line
        self.ok = True
        self._cells = cells
        self._columns = columns
        self._problems = problems

    def text(self, column: str) -> str:
        """Give a cell; empty where the table has no such column."""
        index = self._columns.get(column)
        return "" if index is None else self._cells[index].strip()

    def value(self, column: str, read: Callable[[str], V], default: V) -> V:
        """Read a cell; ``default`` where it is empty or cannot be read."""
        text = self.text(column)
        if not text:
            return default
        try:
            return read(text)
        except ValueError as error:
            self.reject(column, str(error))
            return default

    def need(self, column: str, read: Callable[[str], V], default: V) -> V:
        """Read a cell that must not be empty; ``default`` only stands in until the problems are raised."""
        if not self.text(column):
            self.reject(column, "empty, but every record needs it")
            return default
        return self.value(column, read, default)

    def reject(self, column: str, message: str) -> None:
        """Report what is wrong with a cell."""
        self.ok = False
        self._problems.add(self.line, message, column)


def read_table(
    source: TraceSource, required: Sequence[str], known: Sequence[str], problems: ProblemList
) -> Iterator[TableRow]:
    """Give the rows of a CSV file, lines with a wrong number of fields reported and left out.

    Raises
    ------
    InvalidInputError
        A required column is missing, a column is unknown, or one stands twice.
    """
    lines = csv.reader(source.lines(), strict=True)
    try:
        header = [name.strip() for name in next(lines)]
        columns = _columns(source, header, required, known)
        for cells in lines:
            if not cells:
                continue
            if len(cells) != len(header):
                message = f"{len(cells)} fields where the header has {len(header)}: was the line cut?"
                problems.add(lines.line_num, message)
                continue
            yield TableRow(lines.line_num, cells, columns, problems)
    except csv.Error as error:
        problems.add(lines.line_num, f"no valid CSV: {error}")


def _columns(source: TraceSource, header: list[str], required: Sequence[str], known: Sequence[str]) -> dict[str, int]:
    problems = ProblemList(source)
    columns: dict[str, int] = {}
    for index, name in enumerate(header):
        if name not in known:
            problems.add(1, f"unknown column; known are {', '.join(known)}", name or f"column {index + 1}")
        elif name in columns:
            problems.add(1, "this column stands twice", name)
        columns[name] = index
    for name in required:
        if name not in columns:
            problems.add(1, "this column is missing", name)
    problems.raise_if_any()
    return columns


def first_line(head: str) -> list[str]:
    """Give the column names of a CSV file from the beginning of its content."""
    return [name.strip() for name in head.split("\n", 1)[0].split(",")]


def plain_name(text: str) -> str:
    """Take a name as it is.

    Raises
    ------
    ValueError
        It is longer than Kubernetes takes, or holds what cannot be printed, such as bidirectional controls.
    """
    if len(text) > LONGEST_NAME:
        raise ValueError(f"{shorten(text)} has {len(text)} letters: a name has {LONGEST_NAME} at most")
    if not text.isprintable():
        raise ValueError(f"{shorten(text)} holds characters that cannot be printed: leave them out")
    return text


class TaskLimit:
    """Counts the tasks of a trace, so that one too large to be simulated is refused before it fills the memory."""

    __slots__ = ("_left",)

    def __init__(self) -> None:
        self._left = MAX_TASKS

    def take(self, source: TraceSource, line: int, tasks: int) -> None:
        """Count some more.

        Raises
        ------
        InvalidInputError
            They are too many.
        """
        self._left -= tasks
        if self._left < 0:
            message = f"more than {MAX_TASKS:,} tasks up to here: take a part of the trace with --from and --to"
            raise source.fail(message, line)


class UniqueNames:
    """The check that each job's name stands once."""

    __slots__ = ("_seen",)

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}

    def check(self, row: TableRow, column: str, name: str) -> None:
        """Report a name that stood before."""
        first = self._seen.setdefault(name, row.line)
        if first != row.line:
            row.reject(column, f"{name!r} stands in line {first} already: each job has its own name")
