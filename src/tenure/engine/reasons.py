"""Why a workload waits: one reason for each obstacle, with its numbers.

Codes: ``Gated``, ``NotEnoughTasks``, ``Unsupported``, ``OverMax``, ``BeyondGuaranteed``, ``NeverFits``,
``NoNodeFits``, ``NoRoomTogether``, ``Reserved``, ``NextCycle``, ``Nominated``, ``AwaitsNodes``, ``VolumeNotReady``,
``DevicesNotReady``, ``AllocateIdle``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

import numpy as np

from tenure.engine.device_reasons import missing_devices, tied_by_devices
from tenure.engine.plan import Reason
from tenure.engine.room.classes import TaskClass
from tenure.engine.room.labels import reached
from tenure.engine.room.nodes import FREE_DEVICES, THEN, UNLIMITED, NodeTable
from tenure.engine.serving.reserved_start import NextPass
from tenure.engine.state.evictions import going
from tenure.engine.state.session import Session
from tenure.engine.state.shortage import shortage
from tenure.engine.state.workloads import GATED, PENDING, Demand, SubgroupState, TaskState, WorkloadState
from tenure.engine.volume_reasons import tied_by_volumes
from tenure.model.node import Node
from tenure.model.values.duration import format_time
from tenure.model.values.readable import amount_with_unit, bare_quantity
from tenure.model.values.resources import GPU
from tenure.model.workload import TaskSpec

Ints = np.ndarray[Any, np.dtype[np.int64]]
Mask = np.ndarray[Any, np.dtype[np.bool_]]

BESIDE_OTHERS: Final = "affinity to other tasks, spread or host ports"
"""The obstacle of nodes that refuse a task for what else is placed there, or elsewhere."""


def why_pending(session: Session, workload: WorkloadState, following: NextPass) -> tuple[Reason, ...]:
    """Give the reasons why a workload that has tasks to place waits; ``following`` is asked where it would fit."""
    nominated = [t for t in workload.tasks if t.nominated >= 0]
    if nominated:
        return (_nominated(session, nominated),)
    step = workload.step
    asked = sorted({u for t in workload.tasks if t.phase is PENDING for u in t.cls.spec.unsupported})
    if asked:
        return (unsupported(asked),)
    waiting = [t for t in workload.tasks if t.phase is PENDING]
    missing = sorted({u.awaits for t in waiting for u in t.model.spec.device_uses if u.awaits})
    if missing:
        return (Reason("DevicesNotReady", f"it waits for {_listed(missing)}", {"claims": missing}),)
    awaited = sorted({u for t in waiting for u in t.cls.spec.awaits})
    if awaited:
        return (Reason("VolumeNotReady", f"it waits for {_listed(awaited)}", {"volumes": awaited}),)
    if step is None:
        return (why_no_step(workload),)
    found = [*_queue_reasons(session, workload, step), *_node_reasons(session, workload, step)]
    return tuple(found) or (_fits_after_all(session, workload, step, following),)


def _fits_after_all(session: Session, workload: WorkloadState, step: Demand, following: NextPass) -> Reason:
    if "allocate" not in session.settings.actions:
        text = "it fits if none before it takes the room; allocate, which places all in order, is not among the actions"
        return Reason("AllocateIdle", text)
    if following.places(workload):
        return Reason("NextCycle", "it fits now that other workloads were placed or evicted; the next cycle places it")
    if following.reserved is not None and following.reserved.workload is not workload:
        first, at = following.reserved.workload.key, format_time(following.reserved.at)
        text = f"it fits, but it would delay {first}, which has a reservation from {at} on"
        return Reason("Reserved", text, {"workload": first, "from": at})
    there, requests = int((~session.nodes.outside).sum()), dict(step.tasks[0].cls.spec.requests)
    numbers = {"nodes": there, "failed": {}, "requests": requests}
    return Reason("NoNodeFits", "it fits, but in the next cycle workloads before it take the room", numbers)


def _nominated(session: Session, tasks: list[TaskState]) -> Reason:
    coming = sorted({t.nominated for t in tasks if session.nodes.awaited[t.nominated]})
    if coming:
        return _awaits(session, [session.nodes.nodes[node] for node in coming])
    where = sorted({session.nodes.names[t.nominated] for t in tasks})
    unready = sorted({session.nodes.names[t.nominated] for t in tasks if not _is_up(session, t)})
    leaves = sorted({session.nodes.names[t.leaving] for t in tasks if t.leaving >= 0})
    held = _others_leave(session, tasks) or (not unready and any(t.leaving < 0 for t in tasks))
    awaited = [f"it has not ended on {_listed(leaves)} yet"] * bool(leaves)
    awaited += [f"{_listed(unready)} is not ready"] * bool(unready) + ["the room there is not free yet"] * held
    text = f"it is nominated to {_listed(where)}; {', and '.join(awaited)}"
    numbers = {"nodes": where, "tasks": len(tasks), "leaves": leaves, "held": held, "unready": unready}
    return Reason("Nominated", text, numbers)


def _is_up(session: Session, task: TaskState) -> bool:
    """Whether the node that a task is nominated to is ready, or takes the task all the same."""
    return bool(session.nodes.ready[task.nominated]) or task.cls.static_list[task.nominated]


def _others_leave(session: Session, tasks: list[TaskState]) -> bool:
    """Whether something else terminates where tasks are nominated."""
    on_nodes = ((t, node) for node in {t.nominated for t in tasks} for t in session.on_node[node])
    return any(going(t, node) for t, node in on_nodes if t not in tasks)


def _awaits(session: Session, nodes: list[Node]) -> Reason:
    """Give the reason of a workload that fits nodes which are on their way: an autoscaler goes on making these."""
    names, until = [node.name for node in nodes], max(node.awaited_until or session.now for node in nodes)
    text = f"it waits for {_listed(names)}, on the way until {format_time(until)}: it fits there"
    return Reason("AwaitsNodes", text, {"nodes": names, "until": format_time(until)})


def unsupported(constraints: list[str]) -> Reason:
    """Give the reason of a workload that asks for constraints (sorted) which are not evaluated."""
    text = f"it asks for constraints that Tenure does not evaluate ({_listed(constraints)}), so it is not placed"
    return Reason("Unsupported", text, {"constraints": constraints})


def why_no_step(workload: WorkloadState) -> Reason:
    """Give the reason of a workload that asks for nothing, as it lacks tasks or some of them are gated."""
    gated = sum(t.phase is GATED for t in workload.tasks)
    if gated:
        held = "is" if gated == 1 else "are"
        return Reason("Gated", f"{gated} of its tasks {held} held by scheduling gates", {"gated": gated})
    have, needed, where = shortage(workload.root, lambda t: t.phase is PENDING or t.active)
    text = f"it starts with {needed} task{'s' * (needed != 1)}, but only {have} exist{'s' * (have == 1)}"
    text = text.replace(" exist", " of these exist") + f": {where}" if where else text
    return Reason("NotEnoughTasks", text, {"tasks": have, "minMember": needed})


def _queue_reasons(session: Session, workload: WorkloadState, step: Demand) -> list[Reason]:
    """Every maximum on the path that the step would break, and every guarantee that it must not exceed."""
    queues, found = session.queues, []
    for queue in queues.path[workload.leaf]:
        name = queues.queues[queue].name
        for row, resource in enumerate(queues.resources):
            have, ask, most = queues.allocated[queue][row], step.amount[row], queues.maximum[queue][row]
            have += queues.under_notice[queue][row] if queue in queues.under_notice else 0
            if ask and have + ask > most:
                numbers = {"queue": name, "resource": resource, "allocated": have, "asked": ask, "max": most}
                holds, limit = bare_quantity(have, resource), amount_with_unit(most, resource)
                text = (
                    f"queue {name} may hold at most {limit}; it holds {holds}, and the "
                    f"request is {bare_quantity(ask, resource)}"
                )
                if ask > most:
                    asked = amount_with_unit(ask, resource)
                    text = f"it asks for {asked}, but queue {name} may never hold more than {limit}"
                found.append(Reason("OverMax", text, numbers))
    if workload.fixed:
        found += [_beyond(session, step, *at) for at in queues.guarantees_exceeded(workload.leaf, step.amount)]
    return found


def _beyond(session: Session, step: Demand, queue: int, row: int) -> Reason:
    queues = session.queues
    name, resource = queues.queues[queue].name, queues.resources[row]
    fixed, floor = queues.fixed[queue][row], max(0, queues.guaranteed[queue][row])
    text = (
        f"it is not preemptible, and such work must stay within the guaranteed {amount_with_unit(floor, resource)} of "
        f"queue {name}: {bare_quantity(fixed, resource)} are taken, and the request is "
        f"{bare_quantity(step.amount[row], resource)}"
    )
    numbers = {"queue": name, "resource": resource, "allocated": fixed, "asked": step.amount[row], "guaranteed": floor}
    return Reason("BeyondGuaranteed", text, numbers)


def _node_reasons(session: Session, workload: WorkloadState, step: Demand) -> list[Reason]:
    """Why the nodes do not take it; nothing if they would."""
    classes = Counter(t.cls.id for t in step.tasks)
    by_id = {t.cls.id: t for t in step.tasks}
    found = []
    for number, count in classes.items():
        task = by_id[number]
        admitted, failures = _failures(session, task)
        room = session.scorer.capacity(task.cls, admitted) if admitted.any() else 0
        if room < count and (room or 0 < _capacity_when_empty(task.cls, session.nodes) < count):
            found.append(_too_few(session, workload, task.cls, count, room, failures))
        elif not room:
            found.append(_with_volumes(session, task, _no_node(session, task.cls, failures)))
    return found or _together(session, workload, step)


def _together(session: Session, workload: WorkloadState, step: Demand) -> list[Reason]:
    """Each part of it would fit: does all of it?"""
    from tenure.engine.serving.placement import Placer  # noqa: PLC0415  placement stands above reasons in this one place

    with session.scenario():
        fits = Placer(session).place(workload, step)
    if fits:
        return []
    tasks, labels = len(step.tasks), _levels(workload.root)
    beside = any(t.active for t in workload.tasks)
    if tasks == 1:
        text = f"a node would take its task, but none {_suitable(labels, beside=beside)}"
    else:
        where = f", {_suitable(labels, beside=beside)}" if labels else ""
        text = f"each of its {tasks} tasks would fit on its own, but not all of them together{where}"
    return [Reason("NoRoomTogether", text, {"tasks": tasks, "labels": labels, "beside": beside})]


def _levels(group: SubgroupState) -> list[str]:
    """Give the node labels of which a group, or a group within it, requires one value for all its tasks."""
    own = [group.topology.required] if group.topology is not None and group.topology.required else []
    return list(dict.fromkeys((*own, *(label for child in group.children for label in _levels(child)))))


def _suitable(labels: list[str], *, beside: bool) -> str:
    """Say where what is placed together has to stand."""
    if not labels:
        return "that suits its other tasks"
    where = f"under one value of {_listed(labels)}"
    return f"{where} together with those that are placed" if beside else where


def _failures(session: Session, task: TaskState) -> tuple[Mask, dict[str, int]]:
    """Which nodes take the task once what terminates has left, and for the others how many fail on what first."""
    nodes, cls = session.nodes, task.cls
    left = ~nodes.outside
    failures: dict[str, int] = {}

    def fail(name: str, passes: Mask) -> None:
        nonlocal left
        count = int((left & ~passes).sum())
        if count:
            failures[name] = failures.get(name, 0) + count
        left = left & passes

    spec = cls.spec
    for name, passes in (*_by_its_labels(nodes, spec), *_beside_its_group(session, task)):
        fail(name, passes)
    for name, amount in spec.requests:
        if amount and name not in nodes.row:
            fail(f"no {name}", np.zeros(len(nodes), bool))
    for row, amount in cls.asks:
        resource = nodes.resources[row]
        fail("insufficient " + (GPU if resource == FREE_DEVICES else resource), nodes.room[nodes.rows + row] >= amount)
    if cls.milli is not None:
        fail(f"insufficient {GPU}", session.scorer.fits(cls, slice(None))[1])
    fail("not admitted", cls.static)
    for name, passes in _beside_others(session, task):
        fail(name, passes)
    return left, failures


def _by_its_labels(nodes: NodeTable, spec: TaskSpec) -> Iterator[tuple[str, Mask]]:
    """Which nodes take a task, whatever is free there."""
    labels = nodes.labels
    tolerated = nodes.taints.tolerated(spec.tolerations)
    yield "not ready", nodes.ready | (nodes.admitting & tolerated)
    yield "untolerated taint", tolerated
    yield "node selector", labels.selected(spec.node_selector)
    yield "node affinity", labels.affine(spec.affinity.node if spec.affinity else None)
    yield "not reached by its volumes", reached(labels, spec.volume_nodes)
    for feature in spec.features:
        yield f"no {feature}", labels.declaring(feature)
    for constraint in spec.spread:
        if constraint.when_unsatisfiable == "DoNotSchedule":
            yield f"no label {constraint.topology_key}", labels.having(constraint.topology_key)


def _beside_its_group(session: Session, task: TaskState) -> Iterator[tuple[str, Mask]]:
    """Which nodes the required topology of its group, and of those around it, leaves to a task."""
    group: SubgroupState | None = task.group
    while group is not None:
        if group.topology is not None and (key := group.topology.required) is not None:
            ids, _ = session.nodes.domains.of(key)
            yield f"no label {key}", np.asarray(ids >= 0)
            others = [t.node if t.node >= 0 else t.nominated for leaf in group.leaves() for t in leaf.tasks]
            if taken := {int(ids[node]) for node in others if node >= 0} - {-1}:
                yield f"another {key} than that of its group", np.isin(ids, sorted(taken))
        group = group.parent


def _beside_others(session: Session, task: TaskState) -> Iterator[tuple[str, Mask]]:
    """Which nodes take the task, given what else is placed: what it mounts and claims first, then everything."""
    if task.terms is not None:
        if task.terms.attached or task.terms.mounts is not None:
            yield from session.terms.volumes.failing(task.terms.attached, task.terms.mounts, THEN)
        if task.terms.devices:
            yield from missing_devices(session.terms.devices, task.terms.devices)
        yield BESIDE_OTHERS, session.terms.admission.masks(task.terms)[1]


def _with_volumes(session: Session, task: TaskState, reason: Reason) -> Reason:
    """Give a reason with what the volumes of a task, and its claims on devices, have to do with it."""
    tied = "; ".join(text for text in (tied_by_volumes(session, task), tied_by_devices(session, task)) if text)
    return replace(reason, message=f"{reason.message}; {tied}") if tied else reason


def _no_node(session: Session, cls: TaskClass, failures: dict[str, int]) -> Reason:
    """No single task of it fits anywhere: now, or for ever."""
    nodes = session.nodes
    counts = ", ".join(f"{count} {name}" for name, count in failures.items())
    ever = cls.static & _ever(cls, nodes)
    there = int((~nodes.outside).sum())
    numbers: dict[str, Any] = {"nodes": there, "failed": failures, "requests": dict(cls.spec.requests)}
    if not there:
        return Reason("NeverFits", "there are no nodes", numbers)
    if not ever.any():
        largest = {
            nodes.resources[row]: int(nodes.capacity[row, cls.static].max(initial=0))
            for row, _ in cls.asks
            if nodes.resources[row] != FREE_DEVICES
        }
        numbers["largest"] = {r: v for r, v in largest.items() if v < UNLIMITED}
        return Reason("NeverFits", f"no node could take one of its tasks even if it were empty: {counts}", numbers)
    return Reason("NoNodeFits", f"0 of {there} nodes fit: {counts}", numbers)


def _ever(cls: TaskClass, nodes: NodeTable) -> Mask:
    """Nodes whose whole capacity would do for one task."""
    return np.asarray((nodes.capacity >= cls.ask[:, None]).all(axis=0))


def _too_few(
    session: Session, workload: WorkloadState, cls: TaskClass, count: int, room: int, failures: dict[str, int]
) -> Reason:
    """Single tasks fit, but there is not room for as many as start together."""
    nodes = session.nodes
    empty = _capacity_when_empty(cls, nodes)
    asked = ", ".join(
        amount_with_unit(value, name, milli_gpu=False) for name, value in cls.spec.requests if value
    ) or "a part of a GPU"  # fmt: skip
    numbers: dict[str, Any] = {"tasks": count, "room": room, "nodes": len(nodes), "failed": failures}
    together = (
        f"it starts with {count} tasks of {asked}" if workload.started_at is None else f"it asks for {count} tasks"
    )
    if empty < count:
        numbers["roomWhenEmpty"] = empty
        return Reason("NeverFits", f"{together}, and the whole cluster, empty, has room for {empty}", numbers)
    counts = ", ".join(f"{number} node{'s' * (number != 1)} {name}" for name, number in failures.items())
    return Reason(
        "NoNodeFits", f"{together}, and there is room for {room}" + (f": {counts}" if counts else ""), numbers
    )


def _capacity_when_empty(cls: TaskClass, nodes: NodeTable) -> int:
    per_node: Ints = np.full(len(nodes), 1 << 40, np.int64)
    for row, amount in cls.asks:
        np.minimum(per_node, nodes.capacity[row] // amount, out=per_node)
    if cls.milli is not None:
        parts = np.where(cls.milli > 0, 1000 // np.maximum(cls.milli, 1), 0) * nodes.device_count
        np.minimum(per_node, parts // cls.devices, out=per_node)
    return int(per_node[cls.static].sum())


def _listed(names: list[str], most: int = 4) -> str:
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
