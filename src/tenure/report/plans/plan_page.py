"""The page about a plan: the cluster before and after, what was decided, and why the rest waits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from tenure.model.cluster import DEFAULT_QUEUE, Cluster
from tenure.model.values.resources import MILLI_GPU
from tenure.report.drawing.figure import legend_list
from tenure.report.drawing.plot import num
from tenure.report.page import Cell, html_table, page, section
from tenure.report.plans.plan_nodes import LEAVES, PROMISED, NodeView, views_of
from tenure.report.plans.plan_picture import nodes_picture
from tenure.report.plans.plan_rows import (
    QueueBar,
    Rows,
    all_rows,
    headline,
    queue_bars,
    told_moves,
)
from tenure.report.quota_plot import quota_section
from tenure.report.theme import COLOR_COUNT, sheet
from tenure.report.words import count, resource_label
from tenure.telemetry.quota_history import QuotaTrack

MAX_LINES = 1000
"""Lines of a table; a plan with more is better read as JSON."""

_CAPTIONS = {
    "Steps": "In the order in which they have to be carried out.",
    "Waiting": "One line for each obstacle.",
    "Evictions refused": "Shields forbade these.",
}


def plan_page(before: Cluster, after: Cluster, result: dict[str, Any], quotas: Sequence[QuotaTrack] = ()) -> str:
    """Make the page that `tenure plan --report` writes.

    Parameters
    ----------
    before, after
        The cluster at both ends; tasks that were bound, evicted or nominated stand in ``after`` as they are then.
    result
        What `tenure plan --format json` prints.
    quotas
        What queues under quota preemption used over the cycles.
    """
    colors, names = _colors(before, after)
    body = [
        _nodes(before, after, colors, names),
        quota_section(quotas, result.get("quotaEvents", ())),
        *(_table(rows) for rows in all_rows(result)),
        _moves(result),
        _queues(result, colors),
    ]
    return page("Plan", headline(result), body, style=sheet("plan"))


def _colors(before: Cluster, after: Cluster) -> tuple[dict[str, int], list[str]]:
    """Give each queue with workloads a colour; the last colour is for all that are too many."""
    workloads = [*before.workloads, *after.workloads]
    names = sorted({workload.queue or DEFAULT_QUEUE for workload in workloads})
    if len(names) <= COLOR_COUNT:
        return {name: index for index, name in enumerate(names)}, names
    last = COLOR_COUNT - 1
    return {name: min(index, last) for index, name in enumerate(names)}, [*names[:last], "other queues"]


def _nodes(before: Cluster, after: Cluster, colors: dict[str, int], names: list[str]) -> str:
    old, new = views_of(before), views_of(after)
    legend = legend_list([(f"c{index}", name) for index, name in enumerate(names)])
    return section(
        "Cluster before and after", _told_of(old, new), legend, nodes_picture(old, new, colors), name="nodes"
    )


def _told_of(old: Mapping[str, NodeView], new: Mapping[str, NodeView]) -> str:
    """Say what the picture of the nodes shows, of what is there to be seen."""
    if not new:
        return "There are no nodes."
    views = [*old.values(), *new.values()]
    told = f"{count(len(new), 'node')}. "
    told += "Squares are GPUs, bars CPU and memory" if any(view.gpus for view in views) else "Bars are CPU and memory"
    states = {part.state for view in views for parts in view.things for part in parts}
    told += "; what is hatched leaves" if LEAVES in states else ""
    return told + ("; what is hatched in a frame is promised." if PROMISED in states else ".")


def _table(rows: Rows) -> str:
    shown = rows.rows[:MAX_LINES]
    more = len(rows.rows) - len(shown)
    caption = _CAPTIONS.get(rows.title, "") + (f" The first {MAX_LINES:,} of {len(rows.rows):,} lines." if more else "")
    return section(
        rows.title,
        caption.strip(),
        _plain_table(rows, shown),
        name=rows.title.lower().replace(":", "").replace(" ", "-"),
    )


def _plain_table(rows: Rows, shown: Sequence[tuple[str, ...]]) -> str:
    headings = [Cell(name.capitalize(), right=name in rows.numbers) for name in rows.headings]
    kinds = ["why" if name == "why" else "" for name in rows.headings]
    cells = [
        [
            Cell(text, right=name in rows.numbers, kind=kind, badge=text if name == "action" else "")
            for text, name, kind in zip(row, rows.headings, kinds, strict=True)
        ]
        for row in shown
    ]
    return html_table(headings, cells)


def _moves(result: dict[str, Any]) -> str:
    """Tell of plans of moves; a sentence about one is a line, and so is each of its moves."""
    told = told_moves(result)[0]
    lines, left, parts = sum(1 + len(rows.rows) for _, rows in told), MAX_LINES, []
    for sentence, rows in told:
        shown = rows.rows[: max(0, left - 1)]
        if left > 0:
            parts.append(f"<p>{escape(sentence)}</p>" + (_plain_table(rows, shown) if shown else ""))
        left -= 1 + len(shown)
    caption = "Wave by wave; the moves of a wave may be made at once." if lines > len(told) else ""
    caption += f" The first {MAX_LINES:,} of {lines:,} lines." if lines > MAX_LINES else ""
    return section("Moves", caption.strip(), *parts, name="moves") if parts else ""


def _queues(result: dict[str, Any], colors: dict[str, int]) -> str:
    bars = queue_bars(result)
    if not bars:
        return ""
    longest: dict[str, int] = {}
    for bar in bars:
        top = max(bar.allocated, bar.fair_share or 0, bar.guaranteed or 0, bar.maximum or 0)
        longest[bar.resource] = max(longest.get(bar.resource, 1), top)
    keys = "".join(
        f'<li><span class="key {kind}"></span>{name}</li>'
        for kind, name in (("fair", "fair share"), ("guaranteed", "guaranteed"), ("max", "max"))
    )
    headings = "".join(
        f'<th scope="col"{right}>{name}</th>'
        for name, right in (
            ("Queue", ""), ("Resource", ""), ("Allocated of what is due", ""),
            *((name, ' class="n"') for name in ("Allocated", "Fair share", "Guaranteed", "Max")),
        )
    )  # fmt: skip
    lines = "".join(_queue_line(bar, longest[bar.resource], colors) for bar in bars[:MAX_LINES])
    told = "What each queue holds, and what it is due."
    told += f" The first {MAX_LINES:,} of {len(bars):,} lines." if len(bars) > MAX_LINES else ""
    table = f"<table><thead><tr>{headings}</tr></thead><tbody>{lines}</tbody></table>"
    return section(
        "Queues",
        told,
        f'<ul class="legend">{keys}</ul><div class="scroll" tabindex="0">{table}</div>',
        name="queues",
    )


def _queue_line(bar: QueueBar, longest: int, colors: dict[str, int]) -> str:
    color = colors.get(bar.queue)
    mark = f'<i class="c{color}"></i>' if color is not None else ""
    fill = f'<span class="bar"><i class="c{color if color is not None else COLOR_COUNT - 1}" '
    fill += f'style="width:{num(bar.allocated * 100 / longest)}%"></i></span>'
    marks = "".join(
        f'<b class="{kind}" style="left:calc({num(value * 100 / longest)}% - 1px)" title="{escape(text)}"></b>'
        for kind, value, text in (
            ("guaranteed", bar.guaranteed, f"guaranteed {bar.text(bar.guaranteed)}"),
            ("fair", bar.fair_share, f"fair share {bar.text(bar.fair_share)}"),
            ("max", bar.maximum, f"max {bar.text(bar.maximum)}"),
        )
        if value is not None
    )
    figures = "".join(
        f'<td class="n">{escape(bar.text(value))}</td>'
        for value in (bar.allocated, bar.fair_share, bar.guaranteed, bar.maximum)
    )
    name = "GPU" if bar.resource == MILLI_GPU else resource_label(bar.resource)
    return (
        f'<tr><td>{mark}{escape(bar.queue)}</td><td>{escape(name)}</td><td><div class="due">{fill}{marks}</div></td>'
        f"{figures}</tr>"
    )
