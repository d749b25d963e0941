"""The nodes of a cluster before and after, as HTML: one by one, or in numbers where there are many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape

from tenure.model.values.resources import CPU, MEMORY, MILLI, MILLI_GPU
from tenure.report.drawing.plot import num
from tenure.report.page import Cell, details, html_table
from tenure.report.plans.plan_nodes import LEAVES, PROMISED, NodePart, NodeView, held
from tenure.report.words import amount, bare_amount, count, percent

MANY = 60
"""More nodes than this are shown in one picture, and one by one only where something changes."""

MAX_ROWS = 60
"""Nodes that are shown one by one."""

MAX_SQUARES = 3000
"""Squares in the picture of many nodes; of more nodes, neighbours share one."""

ACROSS = 50
LEVELS = 6

Views = Mapping[str, NodeView]
Colors = Mapping[str, int]


def nodes_picture(before: Views, after: Views, colors: Colors) -> str:
    """Show all nodes, those with changes first."""
    changed = [name for name in after if _differs(before.get(name), after[name])]
    same = [name for name in after if not _differs(before.get(name), after[name])]
    if len(after) <= MANY:
        rows = _rows(changed, before, after, colors)
        rest = _rows(same, before, after, colors)
        if not changed:
            return rest
        return rows + (details(f"{count(len(same), 'node')} without a change", rest) if same else "")
    parts = [_squares(before, after), _free_table(before, after)]
    if changed:
        parts.append("<h3>Nodes with changes</h3>" + _rows(changed[:MAX_ROWS], before, after, colors))
    if len(changed) > MAX_ROWS:
        parts.append(f'<p class="caption">and {count(len(changed) - MAX_ROWS, "more node")} with changes</p>')
    return "".join(parts)


def _differs(before: NodeView | None, after: NodeView) -> bool:
    return before is None or any(
        sorted(old) != sorted(new)
        for old, new in zip(
            before.things,
            after.things,
            strict=True,
        )
    )


def _rows(names: Sequence[str], before: Views, after: Views, colors: Colors) -> str:
    if not names:
        return ""
    head = '<div class="node head"><span></span><span>before</span><span>after</span></div>'
    return head + "".join(_row(before.get(name), after[name], colors) for name in names)


def _row(before: NodeView | None, after: NodeView, colors: Colors) -> str:
    remark = f"<small>{escape(after.remark)}</small>" if after.remark else ""
    left = "<div></div>" if before is None else _state(before, colors, "before")
    who = f'<div class="who">{escape(after.name)}{remark}</div>'
    return f'<div class="node">{who}{left}{_state(after, colors, "after")}</div>'


def _state(view: NodeView, colors: Colors, moment: str) -> str:
    devices = "".join(_device(index, parts, colors) for index, parts in enumerate(view.gpus))
    gpus = f'<div class="gpus">{devices}</div>' if view.gpus else ""
    bars = _meter(CPU, view.cpu_parts, view.cpu, colors) + _meter(MEMORY, view.memory_parts, view.memory, colors)
    return f'<div class="state {moment}">{gpus}{bars}</div>'


def _device(index: int, parts: Sequence[NodePart], colors: Colors) -> str:
    told = "; ".join(_told(part, MILLI_GPU) for part in parts) or "free"
    cells = "".join(
        f'<i class="{_class(part, colors)}" style="height:{num(part.amount * 100 / MILLI)}%"></i>' for part in parts
    )
    return f'<span class="gpu" title="{escape(f"GPU {index}: {told}")}">{cells}</span>'


def _meter(resource: str, parts: Sequence[NodePart], size: int, colors: Colors) -> str:
    if not size:
        return ""
    cells = "".join(
        f'<i class="{_class(part, colors)}" style="width:{num(part.amount * 100 / size)}%" '
        f'title="{escape(_told(part, resource))}"></i>'
        for part in parts
    )
    text = f"{bare_amount(resource, held(parts))} of {amount(resource, size)}"
    return f'<div class="meter"><span class="bar">{cells}</span><span>{escape(text)}</span></div>'


def _told(part: NodePart, resource: str) -> str:
    how = {LEAVES: ", leaving", PROMISED: ", promised"}.get(part.state, "")
    return f"{part.workload} {part.task} ({part.queue}) {amount(resource, part.amount)}{how}"


def _class(part: NodePart, colors: Colors) -> str:
    return f"c{colors.get(part.queue, 0)}" + (f" {part.state}" if part.state in (LEAVES, PROMISED) else "")


def _squares(before: Views, after: Views) -> str:
    return (
        '<div class="many">'
        + "".join(
            f"<div><h3>{name}</h3>{_utilization(views, name)}</div>"
            for name, views in (("Before", before), ("After", after))
        )
        + '</div><ul class="legend">'
        + "".join(f'<li><i class="u{level}"></i>{_level_text(level)}</li>' for level in range(LEVELS))
        + "</ul>"
    )


def _level_text(level: int) -> str:
    if level in (0, LEVELS - 1):
        return "free" if not level else "full"
    step = 100 // (LEVELS - 2)
    return f"up to {step * level}%" if level < LEVELS - 2 else f"less than {step * level}%"


def _utilization(views: Views, name: str) -> str:
    """Draw a square for each node, or for each few neighbours, as strong as they are in use."""
    nodes = list(views.values())
    each = -(-len(nodes) // MAX_SQUARES)
    squares = [nodes[index : index + each] for index in range(0, len(nodes), each)]
    marks = []
    for index, group in enumerate(squares):
        share = sum(view.share for view in group) / len(group)
        row, column = divmod(index, ACROSS)
        who = group[0].name if len(group) == 1 else f"{group[0].name} to {group[-1].name}"
        told = f"{who}: {percent(share, 0)}"
        marks.append(
            f'<rect x="{column * 10}" y="{row * 10}" width="9" height="9" class="u{_level(share)}">'
            f"<title>{escape(told, quote=False)}</title></rect>"
        )
    height = -(-len(squares) // ACROSS) * 10
    used = percent(sum(view.share for view in nodes) / len(nodes), 0)
    kind = "each square as strong as its node is" if each == 1 else f"each square as strong as its {each} nodes are"
    label = f"{count(len(nodes), 'node')} {name.lower()}, {used} in use on average, {kind} in use"
    return (
        f'<svg class="heat" viewBox="0 0 {ACROSS * 10} {height}" role="img" aria-label="{label}">{"".join(marks)}</svg>'
    )


def _level(share: float) -> int:
    """Give 0 for free, the last level for full, and the ones between for what is in between."""
    if share <= 0:
        return 0
    return LEVELS - 1 if share >= 1 else min(LEVELS - 2, 1 + int(share * (LEVELS - 2)))


def _free_table(before: Views, after: Views) -> str:
    """Count nodes by how many of their GPUs are wholly free."""
    counts = [Counter(_free(view) for view in views.values() if view.gpus) for views in (before, after)]
    if not any(counts):
        return ""
    rows = [
        [
            Cell(str(free), right=True),
            Cell(f"{counts[0][free]:,}", right=True),
            Cell(f"{counts[1][free]:,}", right=True),
        ]
        for free in sorted({*counts[0], *counts[1]})
    ]
    headings = [Cell(text, right=True) for text in ("GPUs free", "nodes before", "nodes after")]
    return f'<div class="narrow">{html_table(headings, rows)}</div>'


def _free(view: NodeView) -> int:
    return sum(not parts for parts in view.gpus)
