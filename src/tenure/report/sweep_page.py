"""What came out of a sweep: means over seeds, as a table, as curves on one page, and everything in columns."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from tenure.model.values.duration import parse_duration
from tenure.model.values.resources import CPU, GPU
from tenure.report.drawing.curves import CURVE_STYLE, Curve, CurvePoint, curves_plot
from tenure.report.drawing.figure import figure
from tenure.report.page import Cell, html_table, page, section
from tenure.report.tables import TableColumn, Terminal, table
from tenure.report.words import HOUR, NOTHING, count, figure_text

SEED: Final = "seed"
TRACE: Final = "trace"

Value = str | int | float


@dataclass(frozen=True, slots=True)
class SweepRow:
    """A point of a sweep that is done: the values that name it, and the summary of its simulation."""

    values: Mapping[str, Value]
    result: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SweepMeasure:
    """A figure that a sweep shows: heading and title, and how it is got from a summary; None where that has none."""

    heading: str
    title: str
    value: Callable[[Mapping[str, Any]], float | None]
    write: Callable[[float], str] = figure_text


@dataclass(frozen=True, slots=True)
class SweepGroup:
    """The points of a sweep that differ by their seed alone."""

    values: Mapping[str, Value]
    rows: Sequence[SweepRow]

    def spread(self, measure: SweepMeasure) -> tuple[float, float, float] | None:
        """Give mean, least and most of a figure over the seeds; None where no seed has it."""
        found = [v for v in (measure.value(row.result) for row in self.rows) if v is not None]
        return (sum(found) / len(found), min(found), max(found)) if found else None


def _hours(*path: str) -> Callable[[Mapping[str, Any]], float | None]:
    return lambda result: None if (value := _at(result, path)) is None else value / HOUR


def _plain(*path: str) -> Callable[[Mapping[str, Any]], float | None]:
    return lambda result: _at(result, path)


def _evictions(result: Mapping[str, Any]) -> float:
    return float(sum(result["evictions"].values()))


def _at(result: Mapping[str, Any], path: Sequence[str]) -> float | None:
    value: Any = result
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value if isinstance(value, int | float) else None


_MEASURES: Final = (
    SweepMeasure("wait (h)", "Mean wait, hours", _hours("wait_s", "mean")),
    SweepMeasure("95% (h)", "95% wait, hours", _hours("wait_s", "p95")),
    SweepMeasure("slowdown", "Mean bounded slowdown", _plain("boundedSlowdown", "mean")),
    SweepMeasure("evictions", "Evictions", _evictions),
    SweepMeasure("lost GPU-hours", "Lost GPU-hours", _hours("lost", GPU)),
    SweepMeasure("lost core-hours", "Lost core-hours", _hours("lost", CPU)),
    SweepMeasure("goodput", "GPU goodput", _plain("goodput", GPU), "{:.1%}".format),
    SweepMeasure("goodput", "CPU goodput", _plain("goodput", CPU), "{:.1%}".format),
    SweepMeasure("held", "GPUs held at the end", _plain("allocated", "milliGpu"), "{:.1%}".format),
    SweepMeasure("Jain", "Jain's index of queues", _plain("jain")),
    SweepMeasure("violations", "Broken invariants", _plain("violations")),
)


def measures_of(rows: Sequence[SweepRow]) -> list[SweepMeasure]:
    """Give the figures that are not the same at all points (all, if every one is); of cores only without GPUs."""
    values = {m.title: {m.value(row.result) for row in rows} for m in _MEASURES}
    has_gpus = values["GPU goodput"] != {None}
    known = [
        m for m in _MEASURES
        if values[m.title] != {None} and not (has_gpus and m.title in ("CPU goodput", "Lost core-hours"))
    ]  # fmt: skip
    return [m for m in known if len(values[m.title]) > 1] or known


def groups_of(rows: Sequence[SweepRow]) -> list[SweepGroup]:
    """Put rows together that differ by their seed alone, in order."""
    found: dict[tuple[tuple[str, Value], ...], list[SweepRow]] = {}
    for row in rows:
        found.setdefault(tuple((k, v) for k, v in row.values.items() if k != SEED), []).append(row)
    return [SweepGroup(dict(values), same) for values, same in found.items()]


def axes_of(groups: Sequence[SweepGroup]) -> dict[str, list[Value]]:
    """Give the columns that vary, and their values in order."""
    columns = list(dict.fromkeys(name for group in groups for name in group.values))
    values = {name: list(dict.fromkeys(group.values[name] for group in groups)) for name in columns}
    return {name: found for name, found in values.items() if len(found) > 1}


def sweep_text(rows: Sequence[SweepRow], where: Terminal) -> str:
    """Give means over seeds as a table."""
    headings, lines = _table(rows)
    columns = [TableColumn(heading, right=number, wrap=not number) for heading, number in headings]
    return table(columns, lines, where)


def _table(rows: Sequence[SweepRow]) -> tuple[list[tuple[str, bool]], list[list[str]]]:
    groups, measures = groups_of(rows), measures_of(rows)
    axes = list(axes_of(groups)) or [TRACE]
    headings = [(_short(name, axes), False) for name in axes] + [(measure.heading, True) for measure in measures]
    lines = []
    for group in groups:
        spreads = [(m, group.spread(m)) for m in measures]
        cells = [NOTHING if s is None else m.write(s[0]) for m, s in spreads]
        lines.append([*(str(group.values[name]) for name in axes), *cells])
    return headings, lines


def sweep_page(rows: Sequence[SweepRow]) -> str:
    """Make one self-contained page: curves, and means over seeds."""
    groups = groups_of(rows)
    axes = axes_of(groups)
    settings = [name for name in axes if name != TRACE]
    seeds = len({row.values.get(SEED) for row in rows})
    lead = f"{count(len(rows), 'simulation')}: {_listed(axes)}{count(seeds, 'seed')}. "
    lead += "A line is the mean over seeds, a stroke from the least to the most." if seeds > 1 else ""
    parts = []
    if settings:
        parts = [
            section(
                f"{measure.title} by {settings[0]}",
                told_of_distances(axes[settings[0]]),
                figure(_plot(measure, settings[0], groups, axes)),
            )
            for measure in measures_of(rows)
        ]
    headings, lines = _table(rows)
    cells = [[Cell(text, right=number) for text, (_, number) in zip(line, headings, strict=True)] for line in lines]
    told = section("All figures", "Means over seeds.", html_table([Cell(h, right=n) for h, n in headings], cells))
    return page("Sweep", lead, [*parts, told], style=CURVE_STYLE)


def told_of_distances(values: Sequence[Value]) -> str:
    """Say that values stand at equal distances which they do not have; else nothing."""
    amounts = [_amount(value) for value in values]
    known = [amount for amount in amounts if amount is not None]
    steps = [later - earlier for earlier, later in pairwise(known)]
    if len(known) < len(values) or all(math.isclose(step, steps[0]) for step in steps):
        return ""
    return "The values stand at equal distances, which they do not have: how steep a line is says nothing."


def _amount(value: Value) -> float | None:
    """Give what a value amounts to, a number or a duration; None where it is neither."""
    for read in (float, parse_duration):
        try:
            return float(read(str(value)))
        except ValueError:
            continue
    return None


def _listed(axes: Mapping[str, Sequence[Value]]) -> str:
    return "".join(f"{len(values)} values of {name}, " for name, values in axes.items())


def _plot(measure: SweepMeasure, x: str, groups: Sequence[SweepGroup], axes: Mapping[str, Sequence[Value]]) -> Any:
    """Draw one figure over the values of one column; what else varies makes the curves."""
    others = [name for name in axes if name != x]
    curves: dict[str, list[CurvePoint]] = {}
    for group in groups:
        spread = group.spread(measure)
        if spread is not None:
            name = ", ".join(_named(other, group.values[other], list(axes)) for other in others) or measure.title
            curves.setdefault(name, []).append(CurvePoint(axes[x].index(group.values[x]), *spread))
    made = [Curve(name, sorted(points, key=lambda point: point.x)) for name, points in curves.items()]
    return curves_plot(f"{measure.title} by {x}", [str(value) for value in axes[x]], made, measure.write)


def _short(column: str, columns: Sequence[str]) -> str:
    """Name a column by the last part of its path, where no other has the same."""
    last = column.rpartition(".")[2]
    return column if [name.rpartition(".")[2] for name in columns].count(last) > 1 else last


def _named(column: str, value: Value, columns: Sequence[str]) -> str:
    return str(value) if column == TRACE else f"{_short(column, columns)} {value}"


def flat_rows(rows: Sequence[SweepRow]) -> list[dict[str, Any]]:
    """Give everything of every point in columns: the values that name it, and each figure by its path."""
    return [{**row.values, **dict(_flat("", row.result))} for row in rows]


def _flat(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    if path == "scheduler":
        yield path, json.dumps(value, ensure_ascii=False, sort_keys=True)
    elif path == TRACE:
        return  # stands among the values already
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _flat(f"{path}.{key}" if path else key, inner)
    elif isinstance(value, list):
        for entry in value:
            named = {k: v for k, v in entry.items() if k != "name"}
            yield from _flat(f"{path}.{entry['name']}", named)
    else:
        yield path, value
