"""Writes the tables of replays in the pages from docs/experiments. Run: python docs/make_experiments.py

`examples/requeue/run.py` and `examples/min-runtime/run.py` write the files with ``--json``. A page names a file between
marks, and what stands there is written anew; the prose around it stays as it is.
"""
# ruff: noqa: INP001  a script, not a package

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

from tenure.model.files import write_atomically

DOCS: Final = Path(__file__).resolve().parent
PAGES: Final = ("min-runtime.md", "requeue.md")
MARKED: Final = re.compile(
    r"(<!-- written by docs/make_experiments\.py from (\S+) -->\n).*?(<!-- until here -->)", re.DOTALL
)

Row = dict[str, Any]
"""The figures of one replay, by name."""

COLUMNS: Final[dict[str, dict[str, Callable[[Row], str]]]] = {
    "minimum runtime": {
        "replay": itemgetter("name"),
        "lost GPU-hours": lambda row: f"{row['lost']:,.1f}",
        "evictions": lambda row: f"{row['evictions']:,}",
        "due jobs: mean wait (h)": lambda row: f"{row['due_wait']:.3f}",
        "all jobs: mean wait (h)": lambda row: f"{row['wait']:.3f}",
        "Jain": lambda row: f"{row['jain']:.4f}",
    },
    "requeue": {
        "replay": itemgetter("name"),
        "mean wait of urgent jobs (h)": lambda row: f"{row['urgent_mean']:.3f}",
        "95th percentile (h)": lambda row: f"{row['urgent_high']:.2f}",
        "mean wait of other jobs (h)": lambda row: f"{row['other_mean']:.3f}",
        "requeues": lambda row: f"{row['requeues']:,}",
        "killed jobs": lambda row: f"{row['killed']:,}",
        "work destroyed": lambda row: f"{row['destroyed']:.2%}",
    },
}
"""By kind of experiment the columns of its table."""


def files() -> Iterator[Path]:
    """Give the files that the pages name."""
    for name in PAGES:
        yield from (DOCS / file for _, file, _ in MARKED.findall((DOCS / name).read_text(encoding="utf-8")))


def table(file: Path) -> str:
    """Write the replays of a file as a table.

    Raises
    ------
    KeyError
        It lacks a figure, or is of no known kind.
    """
    found = json.loads(file.read_text(encoding="utf-8"))
    columns = COLUMNS[found["kind"]]
    lines = [f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]
    lines += [f"| {' | '.join(write(row) for write in columns.values())} |" for row in found["rows"]]
    return "\n".join(lines)


def written(page: Path) -> str:
    """Give a page with its tables written anew."""
    return MARKED.sub(lambda m: f"{m[1]}\n{table(DOCS / m[2])}\n\n{m[3]}", page.read_text(encoding="utf-8"))


if __name__ == "__main__":
    for name in PAGES:
        write_atomically(DOCS / name, written(DOCS / name))
