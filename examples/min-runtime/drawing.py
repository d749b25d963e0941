"""The figures of the experiment as a table and as a page with curves."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict

from scenario import Figures, Period, Scenario

from tenure.report.drawing.curves import CURVE_STYLE, Curve, CurvePoint, curves_plot
from tenure.report.drawing.figure import figure
from tenure.report.drawing.plot import Plot
from tenure.report.page import Cell, html_table, page, section
from tenure.report.picture import picture

MINUTE = 60_000_000
GOAL = 0.3
"""The share of lost GPU-hours that `cost` and 30 minutes are to save against `youngest` and 0."""

HEADINGS = ("", "lost GPU-h", "evictions", "due: wait h", "p95 h", "all: wait h", "Jain", "violations", "jobs/s")

MEASURES: tuple[tuple[str, Callable[[Figures], float]], ...] = (
    ("Evictions", lambda f: f.evictions),
    ("Mean wait of jobs within their queue's guaranteed, hours", lambda f: f.due_wait),
    ("Jain's index of received by wanted", lambda f: f.jain),
)


def name_of(scenario: Scenario) -> str:
    """Name a scenario."""
    if not scenario.reclaim:
        return "no reclaim"
    return f"{_minutes(scenario.minimum)}, {series_of(scenario)}"


def series_of(scenario: Scenario) -> str:
    """Name the curve that a scenario lies on."""
    saves = "no checkpoints" if scenario.interval is None else f"checkpoints {_minutes(scenario.interval)}"
    return f"{scenario.victims}, {saves}"


def _minutes(time: int) -> str:
    minutes = time // MINUTE
    return f"{minutes // 60}h" if minutes and minutes % 60 == 0 else f"{minutes}m"


def cells(row: Figures) -> list[str]:
    """Write one line of the table."""
    return [
        name_of(row.scenario), f"{row.lost:,.1f}", f"{row.evictions:,}", f"{row.due_wait:.3f}", f"{row.due_p95:.3f}",
        f"{row.wait:.3f}", f"{row.jain:.4f}", str(row.violations), f"{row.jobs / max(row.seconds, 1e-9):,.0f}",
    ]  # fmt: skip


def table(rows: Sequence[Figures]) -> str:
    """Set all figures in columns."""
    lines = [list(HEADINGS), *map(cells, rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(HEADINGS))]
    return "\n".join(
        "  ".join(c.rjust(w) if i else c.ljust(w) for i, (c, w) in enumerate(zip(line, widths, strict=True)))
        for line in lines
    )


def verdict(rows: Sequence[Figures]) -> str:
    """Compare `cost` and 30 minutes with `youngest` and 0, for each kind of checkpoints."""
    found = {r.scenario: r for r in rows}
    told = []
    for interval in dict.fromkeys(r.scenario.interval for r in rows if r.scenario.reclaim):
        before = found[Scenario(reclaim=True, minimum=0, interval=interval, victims="youngest")]
        after = found[Scenario(reclaim=True, minimum=30 * MINUTE, interval=interval, victims="cost")]
        saved = 1 - after.lost / before.lost if before.lost else 0.0
        word = "met" if saved >= GOAL else "missed"
        change = f"{abs(saved):.0%} {'fewer' if saved >= 0 else 'more'}"
        told.append(
            f"{name_of(after.scenario)}: {change} lost GPU-hours than with {name_of(before.scenario)} "
            f"(goal {GOAL:.0%} fewer: {word}); Jain {after.jain:.4f} and {before.jain:.4f}"
        )
    return "\n".join(told)


def plain(rows: Sequence[Figures], period: Period) -> str:
    """Give all figures of a period as JSON."""
    found = [{"name": name_of(row.scenario), **asdict(row)} for row in rows]
    days = [period.begin, period.end]
    return json.dumps({"kind": "minimum runtime", "days": days, "rows": found}, indent=1) + "\n"


def document(rows: Sequence[Figures], period: Period) -> str:
    """Make one self-contained page."""
    lead = (
        f"Philly, days {period.begin:g} to {period.end:g}: {rows[0].jobs:,} jobs of the eleven largest virtual "
        "clusters on 56 nodes of 8 GPUs. A restart takes 62 s. The dashed line is the replay without reclaim."
    )
    curves = [section(title, "", figure(plot)) for title, plot in plots(rows)]
    headings = [Cell(h, right=bool(i)) for i, h in enumerate(HEADINGS)]
    lines = [[Cell(c, right=bool(i)) for i, c in enumerate(cells(row))] for row in rows]
    told = section("All figures", verdict(rows), html_table(headings, lines))
    return page("Minimum runtime", lead, [*curves, told], style=CURVE_STYLE)


def drawing(rows: Sequence[Figures], period: Period) -> str:
    """Give one picture, as SVG."""
    head = f"Minimum runtime: {rows[0].jobs:,} jobs of Philly in {period.end - period.begin:g} days"
    return picture(head, plots(rows), style=CURVE_STYLE)


def plots(rows: Sequence[Figures]) -> list[tuple[str, Plot]]:
    """Give one plot for each measure, and two of what is lost: without checkpoints it is another order of magnitude."""
    found = []
    series = list(dict.fromkeys(series_of(r.scenario) for r in rows if r.scenario.reclaim))
    for interval in dict.fromkeys(r.scenario.interval for r in rows if r.scenario.reclaim):
        title = f"Lost GPU-hours, {'no checkpoints' if interval is None else f'checkpoints {_minutes(interval)}'}"
        own = [r for r in rows if r.scenario.reclaim and r.scenario.interval == interval]
        found.append((title, _curves(title, own, lambda f: f.lost, series)))
    return found + [(title, _curves(title, rows, value, series)) for title, value in MEASURES]


def _curves(title: str, rows: Sequence[Figures], value: Callable[[Figures], float], series: Sequence[str]) -> Plot:
    """One curve for each kind of victims and checkpoints over the minimum runtimes, which stand side by side."""
    minima = sorted({r.scenario.minimum for r in rows if r.scenario.reclaim})
    curves = []
    for name in series:
        own = sorted((r for r in rows if r.scenario.reclaim and series_of(r.scenario) == name), key=_by_minimum)
        points = [CurvePoint(minima.index(r.scenario.minimum), value(r), value(r), value(r)) for r in own]
        curves.append(Curve(name, points))
    drawn = [(number, curve) for number, curve in enumerate(curves) if curve.points]
    return curves_plot(
        f"{title} by minimum runtime", [_minutes(m) for m in minima], [curve for _, curve in drawn],
        levels=[("no reclaim", value(r)) for r in rows if not r.scenario.reclaim],
        colors=[number for number, _ in drawn],
    )  # fmt: skip


def _by_minimum(row: Figures) -> int:
    return row.scenario.minimum
