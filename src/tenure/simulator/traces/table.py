"""Reading tables: CSV with a header, every malformed line reported with its number."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from tenure.model.fields.kinds import LONGEST_NAME
from tenure.model.values.problems import shorten
from tenure.simulator.traces.columns import TraceTable
from tenure.simulator.traces.mapping import (
    NO_MAPPING,
    ColumnMapping,
    FurtherColumns,
    further_columns,
    listed,
    mapped,
)
from tenure.simulator.traces.parquet import read_parquet
from tenure.simulator.traces.source import ProblemList, TraceSource

if TYPE_CHECKING:
    import _csv

V = TypeVar("V")

MAX_TASKS = 500_000
"""Tasks of a trace that are simulated, about a KiB of memory each; those outside of --from and --to do not count."""

MOST_COLUMNS = 10_000
"""Columns of a table: no file of jobs has so many, and a line that is packed well may have millions."""


@dataclass(frozen=True, slots=True)
class TableLayout:
    """How a table is written.

    ``separator`` stands between cells, which may be ``quoted``. A table without a line of column names has those of
    ``header``. With ``any_case`` column names are read in lower case; those in ``same`` are read as others. Cells that
    hold a word of ``missing``, in any case, are empty.
    """

    separator: str = ","
    quoted: bool = True
    header: tuple[str, ...] | None = None
    any_case: bool = False
    missing: frozenset[str] = frozenset()
    same: Mapping[str, str] = field(default_factory=dict)


PLAIN = TableLayout()


class TableRow:
    """A line of a table. A cell that cannot be read is reported and makes the row not `ok`; reading goes on."""

    __slots__ = ("_cells", "_table", "line", "ok")

    def __init__(self, line: int, cells: Sequence[str], table: TableHead) -> None:
        self.line = line
        self.ok = True
        self._cells = cells
        self._table = table

    def text(self, column: str) -> str:
        """Give a cell; empty where the table has no such column."""
        index = self._table.columns.get(column)
        if index is None:
            return ""
        text = self._cells[index].strip()
        return "" if self._table.missing and text.lower() in self._table.missing else text

    def labels(self) -> dict[str, str]:
        """Give the cells of further columns, which are no field, by their names."""
        return self._table.further.labels(self._cells)

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
        """Report what is wrong with a cell; the column is named as the file names it."""
        self.ok = False
        self._table.problems.add(self.line, message, self._table.names.get(column, column))


@dataclass(slots=True)
class TableHead:
    """What all rows of a table share: the places of columns, and where problems go.

    ``names`` has the file's own names of columns that a mapping named otherwise.
    """

    columns: dict[str, int]
    problems: ProblemList
    further: FurtherColumns
    missing: frozenset[str] = frozenset()
    names: dict[str, str] = field(default_factory=dict)


class TraceTableReader:
    """Reads a table; afterwards it says what was left out of it."""

    def __init__(
        self, source: TraceSource, table: TraceTable, problems: ProblemList, *,
        layout: TableLayout = PLAIN, mapping: ColumnMapping = NO_MAPPING,
    ) -> None:  # fmt: skip
        self._source = source
        self._table = table
        self._problems = problems
        self._layout = layout
        self._mapping = mapping
        self._further = FurtherColumns({})

    def notes(self) -> tuple[str, ...]:
        """Say what was left out of the labels, once all rows are read."""
        return tuple(self._further.notes())

    def rows(self) -> Iterator[TableRow]:
        """Give the rows, lines with a wrong number of fields reported and left out.

        Raises
        ------
        InvalidInputError
            A needed column is missing, a column is unknown, one stands twice, or they are too many.
        """
        if self._source.is_parquet:
            yield from self._of(enumerate(read_parquet(self._source), 1))
            return
        lines = self._lines()
        try:
            yield from self._of((lines.line_num, cells) for cells in lines)
        except csv.Error as error:
            self._problems.add(lines.line_num, f"no valid CSV: {error}")

    def _lines(self) -> _csv.Reader:
        separator, lines = self._layout.separator, self._source.lines()
        if self._layout.quoted:
            return csv.reader(lines, strict=True, delimiter=separator)
        return csv.reader(lines, strict=True, delimiter=separator, quoting=csv.QUOTE_NONE)

    def _of(self, lines: Iterator[tuple[int, Sequence[str]]]) -> Iterator[TableRow]:
        lines = ((line, cells) for line, cells in lines if cells)
        header = list(self._layout.header or next(lines, (1, ()))[1])
        if len(header) > MOST_COLUMNS:
            raise self._source.fail(f"{len(header):,} columns; a table has {MOST_COLUMNS:,} at the most", 1)
        header = [name.strip().lower() if self._layout.any_case else name.strip() for name in header]
        header = [self._layout.same.get(name, name) for name in header]
        if header and not header[-1] and not self._layout.quoted:
            header.pop()
            lines = ((line, cells[:-1] if cells and not cells[-1] else cells) for line, cells in lines)
        head = self._head(header)
        for line, cells in lines:
            if len(cells) != len(header):
                there = "the format" if self._layout.header else "the header"
                why = "was the line cut?" if len(cells) < len(header) else "is there a separator too many?"
                self._problems.add(line, f"{len(cells)} fields where {there} has {len(header)}: {why}")
                continue
            yield TableRow(line, cells, head)

    def _head(self, header: list[str]) -> TableHead:
        known, needed, mapping = self._table.names, self._table.needed, self._mapping
        if self._layout.any_case:
            known, needed, mapping = lower(known), lower(needed), mapping.in_lower_case()
        columns, taken = mapped(self._source, header, known, mapping)
        problems = ProblemList(self._source)
        for place, name in enumerate(header):
            if place in taken:
                continue
            if name in known:
                if name in columns:
                    problems.add(1, "this column stands twice", name)
                columns[name] = place
            elif not self._table.others and not mapping.keeps_labels:
                message = (
                    f"unknown column; known are {', '.join(known)}; with --columns further ones are kept as labels"
                )
                problems.add(1, message, name or f"column {place + 1}")
        missing = [name for name in needed if name not in columns]
        if missing:
            what = "this column is missing" if len(missing) == 1 else "these columns are missing"
            problems.add(1, f"{what}; there are {listed(header)}", ", ".join(missing))
        problems.raise_if_any()
        self._further = further_columns(header, set(columns.values()), mapping)
        names = {wanted: name for name, wanted in mapping.pairs}
        return TableHead(columns, self._problems, self._further, self._layout.missing, names)


def lower(names: Sequence[str]) -> tuple[str, ...]:
    """Give names in lower case."""
    return tuple(name.lower() for name in names)


def first_text(head: str) -> str:
    """Give the first line that is not empty, from the beginning of a file's content."""
    return head.lstrip("\r\n").partition("\n")[0]


def first_line(head: str) -> list[str]:
    """Give the column names of a CSV file from the beginning of its content; one without letters if there are none."""
    line = first_text(head)
    try:
        cells = next(csv.reader([line]), [])
    except csv.Error:  # it is no CSV
        cells = line.split(",")
    return [name.strip() for name in cells] or [""]


def is_header(cells: Iterable[str], names: Iterable[str]) -> bool:
    """Whether a first line has names of columns; a single word that is one may be a value."""
    return len(set(names).intersection(cells)) > 1


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
