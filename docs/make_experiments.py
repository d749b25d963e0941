"""Writes the tables of replays in the pages from docs/experiments. Run: python docs/make_experiments.py

`examples/requeue/run.py`, `examples/min-runtime/run.py` and `examples/worth/run.py` write the files with ``--json``. A
page names files between marks, and what stands there is written anew; the prose around it stays as it is. Where several
workloads were replayed under the same policies, ``by workload`` behind the files gives each one line.
"""
# ruff: noqa: INP001  a script, not a package

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

from tenure.model.documents.files import write_atomically

DOCS: Final = Path(__file__).resolve().parent
PAGES: Final = ("min-runtime.md", "requeue.md", "worth.md")
MARKED: Final = re.compile(
    r"(<!-- written by docs/make_experiments\.py from (\S+\.json(?: \S+\.json)*)( by workload)? -->\n).*?"
    r"(<!-- until here -->)",
    re.DOTALL,
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
    "worth": {
        "policy": itemgetter("policy"),
        "lost (weighted hours)": lambda row: spread(row, "lost", ",.0f"),
        "of all work": lambda row: spread(row, "destroyed", ".2%"),
        "evictions": lambda row: spread(row, "evictions", ",.0f"),
        "most of one job": lambda row: spread(row, "most", ".0f"),
        "due: wait (h)": lambda row: spread(row, "due_wait", ".3f"),
        "due: to the end (h)": lambda row: spread(row, "due_end", ".3f"),
        "lost per hour spared": lambda row: spread(row, "per_hour", ",.2f"),
        "per weighted hour": lambda row: spread(row, "per_weighted_hour", ",.2f"),
    },
}
"""By kind of experiment the columns of its table."""


LAST_POLICY = (
    ("sooner by (h)", "due_sooner", ".2f"),
    ("lost per weighted hour spared", "per_weighted_hour", ",.2f"),
    ("most of one job", "most", ".0f"),
)
"""What is said of the last policy where each workload has a line: heading, figure and form."""


def spread(row: Row, figure: str, form: str) -> str:
    """Write a median, with the least and the most where these are written otherwise; nothing where there is none."""
    written = ["none spared" if value is None else format(value, form) for value in row.get(figure, ())]
    if not written:
        return ""
    middle, least, most = written
    return middle if least == most else f"{middle} ({least} to {most})"


def files() -> Iterator[Path]:
    """Give the files that the pages name."""
    for name in PAGES:
        for _, named, *_ in MARKED.findall((DOCS / name).read_text(encoding="utf-8")):
            yield from (DOCS / file for file in named.split())


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
    workload = None
    for row in found["rows"]:
        if (name := row.get("workload")) != workload:  # several workloads in one table
            workload = name
            lines.append(f"| **{name}** |{' |' * (len(columns) - 1)}")
        lines.append(f"| {' | '.join(write(row) for write in columns.values())} |")
    return "\n".join(lines)


def by_workload(*files: Path) -> str:
    """Write the replays of several workloads as a table: a line for each, and columns for each policy.

    The first policy evicts nothing; of the last it is also said what was destroyed for what was spared.
    """
    found: dict[str, dict[str, Row]] = {}
    for row in chain.from_iterable(json.loads(f.read_text(encoding="utf-8"))["rows"] for f in files):
        found.setdefault(row["workload"], {})[row["policy"]] = row
    base, *policies = next(iter(found.values()))
    headings = ["workload", f"{base}: to the end (h)"]
    headings += [f"{policy}: {what}" for policy in policies for what in ("lost", "to the end (h)")]
    last = [
        (heading, *what) for heading, *what in LAST_POLICY if any(what[0] in r[policies[-1]] for r in found.values())
    ]
    headings += [heading for heading, *_ in last]
    lines = [f"| {' | '.join(headings)} |", f"|{'---|' * len(headings)}"]
    for name, rows in found.items():
        cells = [name, spread(rows[base], "due_end", ".2f")]
        cells += [spread(rows[p], *what) for p in policies for what in (("lost", ",.0f"), ("due_end", ".2f"))]
        cells += [spread(rows[policies[-1]], *what) for _, *what in last]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def written(page: Path) -> str:
    """Give a page with its tables written anew."""

    def anew(mark: re.Match[str]) -> str:
        made = (by_workload if mark[3] else table)(*(DOCS / file for file in mark[2].split()))
        return f"{mark[1]}\n{made}\n\n{mark[4]}"

    return MARKED.sub(anew, page.read_text(encoding="utf-8"))


if __name__ == "__main__":
    for name in PAGES:
        write_atomically(DOCS / name, written(DOCS / name))
