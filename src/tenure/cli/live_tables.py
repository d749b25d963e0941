"""Tables of a live cluster, once or whenever they change."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from tenure.cli.input.live_cluster import ClusterAddress, looking
from tenure.cli.terminal.errors import DONE
from tenure.report.tables import TableColumn, table, terminal

if TYPE_CHECKING:
    from tenure.model.cluster import Cluster

Rows = list[dict[str, Any]]

SHORTEST = 1.0
"""Seconds between two tables."""

_WIDE = "why it waits"


def show(where: ClusterAddress, make: Callable[[Cluster], Rows], *, form: str, watch: bool) -> int:
    """Print a table of what is there; with ``watch`` again whenever it changed, until it is interrupted."""
    with looking(where) as look:
        before: Rows | None = None
        while True:
            seen = look()
            rows = make(seen.cluster)
            if rows != before:
                click.echo(_text(rows, form, again=before is not None), nl=False)
                before = rows
            if not watch:
                return DONE
            time.sleep(SHORTEST)
            seen.informers.changed.clear()


def _text(rows: Rows, form: str, *, again: bool) -> str:
    if form == "json":
        return json.dumps(rows, indent=None if again else 1, ensure_ascii=False) + "\n"
    if not rows:
        return "there are none\n"
    names = list(rows[0])
    cells: Sequence[Sequence[str]] = [[str(row[name]) for name in names] for row in rows]
    columns = [TableColumn(name.upper(), right=_is_number(rows, name), wrap=name == _WIDE) for name in names]
    return ("\n" if again else "") + table(columns, cells, terminal())


def _is_number(rows: Rows, name: str) -> bool:
    return all(isinstance(row[name], int) for row in rows)
