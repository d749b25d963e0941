"""Bars that lie below one another: one for each name, with the range that its value spreads over."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tenure.report.drawing.plot import WIDTH, Plot, line, rect
from tenure.report.drawing.scales import Tick, nice_step, top_of
from tenure.report.words import figure_text

ROW = 30
"""Units that a bar with the space around it is high."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar: its name, its value from zero up, and the least and most that this is the middle of."""

    name: str
    value: float
    low: float
    high: float


def bars_plot(label: str, bars: Sequence[Bar], write: Callable[[float], str] = figure_text) -> Plot:
    """Draw bars, the first on top, over an axis from zero.

    Parameters
    ----------
    label
        What is to be seen, in words.
    bars
        What is compared. The range is a thin line, where there is one.
    write
        Writes a value, at the axis and in the tooltip of a bar.
    """
    top, height = top_of(max((bar.high for bar in bars), default=0.0)), ROW * len(bars)
    step = nice_step(top, 6)
    ticks = [Tick(n * step / top, write(n * step), minor=bool(n % 2)) for n in range(round(top / step) + 1)]
    marks = [line(tick.at * WIDTH, 0, tick.at * WIDTH, height, "grid") for tick in ticks]
    for number, bar in enumerate(bars):
        middle = (number + 0.5) * ROW
        told = f"{bar.name}: {write(bar.value)}"
        if bar.low < bar.high:
            told += f" ({write(bar.low)} to {write(bar.high)})"
        marks.append(rect(0, middle - ROW / 3, bar.value / top * WIDTH, ROW * 2 / 3, "bar c0", told))
        if bar.low < bar.high:
            marks.append(line(bar.low / top * WIDTH, middle, bar.high / top * WIDTH, middle, "whisker c7"))
    names = [Tick(1 - (number + 0.5) / len(bars), bar.name) for number, bar in enumerate(bars)]
    return Plot(label, height, "".join(marks), ticks, names, rows=True)
