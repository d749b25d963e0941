"""Makes the second part of ``traces.md`` anew, from the code: every format, and every column of it.

python docs/make_traces.py
"""
# ruff: noqa: INP001  a script, not a package

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tenure.model.documents.files import write_atomically
from tenure.simulator.traces.columns import TraceColumn
from tenure.simulator.traces.records import TraceFormat
from tenure.simulator.traces.registry import ALL

TARGET: Final = Path(__file__).with_name("traces.md")
MARK: Final = "## Formats"


def generate() -> str:
    """Give the page with its first part as it is, and its second part made of the code."""
    first = TARGET.read_text(encoding="utf-8").split(MARK)[0]
    return first + "\n".join([MARK, "", *(line for known in ALL for line in section(known))])


def section(known: TraceFormat) -> Iterator[str]:
    """Give the lines about a format: where it is from, its tables, and what else becomes of it."""
    yield from (f"### `{known.name}`", "", known.origin, "")
    for table in known.tables:
        yield from (f"| column of {table.name} | becomes | unit |", "|---|---|---|")
        yield from (row(column) for column in table.columns if column.becomes)
        yield ""
        others = [f"`{column.name}`" for column in table.columns if not column.becomes]
        others += ["any other column"] if table.others else []
        if others:
            yield from (f"Not used: {', '.join(others)}.", "")
    yield from (f"* {sentence}" for sentence in known.told)
    if known.told:
        yield ""


def row(column: TraceColumn) -> str:
    """Give a column's line of a table; what has to be there is in bold letters."""
    name = f"**`{column.name}`**" if column.needed else f"`{column.name}`"
    return f"| {name} | {column.becomes} | {column.unit} |".replace("`|`", "`\\|`")


if __name__ == "__main__":
    write_atomically(TARGET, generate())
