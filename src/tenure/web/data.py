"""What the views show, as plain data: the JSON API gives it as it is, pages make HTML of it.

Amounts are integers in the model's units (millicores, bytes, whole GPUs with what is beyond in milli-GPU), times are
texts in UTC, waits are in seconds. Whatever the viewer does not see is left out or not named.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from tenure.history.takers import Taker
from tenure.model.duration import DAY, format_time
from tenure.model.queue import Queue
from tenure.model.resources import CPU, GPU, MEMORY, MILLI, plain_amounts
from tenure.report.plan_rows import all_moves
from tenure.web.console import Console
from tenure.web.kept_order import SortKey
from tenure.web.own_changes import own_changes
from tenure.web.picture import (
    ENDED,
    FOREIGN,
    NOT_READY,
    STATES,
    WAITING,
    Held,
    NodeLine,
    Picture,
    Placed,
    WorkloadLine,
    asked_by,
)
from tenure.web.player import FailedError
from tenure.web.source import EvictionLine, EvictionPage, EvictionQuery, WaitLine
from tenure.web.viewer import Viewer, others

MOST_PER_PAGE: Final = 1000
"""Entries that one answer may have."""


Plain = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Looked:
    """One look: the console, the picture of the moment that is asked for, and who looks."""

    console: Console
    picture: Picture
    viewer: Viewer
    at: int | None = None
    wait: float | None = None
    late: list[str] = field(default_factory=list)
    """What was not there in time."""
    failed: list[str] = field(default_factory=list)
    """Why something could not be played, as far as the viewer may know."""

    @property
    def is_settled(self) -> bool:
        """Whether all that was asked for is there, so that it would look the same again."""
        return not (self.late or self.failed)

    def told(self, text: str) -> str:
        """Give a sentence in which nothing is named that the viewer does not see."""
        return self.viewer.told(text, self.picture.nodes)

    def evictions(self, query: EvictionQuery) -> EvictionPage:
        """Give evictions as they were known at the moment."""
        return self.console.source.evictions(replace(query, at=self.at), self.viewer)

    def played(self, task: str, *arguments: Any) -> Any | None:
        """Give what is played of the picture's cluster; None where that takes too long, or failed."""
        try:
            found = self.console.ask(self.picture, task, *arguments, wait=self.wait)
        except FailedError as error:
            self.failed.append(str(error) if self.viewer.sees_everything else error.kind)
            return error.last
        if found is None:
            self.late.append(task)
        return found

    def plan(self, overrides: Sequence[str], additions: Sequence[Any]) -> Any | None:
        """Give what the next cycle of a changed copy would do; None where that takes too long, or failed.

        Raises
        ------
        WrongError
            What was asked for cannot be, or is not the viewer's to ask.
        """
        return self.played("plan", *own_changes(self.viewer, self.picture.lines, overrides, additions))


def moment(look: Looked) -> Plain:
    """Say which moment is shown, and of what."""
    source = look.console.source
    begin, end = source.span()
    return {
        "now": format_time(look.picture.now), "source": source.name, "kind": source.kind, "live": source.is_live,
        "from": format_time(begin), "to": format_time(end), "note": source.note,
        "failed": "; ".join(dict.fromkeys(look.failed)) or None,
    }  # fmt: skip


# -- overview --------------------------------------------------------------------------------------------------------


def overview(look: Looked) -> Plain:
    """What runs, what waits, who is over and under, evictions of the last day, and what somebody should look at."""
    picture, viewer = look.picture, look.viewer
    states = picture.states
    if not viewer.sees_all:
        states = sum((picture.by_namespace.get(name, Counter()) for name in viewer.namespaces or ()), Counter())
    since, until = picture.now - DAY, picture.now + 1
    day = look.evictions(EvictionQuery(since=since, until=until, how="done", limit=5))
    found = queues(look, limit=MOST_PER_PAGE)
    return {
        **moment(look),
        "workloads": {state: states.get(state, 0) for state in STATES},
        "nodes": _node_counts(picture) if viewer.nodes else None,
        "capacity": plain_amounts({name: held for name, held in picture.ready.items() if held and name != "pods"}),
        "allocated": plain_amounts(_summed(picture.queues.values())),
        "waits": [_wait(line) for line in look.console.source.waits(viewer, 5, look.at)],
        "evictions": {"day": day.total, "sums": [_cause_sum(one) for one in day.sums],
                      "latest": [eviction(line, look) for line in day.lines]},
        "over": [one for one in _balance(found["queues"]) if one["by"] > 0],
        "under": [one for one in _balance(found["queues"]) if one["by"] < 0],
        "alerts": alerts(look), "settled": found["settled"],
    }  # fmt: skip


def _node_counts(picture: Picture) -> Plain:
    return {"total": len(picture.nodes), "remarks": dict(sorted((+picture.remarks).items()))}


def _summed(held: Iterable[Mapping[str, int]]) -> Held:
    total: Held = {}
    for one in held:
        for name, amount in one.items():
            if name != "pods":
                total[name] = total.get(name, 0) + amount
    return total


def _balance(found: Sequence[Plain]) -> list[Plain]:
    """Say which leaf queues hold more of the main resource than they are due, and which hold less and want more."""
    parents = {queue["parent"] for queue in found}
    rows = []
    for queue in found:
        due = queue["fairShare"]
        if due is None or queue["name"] in parents:
            continue
        for resource in (GPU, CPU):
            held, fair = milli(queue["allocated"], resource), milli(due, resource)
            if not held and not fair:
                continue
            wants = milli(queue["asked"], resource)
            by = held - fair
            if by > 0 or (by < 0 and wants):
                rows.append({"queue": queue["name"], "resource": resource, "by": by, "held": held, "fairShare": fair})
            break
    return sorted(rows, key=lambda row: (-abs(row["by"]), row["queue"]))


def milli(held: Mapping[str, int], resource: str) -> int:
    """Give an amount of JSON in the model's units, GPUs in milli-GPU."""
    if resource == GPU:
        return held.get(GPU, 0) * MILLI + held.get("milliGpu", 0)
    return held.get(resource, 0)


def alerts(look: Looked) -> list[Plain]:
    """Say what somebody should look at: what the source complains of, and what can be read off the cluster."""
    picture = look.picture
    told = look.console.source.troubles(look.at) if look.viewer.sees_all else []
    found = [{"mood": trouble.mood, "message": trouble.message} for trouble in told]
    unknown = [key for key in picture.unknown if look.viewer.sees(key)]
    if unknown:
        text = f"the start of {_some(sorted(unknown))} is unknown, so no minimum runtime protects it"
        found.append({"mood": "odd", "message": text})
    stuck = [queue.name for queue in picture.cluster.queues
             if queue.status is not None and queue.status.quota_preemption is not None
             and queue.status.quota_preemption.deadline < picture.now - DAY // 24]  # fmt: skip
    if stuck:
        text = f"queue {_some(stuck)} is over its maximum, and was to be within it more than an hour ago"
        found.append({"mood": "bad", "message": text})
    if look.viewer.nodes and any(remark.startswith(NOT_READY) for remark in +picture.remarks):
        bad = sorted(line.name for line in picture.nodes.values() if line.remark.startswith(NOT_READY))
        found.append({"mood": "bad", "message": f"node {_some(bad)} is not ready"})
    return found + _surge(look)


def _surge(look: Looked) -> list[Plain]:
    """Say so where the last hour had several times the evictions of an hour of the day before."""
    if not look.viewer.sees_all:
        return []
    now = look.picture.now
    hour = look.evictions(EvictionQuery(since=now - DAY // 24, until=now + 1, how="done", limit=1)).total
    day = look.evictions(EvictionQuery(since=now - DAY, until=now - DAY // 24, how="done", limit=1)).total
    if hour >= 10 and hour > 4 * max(1.0, day / 23):  # noqa: PLR2004  several times what was usual
        return [
            {"mood": "bad", "message": f"{hour:,} tasks were evicted in the last hour, {day / 23:.1f} an hour before"}
        ]
    return []


def _some(names: Sequence[str], most: int = 3) -> str:
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


# -- queues ----------------------------------------------------------------------------------------------------------


def queues(look: Looked, *, limit: int, offset: int = 0) -> Plain:
    """The tree of queues, each with what it holds, is due, is guaranteed and may hold; sums are everybody's to see."""
    picture = look.picture
    shares = look.played("shares")
    due = {} if shares is None else {entry["name"]: entry for entry in shares["queues"]}
    ordered = tree(picture, due)
    models = {queue.name: queue for queue in picture.cluster.queues}
    sums = [_with_below(own, ordered) for own in (picture.counts, picture.queues, picture.asked)]
    rows = [
        _queue([one[name] for one in sums], models.get(name), name, depth, due.get(name), parent)
        for name, depth, parent in ordered[offset : offset + limit]
    ]
    return {**moment(look), "queues": rows, "total": len(ordered), "limit": limit, "offset": offset,
            "settled": shares is not None}  # fmt: skip


def tree(picture: Picture, due: Iterable[str] = ()) -> list[tuple[str, int, str | None]]:
    """Give all queues from the top down, each with its depth and parent, children by name."""
    parents = {queue.name: queue.parent for queue in picture.cluster.queues}
    for name in (*due, *(line for line in picture.queues)):
        parents.setdefault(name, None)
    children: dict[str | None, list[str]] = {}
    for name, parent in parents.items():
        children.setdefault(parent if parent in parents else None, []).append(name)
    found: list[tuple[str, int, str | None]] = []
    waiting = [(name, 0) for name in sorted(children.get(None, ()), reverse=True)]
    while waiting:
        name, depth = waiting.pop()
        found.append((name, depth, parents[name]))
        waiting += [(child, depth + 1) for child in sorted(children.get(name, ()), reverse=True)]
    return found


def _with_below(
    own: Mapping[str, Mapping[str, int]], ordered: Sequence[tuple[str, int, str | None]]
) -> dict[str, Counter[str]]:
    """Give what queues have, with what those below them have; they stand in the order of the tree."""
    found = {name: Counter(own.get(name, {})) for name, _, _ in ordered}
    for name, _, parent in reversed(ordered):
        if parent in found:
            found[parent].update(found[name])
    return found


def _queue(
    sums: Sequence[Mapping[str, int]], model: Queue | None, name: str, depth: int, due: Plain | None, parent: str | None
) -> Plain:
    """Give a queue; ``sums`` are its workloads by state, what they hold and what they ask for, those below included."""
    counts, holds, asks = sums
    held = plain_amounts({k: v for k, v in holds.items() if v and k != "pods"})
    return {
        "name": name, "parent": parent, "depth": depth,
        "allocated": held if due is None else _without_pods(due["allocated"]),
        "fairShare": None if due is None else _without_pods(due["fairShare"]),
        "guaranteed": plain_amounts(dict(model.guaranteed)) if model else {},
        "max": plain_amounts(dict(model.max)) if model else {},
        "asked": plain_amounts({k: v for k, v in asks.items() if v and k != "pods"}),
        "priority": model.priority if model else None,
        "workloads": {state: counts[state] for state in STATES if counts.get(state)},
    }  # fmt: skip


def _without_pods(held: Mapping[str, int]) -> dict[str, int]:
    return {name: amount for name, amount in held.items() if name != "pods" and amount}


# -- workloads -------------------------------------------------------------------------------------------------------

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


def workloads(look: Looked, query: WorkloadQuery) -> Plain:
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
    page = found[query.offset : query.offset + query.limit]
    return {**moment(look), "workloads": [_workload(line, picture.now) for line in page], "total": len(found),
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


def folded(text: str) -> str:
    """Give a text as it is searched: letters of one size, composed."""
    return text.lower() if text.isascii() else unicodedata.normalize("NFKC", text).casefold()


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


def workload(look: Looked, key: str) -> Plain | None:
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
        "reasons": [] if told is None else [_redacted(reason, look) for reason in told["reasons"]],
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


def _redacted(reason: Plain, look: Looked) -> Plain:
    """Give an obstacle; its numbers name others only to those who see everything."""
    if look.viewer.sees_everything:
        return reason
    kept = {key: value for key, value in reason.items() if isinstance(value, int | float)}
    return {"code": reason["code"], "message": look.told(reason["message"]), **kept}


def _takers(found: Sequence[Taker], viewer: Viewer) -> list[Plain]:
    """Give who took or holds room; those that the viewer does not see are summed up by queue, and by how they did."""
    rows: dict[Any, list[Taker]] = {}
    for number, one in enumerate(found):
        alike = number if viewer.sees(one.workload) else (one.queue, one.how, one.cause)
        rows.setdefault(alike, []).append(one)
    return [
        _others(some, _summed(one.held for one in some)) if isinstance(alike, tuple) else _taker(some[0])
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


def _wait(line: WaitLine) -> Plain:
    return {
        "workload": line.workload, "queue": line.queue, "createdAt": format_time(line.created_at),
        "startedAt": None if line.started_at is None else format_time(line.started_at), "waited_s": line.waited / 1e6,
    }  # fmt: skip


# -- nodes -----------------------------------------------------------------------------------------------------------

NODE_STATES: Final = ("free", "partly", "full", "trouble")
NODE_SORTS: Final = ("name", "used")


@dataclass(frozen=True, slots=True)
class NodeQuery:
    """Which nodes are asked for; ``text`` stands somewhere in the name."""

    text: str = ""
    state: str = ""
    sort: str = "name"
    limit: int = 500
    offset: int = 0


def nodes(look: Looked, query: NodeQuery) -> Plain:
    """Nodes with what they have and what of it is held."""
    text = folded(query.text)
    there = look.picture.nodes
    every = [there[name] for name in look.picture.node_names] if look.viewer.nodes else []
    found = [line for line in every if text in folded(line.name)] if text else every
    counts = look.picture.node_states if found and not text else Counter(line.state for line in found)
    found = [line for line in found if line.state == query.state] if query.state else found
    if query.sort == "used":
        found = sorted(found, key=lambda line: -line.share)
    page = found[query.offset : query.offset + query.limit]
    return {**moment(look), "nodes": [_node(line) for line in page], "total": len(found), "limit": query.limit,
            "offset": query.offset, "states": {state: counts[state] for state in NODE_STATES}}  # fmt: skip


def _node(line: NodeLine) -> Plain:
    return {
        "name": line.name, "state": line.state, "remark": line.remark, "used": round(line.share, 4),
        "tasks": line.tasks, "allocatable": plain_amounts(_without_pods(line.size)),
        "allocated": plain_amounts(_without_pods(line.held)),
    }  # fmt: skip


def node(look: Looked, name: str) -> Plain | None:
    """One node, device by device; what the viewer does not see is another workload's. None if there is none."""
    line = look.picture.nodes.get(name) if look.viewer.nodes else None
    if line is None:
        return None
    placed = sorted(look.picture.on_node.get(name, ()), key=lambda one: (one.workload.key, one.task.name))
    model = next(one for one in look.picture.cluster.nodes if one.name == name)
    devices = _devices(placed, model.allocatable.get(GPU, 0), model.gpu_memory)
    return {
        **moment(look), **_node(line), "labels": dict(sorted(model.labels.items())),
        "devices": [[_part_of(one, share, look.viewer) for one, share in parts] for parts in devices],
        "tasksHere": _tasks_here(placed, look, model.gpu_memory),
    }  # fmt: skip


def _devices(placed: Sequence[Placed], count: int, memory: int | None) -> list[list[tuple[Placed, int]]]:
    """Give who has how much (milli-GPU) of each device; tasks whose devices are not known get the lowest free ones."""
    found: list[list[tuple[Placed, int]]] = [[] for _ in range(count)]
    for one in sorted(placed, key=lambda one: not one.task.devices):
        share, whole = one.task.spec.gpu_share, dict(one.task.spec.requests).get(GPU, 0)
        wanted = share.devices if share is not None else whole
        if not wanted:
            continue
        each = MILLI
        if share is not None:
            each = min(MILLI, share.memory * MILLI // memory) if share.memory and memory else share.milli or MILLI
        free = [number for number, parts in enumerate(found) if not parts]
        for number in one.task.devices or free[:wanted]:
            if number < count:
                found[number].append((one, each))
    return found


def _part_of(one: Placed, share: int, viewer: Viewer) -> Plain:
    sees = viewer.sees(one.workload.key)
    return {"workload": viewer.named(one.workload.key), "task": one.task.name if sees else None,
            "queue": one.workload.queue or "default" if sees else None, "milliGpu": share}  # fmt: skip


def _tasks_here(placed: Sequence[Placed], look: Looked, gpu_memory: int | None) -> list[Plain]:
    """Give the tasks of a node; of those that the viewer does not see, what they ask for together."""
    seen = [one for one in placed if look.viewer.sees(one.workload.key)]
    rows = [_task_here(one, look, gpu_memory) for one in seen[:MOST_PER_PAGE]]
    hidden = [one for one in placed if not look.viewer.sees(one.workload.key)]
    if hidden:
        asks = _summed(_asks(one, look, gpu_memory) for one in hidden)
        workloads = len({one.workload.key for one in hidden})
        rows.append({"workload": others(workloads), "task": None, "queue": None, "phase": None,
                     "requests": plain_amounts(asks)})  # fmt: skip
    return rows


def _task_here(one: Placed, look: Looked, gpu_memory: int | None) -> Plain:
    return {
        "workload": one.workload.key, "task": one.task.name, "queue": one.workload.queue or "default",
        "phase": str(one.task.phase), "requests": plain_amounts(_asks(one, look, gpu_memory)),
    }  # fmt: skip


def _asks(one: Placed, look: Looked, gpu_memory: int | None) -> Held:
    asked = asked_by(one.task.spec, gpu_memory, look.picture.cluster.settings)
    return {name: asked[name] for name in (GPU, CPU, MEMORY) if name in asked}


# -- evictions -------------------------------------------------------------------------------------------------------


def evictions(look: Looked, query: EvictionQuery) -> Plain:
    """Evictions that happened, or would: one page, and sums by cause."""
    found = EvictionPage((), 0)
    if look.viewer.sees(query.workload or None) and look.viewer.sees(query.beneficiary or None):
        found = look.evictions(query)  # nobody finds out a name by asking for it
    return {
        **moment(look), "evictions": [eviction(line, look) for line in found.lines], "total": found.total,
        "limit": query.limit, "offset": query.offset, "sums": [_cause_sum(one) for one in found.sums],
    }  # fmt: skip


def eviction(line: EvictionLine, look: Looked) -> Plain:
    """One eviction; of two workloads the one that the viewer does not see is not named."""
    viewer = look.viewer
    sees = viewer.sees(line.workload)
    return {
        "at": format_time(line.at), "workload": viewer.named(line.workload), "queue": line.queue,
        "task": line.task if sees else None, "cause": line.cause, "for": viewer.named(line.beneficiary),
        "forQueue": line.beneficiary_queue, "node": line.node if viewer.nodes else None,
        "to": line.to if viewer.nodes else None, "cost": line.cost,
        "lost": None if line.lost is None else dict(line.lost),
        "gained": None if line.gained is None else dict(line.gained),
        "paid": line.paid, "how": line.how, "reason": look.told(line.reason),
    }  # fmt: skip


def _cause_sum(one: Any) -> Plain:
    return {"cause": one.cause, "evictions": one.count, "paid": one.paid, "unpaid": one.unpaid,
            "lost": dict(one.lost), "gained": dict(one.gained)}  # fmt: skip


def moves(look: Looked, drain: str | None) -> Plain | None:
    """What emptying a node, or making room, would move; None where there is no such node, or it is not for them."""
    if not look.viewer.sees_everything or (drain is not None and drain not in look.picture.nodes):
        return None
    plan = look.played("moves", drain)
    found = [] if plan is None else all_moves(plan)
    return {**moment(look), "settled": plan is not None, "drain": drain, "moves": found,
            "warnings": [] if plan is None else plan["warnings"]}  # fmt: skip


# -- plans -----------------------------------------------------------------------------------------------------------


def narrowed(plan: Plain, look: Looked) -> Plain:
    """Give of a plan what the viewer sees: their own workloads, and of others only the sums of queues."""
    viewer = look.viewer
    if viewer.sees_everything:
        return plan
    return {
        "now": plan["now"],
        "steps": [_step(one, look) for one in plan["steps"] if viewer.sees(one["workload"])],
        "shadow": [_step(one, look) for one in plan["shadow"] if viewer.sees(one["workload"])],
        "pending": [
            {**one, "reasons": [_redacted(reason, look) for reason in one["reasons"]]}
            for one in plan["pending"] if viewer.sees(one["workload"])
        ],
        "refused": [
            {**one, "workload": look.told(one["workload"]), "for": viewer.named(one["for"]),
             "message": look.told(one["message"])}
            for one in plan["refused"] if any(viewer.sees(key) for key in one["workload"].split(", "))
        ],
        "requeue": {"nominations": [], "skipped": [], "committed": 0, "rolledBack": 0},
        "quota": [], "quotaEvents": [], "moves": [], "queues": plan["queues"], "warnings": [],
    }  # fmt: skip


_OF_NODES: Final = frozenset({"node", "to", "devices", "claims", "volumes"})
"""What of a step says where it is, or which devices and volumes there."""


def _step(step: Plain, look: Looked) -> Plain:
    kept = dict(step)
    if "for" in kept:
        kept["for"] = look.viewer.named(kept["for"])
        kept["reason"] = look.told(kept["reason"])
    if not look.viewer.nodes:
        kept = {name: value for name, value in kept.items() if name not in _OF_NODES} | {"node": None, "devices": []}
    return kept
