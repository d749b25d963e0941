"""A statement for people: as tables for a terminal, and as a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tenure.history.reading.statement import Statement, StatementRow, Sums
from tenure.model.amounts import UNITS
from tenure.model.values.duration import format_time
from tenure.model.values.resources import CPU, GPU
from tenure.report.budget_use_text import BUDGET_HEADS, budget_rows
from tenure.report.page import Cell, Tile, html_table, page, section, tiles
from tenure.report.statement_json import MICRO, money, wait_figures
from tenure.report.tables import TableColumn, Terminal, table
from tenure.report.words import HoursUnit, duration, number, percent, resource_label

MAX_ROWS = 40
"""Rows that a terminal shows; JSON and CSV have them all."""

BUDGETS = "The evictions that were charged to each budget, and the window in which most of it was used."

HEADS = {
    "cause": "cause", "queue": "queue", "team": "team", "beneficiary": "beneficiary", "workload": "workload",
    "user": "user",
}  # fmt: skip


def statement_text(statement: Statement, where: Terminal, prices: Mapping[str, float] | None = None) -> str:
    """Give what `tenure report` prints: sums by resource, then the rows, in hours of the main resource."""
    parts = [f"{where.bold('from')} {format_time(statement.since)} {where.bold('to')} {format_time(statement.until)}\n"]
    columns = [TableColumn("resource"), *(TableColumn(h, right=True) for h in _TOTALS)]
    parts.append(table(columns, list(_totals(statement)), where))
    if prices is not None:
        parts.append(f"in money: {_in_money(statement, prices)}\n")
    parts += [f"{sentence}\n" for sentence in remarks(statement)]
    heads = headings(statement, prices)
    shown = statement.rows[:MAX_ROWS]
    rows = [line_of(row, statement, prices) for row in shown]
    columns = [TableColumn(heads[0], wrap=True), *(TableColumn(h, right=True) for h in heads[1:])]
    if rows:
        unit = unit_of(statement, main_resource(statement))
        parts += [f"{where.bold('by')} {HEADS[statement.by]}, in {unit.name}\n", table(columns, rows, where)]
    else:
        parts.append("nothing was used, and nothing was evicted\n")
    if len(statement.rows) > len(shown):
        parts.append(f"{len(statement.rows) - len(shown)} more: --format json or csv has them all\n")
    if statement.budgets:
        columns = [TableColumn(head, right=head == "evicted tasks", wrap=True) for head in BUDGET_HEADS]
        parts.append(table(columns, budget_rows(statement.budgets), where))
    return "\n".join(parts)


_TOTALS = ("capacity", "used", "in guaranteed", "lost", "idle")


def _totals(statement: Statement) -> Iterator[list[str]]:
    for resource in statement.capacity:
        sums = (statement.capacity, statement.used, statement.within, statement.lost, statement.idle)
        unit = unit_of(statement, resource)
        yield [f"{resource_label(resource)}, {unit.name}", *(hours(one, resource, unit) for one in sums)]


def hours(sums: Sums, resource: str, unit: HoursUnit) -> str:
    """Give a sum in hours of a resource."""
    return unit.write(_seconds(sums, resource))


def unit_of(statement: Statement, resource: str) -> HoursUnit:
    """Give the unit in which all sums of a resource are written: the one that suits the capacity."""
    return HoursUnit.of(resource, _seconds(statement.capacity, resource))


def _seconds(sums: Sums, resource: str) -> float:
    return sums.get(resource, 0) / UNITS.get(resource, 1) / MICRO


def main_resource(statement: Statement) -> str:
    """Name the resource that the rows are shown in: GPUs where there are any."""
    names = list(statement.capacity) or [CPU]
    return next((r for r in (GPU, CPU) if statement.capacity.get(r)), names[0])


def headings(statement: Statement, prices: Mapping[str, float] | None) -> list[str]:
    """Name the columns of the rows."""
    heads = [HEADS[statement.by]]
    if statement.by not in {"cause", "beneficiary"}:
        heads.append("used")
    heads += ["lost", "caused", "saved", "gained", "evictions", "paid", "repeated"]
    if statement.by not in {"cause", "beneficiary"}:
        heads += ["wait", "wait 95%"]
    return [*heads, "lost in money"] if prices is not None else heads


def line_of(row: StatementRow, statement: Statement, prices: Mapping[str, float] | None) -> list[str]:
    """Give one row in words, as the headings say."""
    resource = main_resource(statement)
    unit = unit_of(statement, resource)
    cells = [row.key or "(none)"]
    if statement.by not in {"cause", "beneficiary"}:
        cells.append(hours(row.used, resource, unit))
    cells += [hours(one, resource, unit) for one in (row.lost, row.caused, row.saved, row.gained)]
    cells += [f"{row.evictions:,}", f"{row.paid:,}", f"{row.repeated:,}"]
    if statement.by not in {"cause", "beneficiary"}:
        waits = wait_figures(row.waits)
        cells += [duration(waits.get("mean")), duration(waits.get("p95"))]
    return [*cells, number(money(row.lost, prices), 2)] if prices is not None else cells


def remarks(statement: Statement) -> list[str]:
    """Say first which causes lost more than they gained, and what the history does not know."""
    found = [f"{cause} lost more than it gained: look at it first" for cause in statement.losing]
    for begin, end in statement.gaps:
        found.append(
            f"nothing is known from {format_time(begin)} to {format_time(end)}: the store could not be written"
        )
    return found


def _in_money(statement: Statement, prices: Mapping[str, float]) -> str:
    sums = (("used", statement.used), ("lost", statement.lost), ("idle", statement.idle))
    return ", ".join(f"{name} {number(money(one, prices), 2)}" for name, one in sums)


def statement_page(statement: Statement, prices: Mapping[str, float] | None = None) -> str:
    """Give a statement as one self-contained page."""
    resource = main_resource(statement)
    whole = statement.capacity.get(resource, 0)
    unit = unit_of(statement, resource)
    figures = []
    for name, sums in (("used", statement.used), ("lost", statement.lost), ("idle", statement.idle)):
        share = percent(sums.get(resource, 0) / whole) if whole else ""
        figures.append(Tile(f"{name.capitalize()}, {unit.name}", hours(sums, resource, unit), share))
    evictions, paid = (sum(getattr(row, name) for row in statement.rows) for name in ("evictions", "paid"))
    figures.append(Tile("Evictions", f"{evictions:,}", f"{paid:,} of them paid" if evictions else ""))
    heads = headings(statement, prices)
    rows = (_cells(line_of(row, statement, prices)) for row in statement.rows)
    totals = html_table(_heads(["resource", *_TOTALS]), (_cells(line) for line in _totals(statement)))
    budgets = html_table(_heads(BUDGET_HEADS), (_cells(line) for line in budget_rows(statement.budgets)))
    return page(
        "Statement",
        f"From {format_time(statement.since)} to {format_time(statement.until)}, by {HEADS[statement.by]}.",
        [
            tiles(figures),
            section("Sums", " ".join(f"{remark}." for remark in remarks(statement)), totals),
            section(f"By {HEADS[statement.by]}", f"Sums are in {unit.name}.", html_table(_heads(heads), rows)),
            *([section("Disruption budgets", BUDGETS, budgets)] if statement.budgets else ()),
        ],
    )


def _heads(texts: Sequence[str]) -> list[Cell]:
    return _cells([text[:1].upper() + text[1:] for text in texts])


def _cells(texts: list[str]) -> list[Cell]:
    return [Cell(text, right=number > 0) for number, text in enumerate(texts)]


def comparison_text(happened: Statement, replayed: Statement, where: Terminal) -> str:
    """Put the statement of what was replayed beside that of what happened."""
    resource = main_resource(happened)
    unit = unit_of(happened, resource)
    rows = [["span", *(duration((s.until - s.since) / MICRO) for s in (happened, replayed))]]
    rows += [
        [
            f"{name}, {unit.name}",
            *(hours(getattr(s, name), resource, unit) for s in (happened, replayed)),
        ]
        for name in ("capacity", "used", "lost", "idle")
    ]
    causes = sorted({row.key for s in (happened, replayed) for row in s.rows})
    for cause in causes:
        counts = (sum(row.evictions for row in s.rows if row.key == cause) for s in (happened, replayed))
        rows.append([f"evictions by {cause}", *(f"{count:,}" for count in counts)])
    return table(
        [TableColumn("figure"), TableColumn("happened", right=True), TableColumn("replayed", right=True)], rows, where
    )
