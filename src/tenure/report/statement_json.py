"""A statement as plain data, for JSON and CSV."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from io import StringIO
from typing import Any

import numpy as np

from tenure.history.reading.statement import Statement, StatementRow, Sums
from tenure.model.amounts import UNITS
from tenure.model.values.duration import format_time
from tenure.report.budget_use_text import budget_json
from tenure.report.words import seconds_unit

MICRO = 1_000_000
HOUR_S = 3600

FIGURES = ("used", "within", "lost", "caused", "saved", "gained")
"""What a row has by resource."""

PRICED = ("used", "lost", "caused", "gained")
"""Which of these a row has in money as well."""


def statement_json(statement: Statement, prices: Mapping[str, float] | None = None) -> dict[str, Any]:
    """Give a statement in resource-seconds: whole GPUs, cores, bytes; with money where there are prices.

    Numbers are whole where they are, else as near as a float comes; used + lost + idle = capacity.
    """
    plain: dict[str, Any] = {
        "from": format_time(statement.since),
        "to": format_time(statement.until),
        "by": statement.by,
    }
    plain["units"] = {resource: seconds_unit(resource) for resource in statement.capacity}
    for name in ("capacity", "used", "within", "lost", "idle"):
        plain[name] = in_seconds(getattr(statement, name))
    plain["losing"] = statement.losing
    plain["gaps"] = [{"from": format_time(a), "to": format_time(b)} for a, b in statement.gaps]
    plain["budgets"] = [budget_json(use) for use in statement.budgets]
    plain["rows"] = [_row(row, prices) for row in statement.rows]
    if prices is not None:
        totals = {name: money(getattr(statement, name), prices) for name in ("capacity", "used", "lost", "idle")}
        plain["money"] = totals
    return plain


def _row(row: StatementRow, prices: Mapping[str, float] | None) -> dict[str, Any]:
    plain: dict[str, Any] = {"key": row.key}
    for name in FIGURES:
        plain[name] = in_seconds(getattr(row, name))
    plain |= {
        "evictions": row.evictions, "paid": row.paid, "repeated": row.repeated,
        "wait_s": wait_figures(row.waits), "waitEntitled_s": wait_figures(row.entitled),
    }  # fmt: skip
    if prices is not None:
        plain["money"] = {name: money(getattr(row, name), prices) for name in PRICED}
    return plain


def in_seconds(sums: Sums) -> dict[str, int | float]:
    """Give sums of amount times µs as resource-seconds."""
    return {resource: _shared(value, MICRO * UNITS.get(resource, 1)) for resource, value in sums.items()}


def _shared(value: int, unit: int) -> int | float:
    return value // unit if value % unit == 0 else value / unit


def money(sums: Sums, prices: Mapping[str, float]) -> float:
    """Give what sums cost, by prices for a whole unit and hour."""
    hours = {r: value / (MICRO * UNITS.get(r, 1) * HOUR_S) for r, value in sums.items()}
    return round(sum(prices[r] * value for r, value in hours.items() if r in prices), 2)


def wait_figures(waits: Sequence[int]) -> dict[str, float]:
    """Give how many waits (µs) there were, and their mean, median, 95th percentile and longest in seconds."""
    if not waits:
        return {}
    values = np.array(waits, dtype=np.float64) / MICRO
    return {
        "count": len(values), "mean": float(values.mean()), "median": float(np.median(values)),
        "p95": float(np.percentile(values, 95)), "max": float(values.max()),
    }  # fmt: skip


def statement_csv(statement: Statement, prices: Mapping[str, float] | None = None) -> str:
    """Give the rows of a statement as CSV: one line for each key and resource.

    Figures are in resource-seconds, whose unit is named last; with prices, what they cost stands in columns of money.
    """
    out = StringIO()
    writer = csv.writer(out, lineterminator="\n")
    priced = () if prices is None else PRICED
    writer.writerow([
        statement.by, "resource", *FIGURES, "evictions", "paid", "repeated",
        *(f"{name}_money" for name in priced), "unit",
    ])  # fmt: skip
    for row in statement.rows:
        for resource in statement.capacity or ("",):
            writer.writerow([_unspoilt(row.key), resource, *_line(row, resource, prices)])
    return out.getvalue()


def _line(row: StatementRow, resource: str, prices: Mapping[str, float] | None) -> list[Any]:
    sums = {name: {resource: getattr(row, name).get(resource, 0)} for name in FIGURES}
    figures = [in_seconds(sums[name])[resource] for name in FIGURES]
    costs = [] if prices is None else [money(sums[name], prices) for name in PRICED]
    unit = seconds_unit(resource) if resource else ""
    return [*figures, row.evictions, row.paid, row.repeated, *costs, unit]


def _unspoilt(text: str) -> str:
    """Keep a spreadsheet from taking a name for a formula."""
    return f"'{text}" if text[:1] in "=+-@\t\r" and text else text


def statement_text_json(statement: Statement, prices: Mapping[str, float] | None = None) -> str:
    """Give a statement as JSON."""
    return json.dumps(statement_json(statement, prices), indent=1, ensure_ascii=False, allow_nan=False)
