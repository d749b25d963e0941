"""Evicting tasks on the session: what the transaction's eviction does, and what follows when the task has left.

An evicted task is two things at once: what still terminates on its node, and its replacement, which contends again.
One `TaskState` stands for both. It is pending, and ``leaving`` names the node whose room of now it still holds; the
room of then is free, and may be promised.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from tenure.engine.room.classes import TaskClass
from tenure.engine.state import lifecycle
from tenure.engine.state.queues import Amount
from tenure.engine.state.state import SessionState
from tenure.engine.state.workloads import TERMINATING, TaskState, WorkloadState


def evict(session: SessionState, task: TaskState) -> None:
    """Evict an active task: it terminates where it is, its queue is relieved of it, and it contends again.

    The caller refreshes the workload once all its tasks that go have gone.
    """
    session.occupancy.count_released(task)
    session.occupancy.occupy(task, task.node, task.devices, -1, now=False, then=True)
    _set_out(session, task)
    _note_eviction(session, task.workload)
    session.occupancy.count_differing(1)
    session.new_epoch()


def evict_all(session: SessionState, tasks: Sequence[TaskState]) -> None:
    """Evict many tasks, as `evict` does one after the other; what is alike is counted once for each leaf and node."""
    held: dict[tuple[int, bool, Amount], int] = {}
    asked: dict[tuple[int, Amount], int] = {}
    for task in tasks:
        leaf, cls, node = task.workload.leaf, task.cls, task.node
        key = leaf, task.workload.fixed, cls.amount_at(node, session.nodes)
        held[key] = held.get(key, 0) + 1
        if task.asks:
            asked[leaf, cls.amount] = asked.get((leaf, cls.amount), 0) + 1
        if task.terms is not None:
            session.occupancy.occupy(task, node, task.devices, -1, now=False, then=True)
    _occupy_later(session, [(t.cls, t.node, t.devices) for t in tasks if t.terms is None], -1)
    for task in tasks:
        _set_out(session, task)
    for workload in dict.fromkeys(task.workload for task in tasks):
        _note_eviction(session, workload)
    for (leaf, fixed, amount), count in held.items():
        session.queues.release(leaf, tuple(count * a for a in amount), fixed=fixed)
    for (leaf, amount), count in asked.items():
        session.queues.ask(leaf, tuple(count * a for a in amount))
    session.occupancy.count_differing(len(tasks))
    session.new_epoch()


def _set_out(session: SessionState, task: TaskState) -> None:
    journal = session.journal
    journal.add(session.leaving, task)
    lifecycle.evict(journal, task, session.now)
    if task.terms is not None:
        session.occupancy.count_leaving(task, 1, now=True, then=False)


def nominate_back(session: SessionState, tasks: Sequence[TaskState]) -> None:
    """Promise evicted tasks of one workload, none of which has terms, the places that they still hold."""
    journal, state, queues = session.journal, tasks[0].workload, session.queues
    _occupy_later(session, [(t.cls, t.leaving, t.leaving_devices) for t in tasks], 1)
    held: Counter[Amount] = Counter()
    asked: Counter[Amount] = Counter()
    for task in tasks:
        lifecycle.nominate(journal, task, task.leaving, task.leaving_devices, session.now)
        journal.add(session.nominated, task)
        held[task.cls.amount_at(task.leaving, session.nodes)] += 1
        if task.asks:
            asked[task.cls.amount] += 1
    session.occupancy.count_differing(len(tasks))
    for amount, count in asked.items():
        queues.unask(state.leaf, tuple(count * a for a in amount))
    for amount, count in held.items():
        queues.allocate(state.leaf, tuple(count * a for a in amount), fixed=state.fixed)
    session.waiting.drop(state)


def _occupy_later(session: SessionState, placed: Iterable[tuple[TaskClass, int, tuple[int, ...]]], sign: int) -> None:
    """Take (``sign`` 1) or give back (-1) what tasks without terms hold, by class, node and devices, then only."""
    found: dict[tuple[int, TaskClass], tuple[int, list[int]]] = {}
    for cls, node, devices in placed:
        count, numbers = found.get((node, cls), (0, []))
        numbers += devices
        found[node, cls] = count + 1, numbers
    nodes = session.nodes
    for (node, cls), (count, numbers) in found.items():
        amount = cls.takes(node, nodes) * count
        nodes.occupy(node, amount, numbers, cls.milli_on(node), now=False, then=True, sign=sign)


def _note_eviction(session: SessionState, state: WorkloadState) -> None:
    if not state.occupied():
        session.journal.set(state, "started_at", None)
        times = state.times_evicted(session.now, session.settings.worth.forgotten_after)
        session.journal.set(state, "evictions", times + 1)
        note_often(session, state)
    session.journal.set(state, "last_evicted_at", session.now)


def note_often(session: SessionState, state: WorkloadState) -> None:
    """Note the leaf of a workload that was evicted as often as it may be."""
    most = session.settings.worth.max_evictions
    if most and state.evictions >= most:
        session.often_evicted.add(state.leaf)


def depart(session: SessionState, task: TaskState) -> None:
    """An evicted task has left its node; its replacement goes on waiting, or holds its nomination."""
    session.forget_notice(task)
    node = task.leaving
    session.occupancy.occupy(task, node, task.leaving_devices, -1, now=True, then=task.stuck)
    session.occupancy.count_leaving(task, -1, now=True, then=task.stuck)
    if not task.stuck:
        session.occupancy.count_differing(-1)
    if task.nominated != node:
        session.journal.remove(session.on_node[node], task)
    session.journal.remove(session.leaving, task)
    lifecycle.depart(session.journal, task)
    session.new_epoch()


def leave(session: SessionState, task: TaskState) -> None:
    """A task that terminates has left its node, whether it was evicted in this session or before it began."""
    if task.leaving >= 0:
        depart(session, task)
    else:
        session.withdraw(task)


def outstay(session: SessionState, task: TaskState) -> None:
    """An evicted task is still there after its grace period: nothing is counted on its leaving any more."""
    session.occupancy.occupy(task, task.leaving, task.leaving_devices, 1, now=False, then=True)
    session.occupancy.count_leaving(task, 1, now=False, then=True)
    session.occupancy.count_differing(-1)
    lifecycle.outstay(session.journal, task)


def going(task: TaskState, node: int) -> bool:
    """Whether a task terminates on ``node``."""
    return (task.phase is TERMINATING and task.node == node) or task.leaving == node


def resume_moves(session: SessionState, workloads: Iterable[WorkloadState]) -> None:
    """Terminating tasks whose landing place is nominated already contend for it again, as when they were evicted."""
    for workload in workloads:
        for task in workload.tasks:
            nominated = task.model.nominated
            known = nominated is not None and nominated.node in session.nodes.index
            if task.phase is not TERMINATING or nominated is None or not known or workload.leaf < 0:
                continue
            lifecycle.resume(session.journal, task)
            session.queues.ask(workload.leaf, task.cls.amount)
            session.nominate(task, session.nodes.index[nominated.node], nominated.devices)
            task.nominated_at = nominated.at


def all_start(session: SessionState, tasks: Iterable[TaskState]) -> bool:
    """Whether none of some tasks is placed on a node that is not ready: there nothing starts, and nothing ends."""
    places = (task.node if task.node >= 0 else task.nominated for task in tasks)
    return all(place < 0 or session.nodes.ready[place] for place in places)
