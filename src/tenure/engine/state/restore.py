"""Taking in what is placed or promised already, as the cluster tells it.

A cluster does not tell everything: of whole GPUs it may not say which, and then they are chosen here, in an order that
does not depend on the input's.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from tenure.engine.room import kernels
from tenure.engine.room.nodes import NOW
from tenure.engine.state.queues import Amount
from tenure.engine.state.state import SessionState
from tenure.engine.state.workloads import PENDING, TERMINATING, TaskState, WorkloadState
from tenure.model.values.resources import MILLI

MANY: Final = 32
"""Tasks from which on their room is taken together."""


def restore(session: SessionState, task: TaskState, staying: list[TaskState]) -> Amount | None:
    """A task that is bound, runs or terminates takes its place; gives what its queue is to count as allocated.

    ``staying`` gets the plain ones that stay, whose room is taken for all of them together, by `take_room`.
    """
    model, state = task.model, task.workload
    assert model.node is not None
    node = session.nodes.index[model.node]
    task.node, task.phase, task.devices = node, model.phase, model.devices
    if model.phase is TERMINATING:
        task.terminating_since = session.now if model.terminating_since is None else model.terminating_since
        task.stuck = session.now >= session.leaves_at(task)
    elif model.notice is not None and state.leaf >= 0:
        task.phase, task.terminating_since, task.notice = TERMINATING, model.notice.deadline, model.notice
        session.noticed.add(task)
    stays = task.phase is not TERMINATING or task.stuck
    session.on_node[node].add(task)
    if stays and task.terms is None and task.cls.milli is None:
        staying.append(task)
    else:
        session.occupancy.occupy(task, node, task.devices, 1, now=True, then=stays)
    if not stays:
        session.occupancy.count_differing(1)
    if task.phase is TERMINATING:
        session.leaving.add(task)
        session.occupancy.count_leaving(task, 1, now=True, then=stays)
    amount = task.cls.amount_at(node, session.nodes)
    if state.leaf < 0:
        session.occupancy.count_foreign(node, amount, 1)
    return amount if state.leaf >= 0 and task.phase is not TERMINATING else None


def take_room(session: SessionState, tasks: Sequence[TaskState]) -> None:
    """Take the room of tasks without parts of GPUs and without terms that stay where they are."""
    if len(tasks) >= MANY and not session.journal.depth:
        session.nodes.fill([t.node for t in tasks], [t.cls.ask for t in tasks], [t.devices for t in tasks])
        return
    for task in tasks:
        session.occupancy.occupy(task, task.node, task.devices, 1, now=True, then=True)


def restore_devices(session: SessionState, workloads: Iterable[WorkloadState]) -> None:
    """Choose the whole GPUs whose numbers are unknown: free ones, now and then as far as there are such.

    Those that stay hold what is not nominated, those that go hold what is, as far as that is possible.
    """
    nodes = session.nodes
    placed = (t for w in workloads for t in w.tasks if t.node >= 0 and not t.devices)
    untold = [t for t in placed if t.cls.whole and nodes.device_count[t.node]]
    taken_on = _nominated_devices(session, workloads) if untold else {}
    for task in sorted(untold, key=lambda t: (t.phase is TERMINATING, t.workload.key, t.index)):
        now, both = nodes.device[NOW, task.node].tolist(), nodes.free_devices(task.node, bindable=True)
        there = range(int(nodes.device_count[task.node]))
        stays = task.phase is not TERMINATING or task.stuck
        taken = taken_on.get(task.node, set())
        order = sorted(there, key=lambda i: (-now[i], (i in taken) is stays, -both[i], i))
        task.devices = tuple(sorted(order[: task.cls.whole]))
        nodes.occupy_devices(task.node, task.devices, MILLI, now=True, then=stays)


def _nominated_devices(session: SessionState, workloads: Iterable[WorkloadState]) -> dict[int, set[int]]:
    """Give the devices that nominations name, by node."""
    found: dict[int, set[int]] = {}
    for workload in workloads:
        for task in workload.tasks:
            nominated = task.model.nominated
            if nominated is not None and nominated.devices and nominated.node in session.nodes.index:
                found.setdefault(session.nodes.index[nominated.node], set()).update(nominated.devices)
    return found


def restore_nominations(session: SessionState, workloads: Iterable[WorkloadState]) -> None:
    """Promise again what was promised, those first that say which devices.

    A nomination whose node is gone, or that does not say which devices and finds none, counts for nothing. One whose
    devices are held by what stays is kept on others, if there are any.
    """
    nominated_tasks = [
        (nomination, t)
        for w in workloads
        for t in w.tasks
        if (nomination := t.model.nominated) is not None
        and t.phase is PENDING
        and nomination.node in session.nodes.index
    ]
    for nomination, task in sorted(nominated_tasks, key=lambda p: (not p[0].devices, p[1].workload.key, p[1].index)):
        node, devices = session.nodes.index[nomination.node], nomination.devices
        wanted, milli = task.cls.numbered(node, session.nodes), task.cls.milli_on(node)
        free = session.nodes.free_devices(node, bindable=False) if wanted else []
        if len(devices) != wanted or any(d >= len(free) or free[d] < milli for d in devices):
            others = kernels.choose_devices(free, free, milli, wanted, packed=True)
            devices = others if len(others) == wanted or len(devices) != wanted else devices
        if len(devices) == wanted:
            session.nominate(task, node, devices)
            task.nominated_at = nomination.at
