"""What came out of a month as a table, as a page, and as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tenure.report.drawing.bars import Bar, bars_plot
from tenure.report.drawing.figure import figure
from tenure.report.drawing.plot import WIDTH, Plot, grid, rect
from tenure.report.drawing.scales import Tick, nice_step, top_of
from tenure.report.page import Cell, html_table, page, section
from tenure.report.picture import picture

TALL = 120
HEAD = ("", "large wait (h)", "of seeds", "p95", "other wait", "moves a day", "most", "after", "until (h)", "in use",
        "lost", "violations", "CPU s")  # fmt: skip


@dataclass(frozen=True)
class Row:
    """What came out of one replay, or the mean of several.

    ``low`` and ``high`` are the least and the greatest mean wait of large jobs. Waits in hours; ``daily`` counts moves
    by day; ``after`` those made when nothing arrives any more, the last of them ``until`` hours after the last arrival;
    ``use`` is the share of GPU-time in use until arrivals stop, ``lost`` what moves destroyed of all work.
    """

    name: str
    large: float
    low: float
    high: float
    large_p95: float
    small: float
    moves: float
    most: float
    after: float
    until: float
    use: float
    lost: float
    violations: float
    seconds: float
    daily: tuple[float, ...]


def _cells(row: Row) -> tuple[str, ...]:
    return (
        row.name, f"{row.large:.2f}", f"{row.low:.2f} to {row.high:.2f}", f"{row.large_p95:.1f}", f"{row.small:.2f}",
        f"{row.moves / max(1, len(row.daily)):.1f}", f"{row.most:.0f}", f"{row.after:.0f}", f"{row.until:.1f}",
        f"{row.use:.1%}", f"{row.lost:.2%}", f"{row.violations:.0f}", f"{row.seconds:.0f}",
    )  # fmt: skip


def table(rows: Sequence[Row]) -> str:
    """Give the figures as text."""
    cells = [HEAD, *map(_cells, rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(HEAD))]
    lines = ["  ".join(c.rjust(w) if i else c.ljust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True)))
             for row in cells]  # fmt: skip
    return "\n".join(lines)


def month_page(title: str, lead: str, rows: Sequence[Row]) -> str:
    """Give one file: waits, moves by day, and the figures."""
    heads = [Cell(text, right=bool(i)) for i, text in enumerate(HEAD)]
    cells = [[Cell(text, right=bool(i)) for i, text in enumerate(_cells(row))] for row in rows]
    parts = [section(name, "", figure(plot)) for name, plot in _plots(rows)]
    return page(title, lead, [*parts, section("Figures", "", html_table(heads, cells))])


def month_picture(head: str, rows: Sequence[Row]) -> str:
    """Give the pictures alone."""
    return picture(head, _plots(rows))


def _plots(rows: Sequence[Row]) -> list[tuple[str, Plot]]:
    top = top_of(max(x for row in rows for x in row.daily) or 1.0)
    days = [(f"Moves by day: {row.name}", _days(row, top)) for row in rows if row.moves]
    return [("Mean wait of jobs of whole nodes, hours; the line is the range over seeds", _waits(rows)), *days]


def _waits(rows: Sequence[Row]) -> Plot:
    bars = [Bar(row.name, row.large, row.low, row.high) for row in rows]
    return bars_plot("mean wait of large jobs by variant", bars, "{:g}".format)


def _days(row: Row, top: float) -> Plot:
    step = nice_step(top, 4)
    ticks = [Tick(i * step / top, f"{i * step:g}") for i in range(int(top / step + 0.5) + 1)]
    wide = WIDTH / len(row.daily)
    bars = [
        rect(day * wide, TALL * (1 - count / top), wide, TALL * count / top, "bar c0", f"day {day + 1}: {count:.1f}")
        for day, count in enumerate(row.daily)
        if count
    ]
    days = [Tick((day + 0.5) / len(row.daily), f"day {day + 1}") for day in range(0, len(row.daily), 5)]
    return Plot(f"moves by day, {row.name}", TALL, grid(ticks, TALL) + "".join(bars), days, ticks)
