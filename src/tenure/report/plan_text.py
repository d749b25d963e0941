"""What `tenure plan` decided, for a terminal: a sentence and tables."""

from __future__ import annotations

import sys
from typing import Any

from tenure.report.plan_rows import Rows, all_rows, headline, move_sentence, queue_rows, waves
from tenure.report.tables import Column, Terminal, table, terminal, wrap


def print_plan(result: dict[str, Any]) -> None:
    """Print a plan, given as the JSON of the command, to standard output."""
    sys.stdout.write(plan_text(result, terminal()))


def plan_text(result: dict[str, Any], where: Terminal) -> str:
    """Give a plan as text that fits a terminal."""
    parts = [headline(result) + "\n"]
    parts += [_set(rows, where) for rows in all_rows(result)]
    for move in result.get("moves", ()):
        sentence = "\n".join(wrap(move_sentence(move), where.width))
        moved = waves(move)
        parts.append(f"{sentence}\n" + (_set(moved, where) if moved.rows else ""))
    queues = queue_rows(result)
    if queues.rows:
        parts.append(_set(queues, where))
    return "\n".join(parts)


def _set(rows: Rows, where: Terminal) -> str:
    columns = [Column(name, right=name in rows.numbers, wrap=name in rows.wide) for name in rows.headings]
    title = where.bold(rows.title.upper()) + "\n" if rows.title else ""
    return title + table(columns, rows.rows, where)
