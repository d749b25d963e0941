"""Summaries of simulations side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tenure.report.tables import TableColumn, Terminal, table, text_width
from tenure.report.words import NOTHING, number, percent, resource_hours, resource_label, seconds

Better = Literal["less", "more", ""]

_LOST = "lost."

BEST = "*"
"""Marks the best value of a row."""


@dataclass(frozen=True, slots=True)
class Measure:
    """A row of a comparison: name and unit of a figure, its path in a summary, which way is better, its values."""

    name: str
    path: str
    unit: Literal["", "s", "share"]
    better: Better
    values: tuple[float | None, ...]

    def change(self, index: int) -> float | None:
        """Give the change relative to the first summary, as a share; of shares, the difference in points."""
        base, value = self.values[0], self.values[index]
        if index == 0 or base is None or value is None:
            return None
        if self.unit == "share":
            return value - base
        return (value - base) / base if base else None

    def best(self) -> set[int]:
        """Give the summaries with the best value; none if they are all the same or no way is better."""
        known = [value for value in self.values if value is not None]
        if not self.better or len(set(known)) < 2:  # noqa: PLR2004  equal values are not compared
            return set()
        best = min(known) if self.better == "less" else max(known)
        return {index for index, value in enumerate(self.values) if value == best}


def measures(summaries: Sequence[dict[str, Any]]) -> list[Measure]:
    """Give all figures that at least one of the summaries has."""
    found = [_measure(summaries, *row) for row in _FIGURES]
    found += _by_key(summaries, "utilization", "{} utilization", "share", "more")
    found += _by_key(summaries, "goodput", "{} goodput", "share", "more")
    found += _by_key(summaries, "allocated", "{} held at the end", "share", "more")
    found += _by_key(summaries, "lost", "{} lost", "", "less")
    found += _by_key(summaries, "evictions", "evictions: {}", "", "less")
    found += [_measure(summaries, *row) for row in _LAST]
    return [measure for measure in found if any(value is not None for value in measure.values)]


_Row = tuple[str, str, Literal["", "s", "share"], Better]

_FIGURES: tuple[_Row, ...] = (
    ("jobs", "jobs", "", ""),
    ("finished", "finished", "", "more"),
    ("dropped", "dropped", "", "less"),
    ("makespan", "makespan_s", "s", "less"),
    ("mean wait", "wait_s.mean", "s", "less"),
    ("median wait", "wait_s.median", "s", "less"),
    ("95% wait", "wait_s.p95", "s", "less"),
    ("longest wait", "wait_s.max", "s", "less"),
    ("mean bounded slowdown", "boundedSlowdown.mean", "", "less"),
    ("95% bounded slowdown", "boundedSlowdown.p95", "", "less"),
)
_LAST: tuple[_Row, ...] = (
    ("Jain's index of queues", "jain", "", "more"),
    ("broken invariants", "violations", "", "less"),
    ("simulated in", "wall_s", "s", ""),
)


def _measure(
    summaries: Sequence[dict[str, Any]], name: str, path: str, unit: Literal["", "s", "share"], better: Better
) -> Measure:
    return Measure(name, path, unit, better, tuple(_at(summary, path.split(".")) for summary in summaries))


def _by_key(
    summaries: Sequence[dict[str, Any]], field: str, name: str, unit: Literal["", "s", "share"], better: Better
) -> list[Measure]:
    values = [summary.get(field) or {} for summary in summaries]
    keys = [key for key in dict.fromkeys(key for each in values for key in each) if _matters(field, key, values)]
    missing = 0 if field in ("evictions", "lost") else None
    return [
        Measure(
            name.format(resource_label(key)),
            f"{field}.{key}",
            unit,
            better,
            tuple(_value(each.get(key, missing)) for each in values),
        )
        for key in keys
    ]


def _matters(field: str, key: str, values: Sequence[dict[str, Any]]) -> bool:
    """Leave out what is 0 everywhere and would only say that there is none of it."""
    return field not in ("allocated", "lost") or any(each.get(key) for each in values)


def _at(summary: dict[str, Any], keys: Sequence[str]) -> float | None:
    value: Any = summary
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return _value(value)


def _value(value: Any) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def comparison_json(names: Sequence[str], found: Sequence[Measure]) -> dict[str, Any]:
    """Give a comparison as plain data: for each figure its values, the changes, and the names of the best."""
    return {
        "simulations": list(names),
        "figures": [
            {
                "name": measure.path,
                "better": measure.better or None,
                "values": list(measure.values),
                "change": [measure.change(index) for index in range(len(names))],
                "best": [names[index] for index in sorted(measure.best())],
            }
            for measure in found
        ],
    }


def comparison_text(names: Sequence[str], found: Sequence[Measure], where: Terminal) -> str:
    """Set a comparison for a terminal: a column per simulation, in as many tables as the width asks for.

    The first simulation, which the others are compared with, is in every table.
    """
    cells = [[_cell(measure, index) for measure in found] for index in range(len(names))]
    labels = [measure.name for measure in found]
    first = max([text_width(label) for label in labels] + [0])
    widths = [max([text_width(name), *map(text_width, column)]) for name, column in zip(names, cells, strict=True)]
    parts = []
    for chosen in _pages(widths, where.width - first):
        columns = [TableColumn("figure"), *(TableColumn(names[index], right=True) for index in chosen)]
        rows = [(label, *(cells[index][row] for index in chosen)) for row, label in enumerate(labels)]
        parts.append(table(columns, rows, where))
    return "\n".join(parts) + f"\n{BEST} best of all; changes are relative to {names[0]}\n"


def _pages(widths: Sequence[int], room: int) -> list[list[int]]:
    """Share the columns out among tables; each begins with the first column and has at least one more."""
    pages = [[0]]
    used = widths[0] + 2
    for index in range(1, len(widths)):
        if used + widths[index] + 2 > room and len(pages[-1]) > 1:
            pages.append([0])
            used = widths[0] + 2
        pages[-1].append(index)
        used += widths[index] + 2
    return pages


def _cell(measure: Measure, index: int) -> str:
    value = measure.values[index]
    change = measure.change(index)
    text = _text(measure, value)
    if change:
        sign = f"{change * 100:+.1f}"
        text += f" ({sign} pp)" if measure.unit == "share" else f" ({sign}%)"
    return f"{text} {BEST}" if index in measure.best() else f"{text}  "


def _text(measure: Measure, value: float | None) -> str:
    if value is None:
        return NOTHING
    if measure.unit == "s":
        return seconds(float(value))
    if measure.path.startswith(_LOST):
        return resource_hours(measure.path.removeprefix(_LOST), value)
    return percent(value, 2) if measure.unit == "share" else number(value, 3 if measure.path == "jain" else 2)
