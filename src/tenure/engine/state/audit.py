"""An audit of a session: everything that is counted as work goes on is what a look at all tasks counts.

It takes as long as taking the cluster in did, so it is for tests and for debugging, not for cycles.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import add

import numpy as np

from tenure.engine.devices.audit import device_findings
from tenure.engine.room.nodes import NOW, THEN
from tenure.engine.state.lifecycle import HOLDINGS, LifeState, life_of
from tenure.engine.state.queues import Amount
from tenure.engine.state.roster import Roster
from tenure.engine.state.session import Session
from tenure.engine.state.workloads import PENDING, TERMINATING, TaskState


def audit(session: Session) -> list[str]:
    """Give what does not agree, one sentence each; nothing where all does."""
    tasks = [t for w in session.workloads.values() for t in w.tasks]
    lost = [f"{_name(t)} is in no state: {t.phase.value}, {t.node=}, {t.nominated=}, {t.leaving=}" for t in tasks
            if life_of(t) is None]  # fmt: skip
    if lost:
        return lost
    found = [*_room(session, tasks), *_queues(session), *_lists(session, tasks), *_waiting(session), *_roster(session)]
    return [*found, *_claims(session, tasks)]


def _holdings(task: TaskState) -> Iterator[tuple[int, tuple[int, ...], bool, bool]]:
    """Give node, devices, and in which halves of the room, for all that a task holds."""
    state = life_of(task)
    assert state is not None
    for where, now, then in HOLDINGS[state]:
        devices = task.devices if where == "node" else getattr(task, f"{where}_devices")
        yield getattr(task, where), devices, now, then or (where != "nominated" and task.stuck)


def _room(session: Session, tasks: list[TaskState]) -> Iterator[str]:
    nodes = session.nodes
    room, device = nodes.empty()
    for task in tasks:
        for node, devices, now, then in _holdings(task):
            ask = task.cls.takes(node, nodes)
            room[: nodes.rows, node] -= now * ask
            room[nodes.rows :, node] -= then * ask
            milli = task.cls.milli_on(node)
            device[NOW, node, list(devices)] -= now * milli
            device[THEN, node, list(devices)] -= then * milli
    for row, name in enumerate(nodes.resources[: nodes.amounts]):
        for half, said in ((0, "now"), (nodes.rows, "then")):
            for node in np.flatnonzero(room[half + row] != nodes.room[half + row]).tolist():
                yield (
                    f"room of {said} for {name} on {nodes.names[node]} is {nodes.room[half + row, node]}, "
                    f"tasks leave {room[half + row, node]}"
                )
    for node in sorted(set(np.nonzero(device != nodes.device)[1].tolist())):
        yield f"devices of {nodes.names[node]} are {nodes.device[:, node].tolist()}, not {device[:, node].tolist()}"


def _counted(session: Session) -> Iterator[tuple[str, int, Amount]]:
    """Give what each task counts as, the leaf queue, and how much."""
    for workload in session.workloads.values():
        for task in workload.tasks if workload.leaf >= 0 else ():
            at = task.nominated if life_of(task) is not LifeState.PLACED else task.node
            if at >= 0:
                amount = task.cls.amount_at(at, session.nodes)
                yield "allocated", workload.leaf, amount
                if workload.fixed:
                    yield "fixed", workload.leaf, amount
            elif task.phase is PENDING and task.asks:
                yield "pending", workload.leaf, task.cls.amount


def _claims(session: Session, tasks: list[TaskState]) -> Iterator[str]:
    users: dict[str, tuple[int, int]] = {}
    for task in tasks:
        for term in task.terms.devices if task.terms is not None else ():
            for node, _, now, then in _holdings(task):
                if term not in session.terms.devices.served.needed_at((term,), node):
                    continue
                known = users.get(term.claim, (0, 0))
                users[term.claim] = known[NOW] + now, known[THEN] + then
    yield from device_findings(session.terms.devices, users)


def _queues(session: Session) -> Iterator[str]:
    queues = session.queues
    nothing: Amount = (0,) * session.nodes.amounts
    counted = {kind: [nothing] * len(queues.queues) for kind in ("allocated", "fixed", "pending")}
    for kind, leaf, amount in _counted(session):
        for queue in queues.path[leaf]:
            counted[kind][queue] = tuple(map(add, counted[kind][queue], amount))
    for kind, amounts in counted.items():
        for queue, (kept, found) in enumerate(zip(getattr(queues, kind), amounts, strict=True)):
            if tuple(kept) != found:
                yield f"{kind} of queue {queues.queues[queue].name} is {kept}, tasks add up to {found}"


def _lists(session: Session, tasks: list[TaskState]) -> Iterator[str]:
    leaving = {t for t in tasks if t.phase is TERMINATING or t.leaving >= 0}
    nominated = {t for t in tasks if t.nominated >= 0}
    noticed = {t for t in tasks if t.notice is not None}
    for name, kept, found in (
        ("nominated", session.nominated, nominated),
        ("leaving", session.leaving, leaving),
        ("noticed", session.noticed, noticed),
    ):
        if kept != found:
            yield f"{name} are kept as {sorted(map(_name, kept))}, found as {sorted(map(_name, found))}"
    waiting = len(nominated) + sum(not t.stuck for t in leaving) + int(session.nodes.awaited.sum())
    if waiting != session.nodes.waiting:
        yield f"{session.nodes.waiting} tasks and nodes are counted for which now and then differ, there are {waiting}"
    here: list[set[TaskState]] = [set() for _ in session.on_node]
    for task in tasks:
        for node, *_ in _holdings(task):
            here[node].add(task)
    for node, (kept, found) in enumerate(zip(session.on_node, here, strict=True)):
        if kept != found:
            names = sorted(map(_name, kept ^ found))
            yield f"on {session.nodes.names[node]} the tasks {names} are listed but not there, or there but not listed"


def _waiting(session: Session) -> Iterator[str]:
    for workload in session.workloads.values():
        entry = workload.entry
        if entry is not None and (workload.step is None or entry not in session.waiting.entries[workload.leaf]):
            yield f"{workload.key} has a place in line, but asks for nothing or is not in its leaf's list"


def _roster(session: Session) -> Iterator[str]:
    roster, found = session.roster, Roster()
    for workload in session.workloads.values():
        found.add(workload)
    for name in ("expecting", "gangs", "priorities"):
        if getattr(roster, name) != getattr(found, name):
            yield f"{name} are kept as {sorted(getattr(roster, name))}, found as {sorted(getattr(found, name))}"
    if not found.unstarted.keys() <= roster.unstarted.keys():
        yield f"unstarted are kept as {sorted(roster.unstarted)}, found as {sorted(found.unstarted)}"


def _name(task: TaskState) -> str:
    return f"{task.workload.key}/{task.name}"
