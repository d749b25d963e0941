"""A picture of a simulation as one SVG file: for a README, where no page can stand."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from typing import Any

from tenure.model.cluster import Cluster
from tenure.report.drawing.busiest import busiest
from tenure.report.drawing.charts import use_plot
from tenure.report.drawing.gantt import gantt
from tenure.report.drawing.plot import WIDTH, Plot, num
from tenure.report.drawing.series import SimulationSeries
from tenure.report.theme import DARK, LIGHT, SANS, classes, sheet, variables
from tenure.report.words import duration, number, percent, resource_label
from tenure.simulator.outcomes import Outcomes

FULL_WIDTH = 960
LEFT, RIGHT = 72, 24
"""Room beside the plots; on the left there is more where labels ask for it."""

LETTER = 7.5
"""Width of a letter of a label, with a little to spare."""

LONGEST = 28
"""Letters of a label that are shown."""

TOP = 64
TITLE, LEGEND, AXIS = 34, 26, 40
KEY, BETWEEN = 17, 18
"""Room of a mark of a legend, and between two entries."""

_TEXT = (
    f"text{{font:13px {SANS};fill:var(--soft)}}.title{{font-size:15px;font-weight:600;fill:var(--ink)}}"
    ".head{font-size:20px;font-weight:600;fill:var(--ink)}.y{text-anchor:end}.x{text-anchor:middle}"
    ".key{fill:var(--c)}.sheet{fill:var(--surface);stroke:var(--edge)}.axis{stroke:var(--axis)}"
)


def simulation_picture(outcomes: Outcomes, cluster: Cluster, summary: dict[str, Any]) -> str:
    """Draw the use of the main resource over time and the busiest stretch, light or dark as the reader's screen is."""
    history = SimulationSeries(outcomes, cluster)
    name = resource_label(history.main)
    plots = [(f"{name} in use over time, by queue", use_plot(use)) for use in history.uses(1)]
    stretch = busiest(history)
    if stretch is not None:
        plots.append(("Busiest stretch: tasks on nodes", gantt(history, stretch)))
    head = (
        f"{number(summary['jobs'])} jobs in {duration(summary['makespan_s'])}: "
        f"{percent(summary['utilization'].get(history.main))} of {name}s in use, "
        f"mean wait {duration(summary['wait_s']['mean'])}"
    )
    return picture(head, plots)


def picture(head: str, plots: Sequence[tuple[str, Plot]], *, style: str = "") -> str:
    """Set plots below each other, each under its title; ``style``: rules for marks of the plots' own."""
    parts = []
    y = TOP
    left = _left(plots)
    for title, plot in plots:
        part, y = _panel(title, plot, y, left)
        parts.append(part)
    rules = (
        f":root{{{variables(LIGHT)}}}@media(prefers-color-scheme:dark){{:root{{{variables(DARK)}}}}}"
        f"{classes()}{sheet('marks')}{_TEXT}{style}"
    )
    made = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {FULL_WIDTH} {y}" width="{FULL_WIDTH}" height="{y}" '
        f'role="img"><title>{escape(head)}</title><style>{rules}</style>'
        f'<rect class="sheet" x="0.5" y="0.5" width="{FULL_WIDTH - 1}" height="{y - 1}" rx="10"/>'
        f'<text class="head" x="{RIGHT}" y="42">{escape(head)}</text>{"".join(parts)}</svg>\n'
    )
    return made.replace("\N{NO-BREAK SPACE}", " ")  # a label never breaks


def _left(plots: Sequence[tuple[str, Plot]]) -> int:
    """Give the room that the longest label on the left needs: the same for all, so that one can compare them."""
    letters = max((len(_short(tick.label)) for _, plot in plots for tick in plot.y), default=0)
    return max(LEFT, RIGHT + 10 + round(letters * LETTER))


def _short(label: str) -> str:
    return label if len(label) <= LONGEST else f"{label[: LONGEST - 1]}…"


def _panel(title: str, plot: Plot, y: int, left: int) -> tuple[str, int]:
    """Set a plot below its title and legend; gives where the next one begins as well."""
    width = FULL_WIDTH - left - RIGHT
    legend, lines = _legend(plot, left, y + TITLE + 12)
    top = y + TITLE + lines * LEGEND
    bottom = top + plot.height
    beside = [(bottom - tick.at * plot.height + 4, _short(tick.label)) for tick in plot.y]
    ticks_y = "".join(f'<text class="y" x="{left - 10}" y="{num(at)}">{escape(label)}</text>' for at, label in beside)
    ticks_x = "".join(
        f'<text class="x" x="{num(left + tick.at * width)}" y="{bottom + 19}">{escape(tick.label)}</text>'
        for tick in plot.x
    )
    panel = (
        f'<text class="title" x="{RIGHT}" y="{y + 22}">{escape(title)}</text>{legend}'
        f'<svg x="{left}" y="{top}" width="{width}" height="{plot.height}" viewBox="0 0 {WIDTH} {plot.height}" '
        f'preserveAspectRatio="none">{_still(plot.marks)}</svg>'
        f'<path class="axis" d="M{left} {bottom}h{width}"/>{ticks_y}{ticks_x}'
    )
    return panel, bottom + AXIS


def _still(marks: str) -> str:
    """Leave out what only a pointer would find: a picture in a text has no pointer."""
    marks = re.sub(r'<rect[^>]* class="strip">.*?</rect>', "", marks, flags=re.DOTALL)
    return re.sub(r"><title>[^<]*</title></rect>", "/>", marks)


def _legend(plot: Plot, left: int, y: int) -> tuple[str, int]:
    """Write a legend, and say how many lines it takes: one even where there is nothing to tell."""
    x, lines, parts = left, 1, []
    for kind, name in plot.legend:
        wide = KEY + 8 * len(name)
        if x > left and x + wide > FULL_WIDTH - RIGHT:
            x, y, lines = left, y + LEGEND, lines + 1
        parts.append(
            f'<rect class="key {kind}" x="{x}" y="{y - 10}" width="11" height="11" rx="3"/>'
            f'<text x="{x + KEY}" y="{y}">{escape(name)}</text>'
        )
        x += wide + BETWEEN
    return "".join(parts), lines
