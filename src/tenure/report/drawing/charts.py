"""The plots of a simulation."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tenure.model.values.resources import CPU, GPU, MEMORY, MILLI
from tenure.report.drawing.plot import WIDTH, Plot, PlotNote, grid, line, num, rect, stacked_steps, titled
from tenure.report.drawing.scales import LogScale, Tick, duration_scale, nice_step, time_ticks, top_of
from tenure.report.drawing.series import Floats, ResourceUse, Series
from tenure.report.words import amount, bare_amount, duration, number, percent, resource_label, short_number
from tenure.simulator.traces.records import SECOND

STRIPS = 90
"""Strips over a plot of a series, each with a tooltip."""

HEIGHT = 200
ROW = 30
MAX_ROWS = 16
DISTRIBUTION_BINS = 32


def use_plot(use: ResourceUse) -> Plot:
    """What is held of a resource, by queue, with a line at the capacity."""
    series, capacity = use.series, use.capacity
    top = capacity * 1.05
    ticks = [Tick(share * capacity / top, f"{share:.0%}") for share in (0, 0.25, 0.5, 0.75, 1)]
    name = resource_label(use.resource)
    milli = use.resource == GPU

    def tell(values: Floats) -> str:
        held = float(values.sum())
        return f"{percent(held / capacity, 0)} of {amount(use.resource, capacity, milli_gpu=milli)}" + _parts(
            series.groups,
            values,
            lambda value: bare_amount(use.resource, _rounded(use.resource, value), milli_gpu=milli),
        )

    marks = (
        grid(ticks, HEIGHT)
        + "".join(stacked_steps(series.values, top, HEIGHT))
        + line(0, HEIGHT - HEIGHT / 1.05, WIDTH, HEIGHT - HEIGHT / 1.05, "capacity")
        + _strips(series, HEIGHT, tell)
    )
    mean = float(series.values.sum(axis=0).mean()) / capacity
    label = f"{name} in use over time by queue; {percent(mean)} of the capacity on average"
    return Plot(label, HEIGHT, marks, _time_axis(series), ticks, legend=_legend(series.groups))


def _rounded(resource: str, value: float) -> float:
    """Round to what a tooltip needs: whole millis, or millionths of bytes."""
    if resource == MEMORY:
        return value
    return round(value, -1) if resource in (CPU, GPU) and value > MILLI else round(value)


def waiting_plot(series: Series) -> Plot:
    """Jobs that wait, by queue."""
    total = series.values.sum(axis=0)
    top = top_of(float(total.max()))
    ticks = _count_ticks(top)

    def tell(values: Floats) -> str:
        return f"{number(float(values.sum()))} jobs waiting" + _parts(series.groups, values, number)

    marks = grid(ticks, HEIGHT) + "".join(stacked_steps(series.values, top, HEIGHT)) + _strips(series, HEIGHT, tell)
    label = f"waiting jobs over time by queue; about {total.max():,.0f} at most, {total.mean():,.1f} on average"
    return Plot(label, HEIGHT, marks, _time_axis(series), ticks, legend=_legend(series.groups))


def evictions_plot(series: Series) -> Plot:
    """Evicted tasks over time, by cause."""
    total = series.values.sum(axis=0)
    top = top_of(float(total.max()))
    ticks = _count_ticks(top)

    def tell(values: Floats) -> str:
        return f"{int(values.sum()):,} tasks evicted" + _parts(series.groups, values, lambda value: f"{int(value):,}")

    marks = grid(ticks, HEIGHT) + "".join(stacked_steps(series.values, top, HEIGHT)) + _strips(series, HEIGHT, tell)
    label = f"evicted tasks over time by cause; {int(total.sum()):,} in all"
    return Plot(label, HEIGHT, marks, _time_axis(series), ticks, legend=_legend(series.groups))


def _count_ticks(top: float) -> list[Tick]:
    step = max(1.0, nice_step(top, 4))  # what is counted has no halves
    return [Tick(step * index / top, short_number(step * index)) for index in range(round(top / step) + 1)]


def _legend(names: Sequence[str]) -> list[tuple[str, str]]:
    return [(f"c{index}", name) for index, name in enumerate(names)]


def _time_axis(series: Series) -> list[Tick]:
    return time_ticks(0.0, float(series.edges[-1] - series.edges[0]) / SECOND)


def _parts(names: Sequence[str], values: Floats, write: Callable[[float], str]) -> str:
    """List what every group has of a strip, the largest first, if there are several."""
    if len(names) < 2:  # noqa: PLR2004  one group is the whole
        return ""
    ranked = sorted(range(len(names)), key=lambda index: -float(values[index]))
    parts = [f"\n{names[index]}: {write(float(values[index]))}" for index in ranked if values[index] > 0]
    return "".join(parts)


def _strips(series: Series, height: int, tell: Callable[[Floats], str]) -> str:
    """Lay strips with tooltips over a plot; a strip tells the mean of its bins (of counts, their sum)."""
    bins = series.values.shape[1]
    width = max(1, bins // STRIPS)
    counted = bins < STRIPS
    strips = []
    for first in range(0, bins, width):
        part = series.values[:, first : first + width]
        values = part.sum(axis=1) if counted else part.mean(axis=1)
        begin, end = (float(series.edges[i] - series.edges[0]) / SECOND for i in (first, first + part.shape[1]))
        text = f"{duration(begin)} to {duration(end)}: {tell(values)}"
        strips.append(
            f'<rect x="{num(first * WIDTH / bins)}" width="{num(part.shape[1] * WIDTH / bins)}" '
            f'height="{height}" class="strip">{titled(text)}</rect>'
        )
    return "".join(strips)


def slowdown_plot(slowdowns: Floats) -> Plot:
    """Distribution of the bounded slowdown on a logarithmic axis."""
    decades = max(1, math.ceil(math.log10(max(float(slowdowns.max()), 1.0)) - 1e-9))
    x = [Tick(power / decades, f"{10**power:,}", minor=bool((decades - power) % 2)) for power in range(decades + 1)]
    return _distribution("bounded slowdown", slowdowns, LogScale(1.0, 10.0**decades), x, _factor)


def _factor(value: float) -> str:
    return f"{value:,.2f}" if value < 100 else f"{value:,.0f}"  # noqa: PLR2004  three digits are enough to read


def wait_distribution_plot(waits: Floats) -> Plot:
    """Distribution of waits, in seconds, on a logarithmic axis."""
    scale, x = duration_scale(float(waits.max()))
    return _distribution("wait", waits, scale, x, duration)


def _distribution(name: str, values: Floats, scale: LogScale, x: Sequence[Tick], write: Callable[[float], str]) -> Plot:
    """Count values in bins of equal length on a logarithmic axis; what is less than its beginning is in the first."""
    edges = scale.low * (scale.high / scale.low) ** np.linspace(0, 1, DISTRIBUTION_BINS + 1)
    counts = np.bincount(
        np.clip(np.searchsorted(edges, values, side="right") - 1, 0, DISTRIBUTION_BINS - 1), minlength=DISTRIBUTION_BINS
    )
    top = top_of(float(counts.max()))
    ticks = _count_ticks(top)
    width = WIDTH / DISTRIBUTION_BINS
    bars = []
    for index, size in enumerate(counts.tolist()):
        if size:
            tall = max(size / top * HEIGHT, 1.0)
            bounds = f"{write(edges[index]) if index else 'up'} to {write(edges[index + 1])}"
            text = f"{name} {bounds}: {size:,} jobs ({percent(size / len(values))})"
            bars.append(rect(index * width, HEIGHT - tall, width, tall, "bar c0", text))
    mean, p95 = float(values.mean()), float(np.percentile(values, 95))
    notes = [PlotNote(scale.at(mean), f"mean {write(mean)}"), PlotNote(scale.at(p95), f"95% below {write(p95)}")]
    marks = grid(ticks, HEIGHT) + "".join(bars) + "".join(_mark_at(note, HEIGHT) for note in notes)
    return Plot(
        f"distribution of the {name} of {len(values):,} jobs; mean {write(mean)}", HEIGHT, marks, x, ticks, notes
    )


def _mark_at(note: PlotNote, height: int) -> str:
    return line(note.at * WIDTH, 0, note.at * WIDTH, height, "mark")


def wait_plot(queues: Sequence[dict[str, Any]], colors: dict[str, int]) -> Plot | None:
    """Wait by queue on a logarithmic axis: median to 95% as a bar, up to the maximum as a line, the mean as a dot.

    ``queues`` are those of the summary; the ones with most jobs are shown.
    """
    ranked = sorted(queues, key=lambda queue: (-queue["jobs"], queue["name"]))
    shown = [queue for queue in ranked if queue["wait_s"]["mean"] is not None][:MAX_ROWS]
    if not shown:
        return None
    scale, ticks = duration_scale(max(queue["wait_s"]["max"] for queue in shown))
    height = ROW * len(shown)
    marks = [line(tick.at * WIDTH, 0, tick.at * WIDTH, height, "grid") for tick in ticks]
    names = []
    for index, queue in enumerate(shown):
        marks.append(_wait_row(queue, (index + 0.5) * ROW, scale, colors.get(queue["name"], max(colors.values()))))
        names.append(Tick(1 - (index + 0.5) / len(shown), queue["name"]))
    label = "wait by queue: bar from the median to 95%, line to the maximum, dot at the mean"
    return Plot(label, height, "".join(marks), ticks, names, rows=True)


def _wait_row(queue: dict[str, Any], y: float, scale: LogScale, color: int) -> str:
    wait = queue["wait_s"]
    mean, median, p95, longest = (scale.at(wait[key]) * WIDTH for key in ("mean", "median", "p95", "max"))
    told = ", ".join(f"{name} {duration(wait[key])}" for name, key in _WAITS)
    title = titled(f"{queue['name']}: {told}")
    marks = line(median, y, longest, y, "whisker") + line(median, y, p95, y, "range") + line(mean, y, mean, y, "dot")
    return (
        f'<g class="c{color}">{title}{marks}'
        f'<rect y="{num(y - ROW / 2)}" width="{WIDTH}" height="{ROW}" class="strip"/></g>'
    )


_WAITS = (("mean", "mean"), ("median", "median"), ("95%", "p95"), ("max", "max"))
