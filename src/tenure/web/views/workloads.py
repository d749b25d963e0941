"""Workloads: a page of them, and one with its reasons, its story, and who took its room."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from tenure.history.reading.takers import Taker
from tenure.model.values.duration import format_time
from tenure.model.values.resources import plain_amounts
from tenure.web.access.viewer import Viewer, others
from tenure.web.sources.kept_order import SortKey
from tenure.web.sources.picture import ENDED, FOREIGN, WAITING, Held, WorkloadLine
from tenure.web.views.look import MOST_PER_PAGE, Looked, Plain, folded, moment, redacted, summed

WORKLOAD_SORTS: Final = ("waited", "name", "priority", "queue", "size")


@dataclass(frozen=True, slots=True)
class WorkloadQuery:
    """Which workloads are asked for; ``text`` stands somewhere in the name."""

    state: str = ""
    queue: str = ""
    text: str = ""
    sort: str = "waited"
    limit: int = 100
    offset: int = 0


def page(look: Looked, query: WorkloadQuery) -> Plain:
    """Workloads that the viewer sees."""
    picture, viewer, text = look.picture, look.viewer, folded(query.text)
    order = picture.in_order(f"{query.sort} {picture.main}", _sorted_by(query.sort, picture.main))
    if viewer.sees_all and not (text or query.state or query.queue):
        found = order
    else:
        found = [
            line for line in order
            if query.state in ("", line.state) and query.queue in ("", line.queue)
            and viewer.sees(line.key) and (not text or text in folded(line.key))
        ]  # fmt: skip
    shown = found[query.offset : query.offset + query.limit]
    return {**moment(look), "workloads": [_workload(line, picture.now) for line in shown], "total": len(found),
            "limit": query.limit, "offset": query.offset}  # fmt: skip


def _sorted_by(sort: str, main: str) -> SortKey[WorkloadLine]:
    """Give what workloads are sorted by; no two have it in common."""
    match sort:
        case "name":
            return lambda line: line.key
        case "priority":
            return lambda line: (-line.priority, line.key)
        case "queue":
            return lambda line: (line.queue, line.key)
        case "size":
            return lambda line: (-line.held.get(main, 0) - line.asked.get(main, 0), line.key)
        case _:
            return lambda line: (line.state != WAITING, _waited_first(line), line.key)


def _waited_first(line: WorkloadLine) -> int:
    """Give less for those that waited longer: among those that wait, and among the others."""
    if line.state == WAITING:
        return line.created_at
    if line.state == FOREIGN or line.started_at is None or not line.created_at:
        return 0
    return min(0, line.created_at - line.started_at)


def _workload(line: WorkloadLine, now: int) -> Plain:
    end = now if line.state == WAITING or line.started_at is None else line.started_at
    return {
        "workload": line.key, "queue": line.queue, "priority": line.priority, "state": line.state,
        "tasks": line.tasks, "running": line.running, "waiting": line.waiting,
        "createdAt": format_time(line.created_at) if line.created_at else None,
        "startedAt": None if line.started_at is None else format_time(line.started_at),
        "waited_s": max(0, end - line.created_at) / 1e6 if line.created_at and line.state != FOREIGN else None,
        "allocated": plain_amounts({k: v for k, v in line.held.items() if k != "pods"}),
        "asked": plain_amounts({k: v for k, v in line.asked.items() if k != "pods"}),
    }  # fmt: skip


def one(look: Looked, key: str) -> Plain | None:
    """One workload: where it stands, why, what it would take, its story, who took its room; None if there is none."""
    source, viewer = look.console.source, look.viewer
    if not viewer.sees(key):
        return None
    line = look.picture.lines.get(key)
    story = source.story(key, MOST_PER_PAGE, look.at, viewer)
    if line is None and not story:
        return None
    told = look.played("explain", key) if line is not None else None
    shares = look.played("shares") if line is not None and line.state == WAITING else None
    known = {"workload": key, "state": ENDED, "queue": ""} if line is None else _workload(line, look.picture.now)
    model = look.picture.workloads.get(key)
    return {
        **moment(look), **known,
        "settled": line is None or told is not None,
        "placeInOrder": _place(shares, key),
        "summary": "" if told is None else look.told(told["summary"]),
        "reasons": [] if told is None else [redacted(reason, look) for reason in told["reasons"]],
        "whatItTakes": [] if told is None else [look.told(text) for text in told["whatItTakes"]],
        "estimatedStart": None if told is None else told["estimatedStart"],
        "placement": [] if model is None else [
            {"task": task.name, "node": task.node if viewer.nodes else None, "devices": list(task.devices),
             "phase": str(task.phase)} for task in model.tasks[:MOST_PER_PAGE]],
        "story": [{"at": format_time(one.at), "kind": one.kind, "cause": one.cause or None,
                   "for": viewer.named(one.whom), "message": look.told(one.message)} for one in story],
        "takers": _takers(source.takers(key, 20, look.at), viewer),
    }  # fmt: skip


def _place(shares: Plain | None, key: str) -> Plain | None:
    if shares is None or key not in shares["order"]:
        return None
    return {"place": shares["order"].index(key) + 1, "of": len(shares["order"])}


def _takers(found: Sequence[Taker], viewer: Viewer) -> list[Plain]:
    """Give who took or holds room; those that the viewer does not see are summed up by queue, and by how they did."""
    rows: dict[Any, list[Taker]] = {}
    for number, one in enumerate(found):
        alike = number if viewer.sees(one.workload) else (one.queue, one.how, one.cause)
        rows.setdefault(alike, []).append(one)
    return [
        _others(some, summed(one.held for one in some)) if isinstance(alike, tuple) else _taker(some[0])
        for alike, some in rows.items()
    ]


def _taker(taker: Taker) -> Plain:
    return {
        "workload": taker.workload, "workloads": 1, "queue": taker.queue, "how": taker.how,
        "cause": taker.cause or None,
        "createdAt": format_time(taker.created_at) if taker.created_at else None,
        "startedAt": format_time(taker.started_at) if taker.started_at is not None else None,
        "until": None if taker.until is None else format_time(taker.until),
        "allocated": plain_amounts({k: v for k, v in taker.held.items() if k != "pods"}),
    }  # fmt: skip


def _others(alike: Sequence[Taker], held: Held) -> Plain:
    return {
        "workload": others(len(alike)), "workloads": len(alike), "queue": alike[0].queue, "how": alike[0].how,
        "cause": alike[0].cause or None, "createdAt": None, "startedAt": None, "until": None,
        "allocated": plain_amounts(held),
    }  # fmt: skip
