"""The picture of a quota being enforced: what a queue uses against its max, over the cycles that were played."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from tenure.model.values.duration import parse_time
from tenure.model.values.resources import CPU, GPU, MEMORY, MILLI
from tenure.report.drawing.figure import figure
from tenure.report.drawing.plot import WIDTH, Plot, PlotNote, grid, line, num, rect, titled
from tenure.report.drawing.scales import Tick, nice_step, time_ticks, top_of
from tenure.report.page import section
from tenure.report.words import SECOND, amount, byte_size, count, duration, resource_label, short_number
from tenure.telemetry.quota_history import QuotaPoint, QuotaTrack

HEIGHT = 190
MOST_PLOTS = 12
MOST_FIRINGS = 2
"""Firings of one queue that are named in its picture; all have a line."""

MOST_TIPS = 200

_HALF_LINE = 1.0
"""Half of what a line is wide, in units of the plot, so that one at the edge is seen."""

_WORDS = {"armed": "armed", "moved": "deadline moved", "cleared": "settled"}


def quota_section(tracks: Sequence[QuotaTrack], events: Sequence[dict[str, Any]]) -> str:
    """Show every queue that was armed, in the resources in which it was over its max.

    Parameters
    ----------
    tracks
        What the queues used.
    events
        ``quotaEvents`` of the plan's JSON.
    """
    pairs = [(track, resource) for track in tracks for resource in _resources_over(track)]
    plots = [
        f"<h3>{escape(track.queue)}: {escape(resource_label(resource))}</h3>"
        f"{figure(quota_plot(track, resource, [e for e in events if e['queue'] == track.queue]))}"
        for track, resource in pairs[:MOST_PLOTS]
    ]
    if not plots:
        return ""
    told = (
        "What a queue uses, its max (dashed line), and what is over it that cannot be enforced. Time is counted from "
        "the first cycle."
    )
    if len(pairs) > MOST_PLOTS:
        told += f" The first {MOST_PLOTS} of {len(pairs)}."
    return section("Quotas over time", told, *plots, name="quotas-over-time")


def _resources_over(track: QuotaTrack) -> list[str]:
    found = dict.fromkeys(
        r for p in track.points if p.deadline is not None for r, most in p.maximum.items() if p.used[r] > most
    )
    return sorted(found)


def quota_plot(track: QuotaTrack, resource: str, events: Sequence[dict[str, Any]]) -> Plot:
    """Draw what one queue uses of one resource."""
    begin = track.points[0].at
    end = max([track.until, begin + SECOND, *(p.deadline for p in track.points if p.deadline is not None)])
    most = max(max(p.used.get(resource, 0), p.maximum.get(resource, 0)) for p in track.points)
    top, ticks = _axis(resource, most)
    scale = _Scale(begin, end, top)
    spans = list(zip(track.points, [*(p.at for p in track.points[1:]), max(track.until, begin + SECOND)], strict=True))
    marks = grid(ticks, HEIGHT) + "".join(_span(point, until, resource, scale) for point, until in spans)
    notes = _notes(events, track)
    marks += "".join(line(at, 0, at, HEIGHT, "mark") for at in dict.fromkeys(scale.x(t) for t, _ in notes))
    marks += "".join(_tip(point, until, resource, scale) for point, until in spans[:MOST_TIPS])
    told = "; ".join(f"{label} after {duration((at - begin) / SECOND) or '0'}" for at, label in notes if label)
    return Plot(
        f"{resource_label(resource)} that {track.queue} uses against its max{': ' if told else ''}{told}",
        HEIGHT,
        marks,
        time_ticks(0.0, (end - begin) / SECOND),
        ticks,
        [PlotNote(scale.x(at) / WIDTH, label) for at, label in notes if label],
        (("c0", "used"), *((("short", "cannot be enforced"),) if _is_short(track, resource) else ())),
    )


def _is_short(track: QuotaTrack, resource: str) -> bool:
    return any(point.shortfall.get(resource) for point in track.points)


class _Scale:
    """Where times and amounts lie."""

    def __init__(self, begin: int, end: int, top: float) -> None:
        self.begin, self.length, self.top = begin, end - begin, top

    def x(self, at: int) -> float:
        """Give the place of a time, in units of the plot, a line's width inside."""
        place = WIDTH * (at - self.begin) / self.length
        return min(max(place, _HALF_LINE), WIDTH - _HALF_LINE)

    def y(self, value: float) -> float:
        """Give the height of an amount, in units of the plot, downwards."""
        return HEIGHT * (1 - value / self.top)


def _axis(resource: str, most: float) -> tuple[float, list[Tick]]:
    """Give the end of the axis, in the model's units, and its ticks."""
    unit = 1.0
    if resource == MEMORY:
        while most / unit >= 1024:  # noqa: PLR2004  binary units
            unit *= 1024
    elif resource in (CPU, GPU):
        unit = float(MILLI)
    top = top_of(most / unit * 1.05)
    step = nice_step(top, 4)
    values = [step * index for index in range(round(top / step) + 1)]
    write = (lambda v: byte_size(v * unit)) if resource == MEMORY else short_number
    return top * unit, [Tick(value / top, write(value)) for value in values]


def _span(point: QuotaPoint, until: int, resource: str, scale: _Scale) -> str:
    held, most = point.used.get(resource, 0), point.maximum.get(resource)
    left, right = scale.x(point.at), scale.x(until)
    marks = rect(left, scale.y(held), right - left, HEIGHT - scale.y(held), "level c0")
    if most is None:
        return marks
    short = min(point.shortfall.get(resource, 0), max(0, held - most))
    if short:
        marks += rect(left, scale.y(most + short), right - left, scale.y(most) - scale.y(most + short), "short")
    return marks + line(left, scale.y(most), right, scale.y(most), "capacity")


def _tip(point: QuotaPoint, until: int, resource: str, scale: _Scale) -> str:
    held, most = point.used.get(resource, 0), point.maximum.get(resource)
    begins, ends = ((at - scale.begin) / SECOND for at in (point.at, until))
    text = f"{duration(begins)} to {duration(ends)}: uses {amount(resource, held, milli_gpu=True)}"
    if most is not None:
        text += f", max {amount(resource, most, milli_gpu=True)}"
    if point.shortfall.get(resource):
        text += f"; {amount(resource, point.shortfall[resource], milli_gpu=True)} cannot be enforced"
    left, right = scale.x(point.at), scale.x(until)
    return f'<rect x="{num(left)}" width="{num(right - left)}" height="{HEIGHT}" class="strip">{titled(text)}</rect>'


def _notes(events: Sequence[dict[str, Any]], track: QuotaTrack) -> list[tuple[int, str]]:
    """Give what happened to a queue, each with its time; of many firings only the first ones are named."""
    deadlines = [p.deadline for p in track.points if p.deadline is not None]
    found: list[tuple[int, str]] = []
    if track.points[0].deadline is not None and not any(e["event"] == "armed" for e in events):
        found.append((track.points[0].at, "armed before"))
    firings = [(parse_time(e["at"]), e["tasks"]) for e in events if e["event"] == "fired"]
    if deadlines and deadlines[-1] not in (at for at, _ in firings):
        found.append((deadlines[-1], "deadline"))
    for index, (at, tasks) in enumerate(firings):
        due = "deadline, " if at in deadlines else ""
        found.append((at, f"{due}fires: {count(tasks, 'task')}" if index < MOST_FIRINGS else ""))
    found += [(parse_time(e["at"]), _WORDS[e["event"]]) for e in events if e["event"] in _WORDS]
    return sorted(found)
