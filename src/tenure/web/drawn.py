"""The geometry of the console's pictures: where bars, marks, squares and lines stand. Templates make SVG of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tenure.model.values.resources import GPU
from tenure.report.theme import COLOR_COUNT
from tenure.web.sources.picture import Picture
from tenure.web.views.look import Plain, milli
from tenure.web.words import bare

WIDTH: Final = 1000
LEVELS: Final = 6


def bars(queues: Sequence[Plain], resource: str) -> list[dict[str, Any]]:
    """Give a bar for each queue."""
    top = max([1, *(_top(queue, resource) for queue in queues)])
    return [_bar(queue, resource, top) for queue in queues]


def _of(held: Mapping[str, int] | None, resource: str) -> int | None:
    if held is None:
        return None
    known = held.keys() & ({GPU, "milliGpu"} if resource == GPU else {resource})
    return milli(held, resource) if known else None


def _top(queue: Plain, resource: str) -> int:
    keys = ("allocated", "fairShare", "guaranteed", "max")
    return max(_of(queue[key], resource) or 0 for key in keys)


def _bar(queue: Plain, resource: str, top: int) -> dict[str, Any]:
    held, asked = _of(queue["allocated"], resource) or 0, _of(queue.get("asked"), resource) or 0
    values = {key: _of(queue[key], resource) for key in ("guaranteed", "fairShare", "max")}
    marks = [
        (kind, WIDTH * value // top, f"{word} {bare(value, resource)}")
        for kind, word, value in (
            ("guaranteed", "guaranteed", values["guaranteed"]), ("fair", "fair share", values["fairShare"]),
            ("max", "max", values["max"]),
        )
        if value is not None
    ]  # fmt: skip
    width = min(WIDTH, WIDTH * held // top)
    told = ", ".join([f"{bare(held, resource)} allocated", *(text for _, _, text in marks)])
    return {
        "name": queue["name"], "depth": queue.get("depth", 0), "parent": queue.get("parent"), "resource": resource,
        "width": width, "wanted": min(WIDTH - width, WIDTH * asked // top), "marks": marks, "told": told,
        "held": held, "allocated": bare(held, resource), "fair": bare(values["fairShare"], resource),
        "guaranteed": bare(values["guaranteed"], resource), "most": bare(values["max"], resource),
        "asked": bare(asked, resource) if asked else "", "workloads": queue.get("workloads", {}),
        "shown": bool(held or asked or any(values.values())),
        "over": values["fairShare"] is not None and held > (values["fairShare"] or 0),
    }  # fmt: skip


def colors_of(picture: Picture) -> dict[str, int]:
    """Give each queue that holds or wants something its colour; the last one is for all that are too many."""
    parents = {queue.parent for queue in picture.cluster.queues}
    names = sorted({*picture.queues, *(q.name for q in picture.cluster.queues if q.name not in parents)})
    return {name: min(index, COLOR_COUNT - 1) for index, name in enumerate(names)}


def stack(picture: Picture, resource: str, colors: Mapping[str, int]) -> dict[str, Any]:
    """Give what is held of a resource as one bar, queue beside queue, in thousandths of what there is."""
    capacity = picture.nodes.size.get(resource, 0)
    parts: list[dict[str, Any]] = []
    at = 0
    for name in sorted(picture.queues):
        held = picture.queues[name].get(resource, 0)
        if held <= 0 or not capacity:
            continue
        width = WIDTH * held // capacity
        parts.append({"queue": name, "x": at, "width": width, "color": colors[name], "amount": held})
        at += width
    total = sum(part["amount"] for part in parts)
    return {"parts": parts, "held": total, "capacity": capacity, "share": total / capacity if capacity else 0.0}


def utilization(nodes: Sequence[Plain]) -> list[dict[str, Any]]:
    """Give a square for each node, as strong as it is in use."""
    return [
        {"name": node["name"], "level": _level(node["used"]), "bad": bool(node["remark"]),
         "told": f"{node['name']}: {node['used']:.0%}" + (f", {node['remark']}" if node["remark"] else "")}
        for node in nodes
    ]  # fmt: skip


def _level(share: float) -> int:
    """Give 0 for free, the last level for full, and the ones between for what is in between."""
    if share <= 0:
        return 0
    return LEVELS - 1 if share >= 1 else min(LEVELS - 2, 1 + int(share * (LEVELS - 2)))


def drawn_waves(move: Plain, most: int) -> list[dict[str, Any]]:
    """Give waves as lines between the nodes that tasks leave and those where they land, of the first ``most`` moves."""
    found: list[dict[str, Any]] = []
    for number, whole in enumerate(move.get("waves") or ()):
        wave = whole[:most]
        if not wave:
            break
        most -= len(wave)
        left, right = sorted({m["from"] for m in wave}), sorted({m["to"] for m in wave})
        row = {name: index for index, name in enumerate(left)}
        landing = {name: index for index, name in enumerate(right)}
        lines = [
            {
                "y1": row[m["from"]] * 28 + 14,
                "y2": landing[m["to"]] * 28 + 14,
                "told": f"{m['task']}: {m['from']} to {m['to']}",
            }
            for m in wave
        ]
        found.append({"number": number, "moves": wave, "left": left, "right": right, "lines": lines,
                      "height": max(len(left), len(right)) * 28})  # fmt: skip
    return found


def difference(base: Plain, changed: Plain) -> dict[str, Any]:
    """Say what a changed plan does otherwise: who starts, is evicted or waits that did not, and how queues stand."""
    started, starts = _started(base), _started(changed)
    out, outs = _evicted(base), _evicted(changed)
    waits, waited = {p["workload"] for p in base["pending"]}, {p["workload"] for p in changed["pending"]}
    before = {queue["name"]: queue for queue in base["queues"]}
    return {
        "starts": sorted(starts - started), "starts_not": sorted(started - starts),
        "evicted": sorted(outs - out), "spared": sorted(out - outs),
        "waits": sorted(waited - waits), "waits_not": sorted(waits - waited),
        "counts": [(word, len(one), len(two)) for word, one, two in (
            ("workloads start", started, starts), ("workloads are evicted", out, outs),
            ("workloads wait", waits, waited))],
        "queues": [
            {**queue, "depth": 0, "was": before.get(queue["name"], {}).get("allocated")} for queue in changed["queues"]
        ],
    }  # fmt: skip


def _started(plan: Plain) -> set[str]:
    return {step["workload"] for step in plan["steps"] if step["action"] in ("bind", "nominate")}


def _evicted(plan: Plain) -> set[str]:
    return {step["workload"] for step in plan["steps"] if step["action"] in ("evict", "notice")}
