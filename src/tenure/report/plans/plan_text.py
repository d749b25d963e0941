"""What `tenure plan` decided, for a terminal: a sentence and tables."""

from __future__ import annotations

import shutil
import sys
from dataclasses import replace
from typing import Any

from tenure.report.plans.plan_rows import SAME, Rows, all_rows, headline, queue_rows, told_moves
from tenure.report.plans.plan_summary import READ_ON, TOP, is_large, summary
from tenure.report.tables import GAP, Colored, TableColumn, Terminal, table, terminal, text_width, wrap

WHY, WORKLOAD = "why", "workload"
ROOM_FOR_REASONS = 32
"""Columns of a terminal that reasons need to be read beside everything else."""

MOST_BESIDE = 4
"""Other columns from which on a table is one that reasons may crowd."""

FOLLOWING = "and those after it"


TINTS = {
    "bind": "green", "nominate": "cyan", "evict": "red", "notice": "yellow", "withdraw": "green", "committed": "red",
    "armed": "yellow", "fires": "red",
}  # fmt: skip
"""Colours of words that stand alone in a cell."""


def print_plan(result: dict[str, Any], *, top: int | None = None, color: Colored = "auto", paged: bool = True) -> None:
    """Print a plan, given as the JSON of the command, to standard output.

    Parameters
    ----------
    result
        The plan.
    top
        Rows of each table, and plans of moves that are told; 0: all of them. Without it, a large plan is summed up
        first, with all of it below on a terminal, where a pager shows it, and the first few rows of each table
        elsewhere.
    color
        Whether it is coloured.
    paged
        Whether what is longer than the terminal goes through a pager.
    """
    where, is_terminal = terminal(color=color), sys.stdout.isatty()
    if top is None and is_terminal and paged:
        top = 0
    text = plan_text(result, where, top)
    if is_terminal and paged and text.count("\n") >= shutil.get_terminal_size().lines:
        import click  # noqa: PLC0415  only for the pager

        click.echo_via_pager(text, color=where.styled)
    else:
        sys.stdout.write(text)


def plan_text(result: dict[str, Any], where: Terminal, top: int | None = None) -> str:
    """Give a plan as text that fits a terminal; ``top`` as for `print_plan`."""
    large = is_large(result)
    most = (TOP if large else 0) if top is None else top
    parts = ["\n".join(wrap(headline(result), where.width)) + "\n"]
    if large:
        parts += [_set(rows, where) for rows in summary(result)]
        if most:
            parts.append("\n".join(wrap(READ_ON, where.width)) + "\n")
    for rows in all_rows(result):
        parts += [_set(part, where) for part in _apart(_first(rows, most), where)]
    told, untold = told_moves(result, most)
    for sentence, moved in told:
        text = "\n".join(wrap(sentence, where.width)) + "\n"
        parts.append(text + (_set(_first(moved, most), where) if moved.rows else ""))
    if untold:
        parts.append("\n".join(wrap(untold, where.width)) + "\n")
    queues = queue_rows(result)
    if queues.rows:
        parts.append(_set(_first(queues, most), where))
    return "\n".join(parts)


def _first(rows: Rows, most: int) -> Rows:
    """Give the first rows of a table, with how many there are in its title; 0: all."""
    if not most or len(rows.rows) <= most:
        return rows
    return replace(
        rows, title=f"{rows.title or 'Moves'} (the first {most} of {len(rows.rows):,})", rows=rows.rows[:most]
    )


def _apart(rows: Rows, where: Terminal) -> list[Rows]:
    """Set reasons in a table of their own where beside everything else there is little room for them."""
    if WHY not in rows.headings or WORKLOAD not in rows.headings or not rows.rows:
        return [rows]
    at, whose = rows.headings.index(WHY), rows.headings.index(WORKLOAD)
    others = [column for column in range(len(rows.headings)) if column != at]
    needed = sum(max(text_width(row[column]) for row in (rows.headings, *rows.rows)) + GAP for column in others)
    longest = max(text_width(row[at]) for row in rows.rows)
    if len(others) < MOST_BESIDE or where.width - needed >= min(ROOM_FOR_REASONS, longest):
        return [rows]
    plain = replace(
        rows,
        headings=tuple(rows.headings[c] for c in others),
        rows=[tuple(row[c] for c in others) for row in rows.rows],
    )
    reasons: list[tuple[str, str]] = []
    for row in rows.rows:
        if row[at] and row[at] != SAME:
            reasons.append((row[whose], row[at]))
        elif row[at] == SAME and not reasons[-1][0].endswith(FOLLOWING):
            reasons[-1] = f"{reasons[-1][0]} {FOLLOWING}", reasons[-1][1]
    return [plain, Rows("Why", (WORKLOAD, WHY), reasons, wide=(WORKLOAD, WHY))]


def _set(rows: Rows, where: Terminal) -> str:
    columns = [
        TableColumn(name, right=name in rows.numbers, wrap=name in rows.wide, tints=TINTS) for name in rows.headings
    ]
    title = where.bold(rows.title.upper()) + "\n" if rows.title else ""
    return title + table(columns, rows.rows, where)
