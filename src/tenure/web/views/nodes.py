"""Nodes: a page of them, and one device by device."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tenure.model.values.resources import CPU, GPU, MEMORY, MILLI, plain_amounts
from tenure.web.access.viewer import Viewer, others
from tenure.web.sources.picture import Held, NodeLine, Placed, asked_by
from tenure.web.views.look import MOST_PER_PAGE, Looked, Plain, folded, moment, summed, without_pods

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


def page(look: Looked, query: NodeQuery) -> Plain:
    """Nodes with what they have and what of it is held."""
    text = folded(query.text)
    there = look.picture.nodes.lines
    every = [there[name] for name in look.picture.nodes.names] if look.viewer.nodes else []
    found = [line for line in every if text in folded(line.name)] if text else every
    counts = look.picture.nodes.states if found and not text else Counter(line.state for line in found)
    found = [line for line in found if line.state == query.state] if query.state else found
    if query.sort == "used":
        found = sorted(found, key=lambda line: -line.share)
    shown = found[query.offset : query.offset + query.limit]
    return {**moment(look), "nodes": [_node(line) for line in shown], "total": len(found), "limit": query.limit,
            "offset": query.offset, "states": {state: counts[state] for state in NODE_STATES}}  # fmt: skip


def _node(line: NodeLine) -> Plain:
    return {
        "name": line.name, "state": line.state, "remark": line.remark, "used": round(line.share, 4),
        "tasks": line.tasks, "allocatable": plain_amounts(without_pods(line.size)),
        "allocated": plain_amounts(without_pods(line.held)),
    }  # fmt: skip


def one(look: Looked, name: str) -> Plain | None:
    """One node, device by device; what the viewer does not see is another workload's. None if there is none."""
    line = look.picture.nodes.lines.get(name) if look.viewer.nodes else None
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
        asks = summed(_asks(one, look, gpu_memory) for one in hidden)
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
