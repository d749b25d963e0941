"""A plot as data: marks as SVG in a rectangle that may be stretched, and ticks and notes that are text around it.

Text stays outside the SVG, so that it keeps its size on every screen. `tenure.report.drawing.figure` sets a plot in a
page, `tenure.report.picture` in a picture of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from html import escape

import numpy as np

from tenure.report.drawing.scales import Tick
from tenure.report.drawing.series import Floats

WIDTH = 1000
"""Units that a plot is wide."""


@dataclass(frozen=True, slots=True)
class PlotNote:
    """A word at a place of the x axis (0 to 1), on a line across the plot."""

    at: float
    label: str


@dataclass(frozen=True, slots=True)
class Plot:
    """Marks in a rectangle of `WIDTH` by ``height`` units (``height`` also in CSS pixels), y downwards.

    ``label`` says in words what is to be seen, for those who cannot see it. ``rows`` says that y ticks name rows
    rather than values: they get no grid lines.
    """

    label: str
    height: int
    marks: str
    x: Sequence[Tick] = ()
    y: Sequence[Tick] = ()
    notes: Sequence[PlotNote] = ()
    legend: Sequence[tuple[str, str]] = field(default=())
    """Class of the mark and name, for each kind of mark."""
    rows: bool = False


def num(value: float) -> str:
    """Write a coordinate as short as a screen needs it."""
    return f"{value:.1f}".removesuffix(".0")


def titled(text: str) -> str:
    """Make the tooltip of a mark."""
    return f"<title>{escape(text, quote=False)}</title>"


def rect(x: float, y: float, width: float, height: float, kind: str, title: str = "") -> str:
    """Draw a rectangle of a class, with a tooltip."""
    shape = f'<rect x="{num(x)}" y="{num(y)}" width="{num(width)}" height="{num(height)}" class="{kind}"'
    return f"{shape}>{titled(title)}</rect>" if title else f"{shape}/>"


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    """Draw a line of a class; one of no length is a dot, as wide as its stroke."""
    return f'<path d="M{num(x1)} {num(y1)}L{num(x2)} {num(y2)}" class="{kind}"/>'


def grid(ticks: Iterable[Tick], height: int) -> str:
    """Draw a line across for each tick of the y axis."""
    return "".join(line(0, (1 - tick.at) * height, WIDTH, (1 - tick.at) * height, "grid") for tick in ticks)


def stacked_steps(values: Floats, top: float, height: int) -> list[str]:
    """Draw step functions on top of each other, one path each, in the classes ``c0``, ``c1`` and so on.

    ``values`` are by series and bin; ``top`` is the value at the upper edge.
    """
    if not values.size:
        return []
    upper = np.cumsum(values, axis=0)
    lower = np.vstack((np.zeros(values.shape[1]), upper[:-1]))
    return [
        f'<path d="{_band(lower[index], upper[index], top, height)}" class="area c{index}"/>'
        for index in range(len(values))
        if values[index].any()
    ]


def _band(lower: Floats, upper: Floats, top: float, height: int) -> str:
    """Outline what lies between two step functions, only where there is something between them."""
    filled = np.concatenate(([False], upper - lower > 0, [False]))
    borders = np.flatnonzero(np.diff(filled.astype(np.int8)))
    parts = []
    for begin, end in zip(borders[::2].tolist(), borders[1::2].tolist(), strict=True):
        bins = slice(begin, end)
        there = _steps(upper[bins], begin, len(upper), top, height)
        back = _steps(lower[bins], begin, len(upper), top, height)
        points = [*there, *reversed(back)]
        parts.append("M" + "L".join(f"{num(x)} {num(y)}" for x, y in points) + "Z")
    return "".join(parts)


def _steps(values: Floats, first: int, bins: int, top: float, height: int) -> list[tuple[float, float]]:
    """Give the corners of a step function, leaving out those where nothing changes on a screen."""
    levels = np.round((1 - values / top) * height, 1).tolist()
    points: list[tuple[float, float]] = []
    for index, level in enumerate(levels):
        left = (first + index) * WIDTH / bins
        if not points:
            points.append((left, level))
        elif level != points[-1][1]:
            points += [(left, points[-1][1]), (left, level)]
    return [*points, ((first + len(levels)) * WIDTH / bins, points[-1][1])]
