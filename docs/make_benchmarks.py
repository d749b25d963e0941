"""Writes the tables of docs/benchmarks.md from benchmarks/results.json. Run: python docs/make_benchmarks.py

The prose around the tables stays as it is; what stands between the two marks is written anew.
"""
# ruff: noqa: INP001  a script, not a package

from __future__ import annotations

import sys
from itertools import groupby
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))

from results import HEAD, KEPT, Result, cells, read  # noqa: E402  the folder is no package

PAGE = ROOT / "docs" / "benchmarks.md"
BEGIN = "<!-- written by docs/make_benchmarks.py from benchmarks/results.json -->\n"
END = "<!-- until here -->\n"


def table(rows: list[Result]) -> str:
    """Write the results of one benchmark as a table."""
    head = HEAD[1:]
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    lines += [f"| {' | '.join(cell.replace('|', '/') for cell in cells(row)[1:])} |" for row in rows]
    return "\n".join(lines)


def tables(rows: list[Result]) -> str:
    """Write all tables, each below the number of its benchmark, and how many goals are reached."""
    asked = [row for row in rows if row.goal is not None]
    told = f"{sum(bool(row.reached) for row in asked)} of {len(asked)} goals are reached."
    parts = [f"### {name}\n\n{table([*those])}" for name, those in groupby(rows, key=lambda row: row.benchmark)]
    return "\n\n".join([told, *parts]) + "\n"


def written(text: str, rows: list[Result]) -> str:
    """Give the page with its tables written anew; ValueError where it lacks a mark."""
    before, begin, rest = text.partition(BEGIN)
    _, end, behind = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{PAGE}: between these two marks the tables would stand: {BEGIN.strip()} {END.strip()}")
    return f"{before}{BEGIN}\n{tables(rows)}\n{END}{behind}"


def main() -> None:
    """Write the page."""
    PAGE.write_text(written(PAGE.read_text(), read(KEPT)))


if __name__ == "__main__":
    main()
