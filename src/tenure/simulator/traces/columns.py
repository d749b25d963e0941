"""What each column of a trace becomes: the one place that readers and the page about traces both have it from."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TraceColumn:
    """A column of a table, or a key of a JSON object: what it becomes, and in which unit it is.

    One that becomes nothing is known, so that it is no error, and not used. One that is ``needed`` has to be there.
    """

    name: str
    becomes: str = ""
    unit: str = ""
    needed: bool = False


@dataclass(frozen=True, slots=True)
class TraceTable:
    """The columns of one file of a format, in the order of files that have no header.

    ``others`` says that files may have more columns than these, which are not used.
    """

    name: str
    columns: tuple[TraceColumn, ...]
    others: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all known columns."""
        return tuple(column.name for column in self.columns)

    @property
    def needed(self) -> tuple[str, ...]:
        """The names of the columns that have to be there."""
        return tuple(column.name for column in self.columns if column.needed)


def column(name: str, becomes: str = "", unit: str = "") -> TraceColumn:
    """Describe a column that may be missing."""
    return TraceColumn(name, becomes, unit)


def needed(name: str, becomes: str, unit: str = "") -> TraceColumn:
    """Describe a column that has to be there."""
    return TraceColumn(name, becomes, unit, needed=True)
