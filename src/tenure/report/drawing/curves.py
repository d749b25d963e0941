"""Curves over values that stand side by side: one for each series, with the range that its values spread over."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tenure.report.drawing.plot import WIDTH, Plot, grid, line, num, titled
from tenure.report.drawing.scales import Tick, nice_step, top_of
from tenure.report.theme import COLOR_COUNT
from tenure.report.words import figure_text

HEIGHT = 200

WIDE, NARROW = 900, 260
"""Pixels that an axis has for its labels on a wide page, and where room is scarce."""

LETTER, GAP = 8, 12
"""Pixels that a letter takes, and what is left free between two labels."""

CURVE_STYLE = (
    ".curve{fill:none;stroke:var(--c,currentColor);stroke-width:2;vector-effect:non-scaling-stroke}"
    ".range{stroke:var(--c,currentColor);stroke-width:2;vector-effect:non-scaling-stroke}"
    ".dot{stroke:var(--c,currentColor);stroke-width:7;stroke-linecap:round;vector-effect:non-scaling-stroke}"
)
"""What a page or picture with curves adds to its style."""


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """A point of a curve: the number of its x value, its y value, and the least and most that this is the mean of."""

    x: int
    y: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Curve:
    """A curve: its name and its points by x."""

    name: str
    points: Sequence[CurvePoint]


def curves_plot(
    label: str,
    labels: Sequence[str],
    curves: Sequence[Curve],
    write: Callable[[float], str] = figure_text,
    levels: Sequence[tuple[str, float]] = (),
    colors: Sequence[int] | None = None,
) -> Plot:
    """Draw curves over x values of which each has a label.

    Parameters
    ----------
    label
        What is to be seen, in words.
    labels
        The x values, from left to right at equal distances.
    curves
        The curves; points without a neighbour are dots.
    write
        Writes a value of the y axis.
    levels
        Names and values that are drawn across as dashed lines.
    colors
        The number of each curve's colour; default: in order.
    """
    values = [point.high for curve in curves for point in curve.points] + [value for _, value in levels]
    top = top_of(max(values, default=0.0))
    step = nice_step(top, 4)
    ticks = [Tick(step * n / top, write(step * n)) for n in range(round(top / step) + 1)]
    last = max(len(labels) - 1, 1)
    numbers = list(colors) if colors is not None else [n % COLOR_COUNT for n in range(len(curves))]
    marks = grid(ticks, HEIGHT)
    for name, value in levels:
        told = titled(f"{name}: {write(value)}")
        marks += f'<path class="curve" stroke-dasharray="6 4" d="M0 {_y(value, top)}H{WIDTH}">{told}</path>'
    for number, curve in zip(numbers, curves, strict=True):
        marks += f'<g class="c{number}">{_drawn(curve, labels, last, top, write)}</g>'
    every, where_narrow = (_every(labels, room) for room in (WIDE, NARROW))
    x = [Tick(n / last, text, minor=bool(n % where_narrow)) for n, text in enumerate(labels) if not n % every]
    legend = [(f"c{number}", curve.name) for number, curve in zip(numbers, curves, strict=True)]
    return Plot(label, HEIGHT, marks, x, ticks, legend=legend)


def _drawn(curve: Curve, labels: Sequence[str], last: int, top: float, write: Callable[[float], str]) -> str:
    places = [(point.x / last * WIDTH, point) for point in curve.points]
    marks = ""
    for x, point in places:
        if point.low < point.high:
            marks += line(x, HEIGHT * (1 - point.low / top), x, HEIGHT * (1 - point.high / top), "range")
    told = titled(f"{curve.name}: " + ", ".join(f"{labels[p.x]} {write(p.y)}" for p in curve.points))
    path = "L".join(f"{num(x)} {_y(point.y, top)}" for x, point in places)
    if len(places) == 1:
        x, point = places[0]
        at = HEIGHT * (1 - point.y / top)
        return marks + line(x, at, x, at, "dot")
    return f'{marks}<path class="curve" d="M{path}">{told}</path>' if places else marks


def _every(labels: Sequence[str], room: int) -> int:
    """Say which labels are written so that none meets another: all, or every second, third, …."""
    most = max(1, room // (max(map(len, labels), default=1) * LETTER + GAP))
    return -(-len(labels) // most)


def _y(value: float, top: float) -> str:
    return num(HEIGHT * (1 - value / top))
