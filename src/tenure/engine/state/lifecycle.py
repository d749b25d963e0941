"""The life of a task as a table: its named states, what it holds in each, and the named changes between them.

A task's state is a product of several fields (phase, node, nomination, node that it leaves). Only some of the products
mean something; they have names here, and the functions here are the only ones that set those fields once a task was
taken in. What a change counts (room, queues, terms) is the business of its caller.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from tenure.engine.journal import Journal
from tenure.engine.state.workloads import (
    BOUND,
    GATED,
    PENDING,
    RUNNING,
    SUCCEEDED,
    TERMINATING,
    TaskState,
)
from tenure.model.workload import Notice


class LifeState(Enum):
    """The named states of a task in a session."""

    GATED = "gated"
    WAITING = "waiting"
    NOMINATED = "nominated"
    PLACED = "placed"
    TERMINATING = "terminating"
    EVICTED = "evicted"
    MOVING = "moving"
    ENDED = "ended"


class Holding(NamedTuple):
    """The room that a task holds in a state: which field names the node, and in which halves; stuck ones in both."""

    where: str
    now: bool
    then: bool


HOLDINGS: dict[LifeState, tuple[Holding, ...]] = {
    LifeState.GATED: (),
    LifeState.WAITING: (),
    LifeState.NOMINATED: (Holding("nominated", now=False, then=True),),
    LifeState.PLACED: (Holding("node", now=True, then=True),),
    LifeState.TERMINATING: (Holding("node", now=True, then=False),),
    LifeState.EVICTED: (Holding("leaving", now=True, then=False),),
    LifeState.MOVING: (Holding("leaving", now=True, then=False), Holding("nominated", now=False, then=True)),
    LifeState.ENDED: (),
}
"""What a task holds, by its state. One that terminates and is stuck holds its room of then as well."""

_PENDING_STATES = {
    (False, False): LifeState.WAITING,
    (True, False): LifeState.NOMINATED,
    (False, True): LifeState.EVICTED,
    (True, True): LifeState.MOVING,
}
"""The states of what is pending, by whether it is nominated and whether it still leaves a node."""

TRANSITIONS: dict[str, dict[LifeState, LifeState]] = {
    "bind": {LifeState.WAITING: LifeState.PLACED},
    "start": {LifeState.PLACED: LifeState.PLACED},
    "nominate": {LifeState.WAITING: LifeState.NOMINATED, LifeState.EVICTED: LifeState.MOVING},
    "forgo": {LifeState.NOMINATED: LifeState.WAITING, LifeState.MOVING: LifeState.EVICTED},
    "free": {LifeState.PLACED: LifeState.WAITING, LifeState.TERMINATING: LifeState.WAITING},
    "evict": {LifeState.PLACED: LifeState.EVICTED},
    "resume": {LifeState.TERMINATING: LifeState.EVICTED},
    "depart": {LifeState.EVICTED: LifeState.WAITING, LifeState.MOVING: LifeState.NOMINATED},
    "outstay": {state: state for state in (LifeState.TERMINATING, LifeState.EVICTED, LifeState.MOVING)},
    "stand": {LifeState.EVICTED: LifeState.TERMINATING},
    "recall": {LifeState.TERMINATING: LifeState.PLACED, LifeState.EVICTED: LifeState.PLACED},
    "finish": dict.fromkeys((LifeState.GATED, LifeState.WAITING, LifeState.ENDED), LifeState.ENDED),
}
"""By change, the states from which it may be made and the state that each becomes."""


def life_of(task: TaskState) -> LifeState | None:
    """Give the state of a task; None where its fields mean nothing together."""
    phase, node, nominated, leaving = task.phase, task.node >= 0, task.nominated >= 0, task.leaving >= 0
    if phase is PENDING:
        return None if node else _PENDING_STATES[nominated, leaving]
    if nominated or leaving:
        return None
    if phase is BOUND or phase is RUNNING:
        return LifeState.PLACED if node else None
    if phase is TERMINATING:
        return LifeState.TERMINATING if node else None
    if node:
        return None
    return LifeState.GATED if phase is GATED else LifeState.ENDED


def bind(journal: Journal, task: TaskState, node: int, devices: tuple[int, ...]) -> None:
    """A waiting task is placed on a node."""
    journal.save(task)
    task.phase, task.node, task.devices, task.fresh = BOUND, node, devices, True


def start(journal: Journal, task: TaskState) -> None:
    """A task that was bound runs."""
    journal.save(task)
    task.phase, task.fresh = RUNNING, False


def nominate(journal: Journal, task: TaskState, node: int, devices: tuple[int, ...], at: int) -> None:
    """A waiting task is promised room on a node, at ``at`` (µs since the epoch)."""
    journal.save(task)
    task.nominated, task.nominated_devices, task.nominated_at = node, devices, at


def forgo(journal: Journal, task: TaskState) -> None:
    """A nomination ends."""
    journal.save(task)
    task.nominated, task.nominated_devices = -1, ()


def free(journal: Journal, task: TaskState) -> None:
    """A task that was on a node is there no longer, and waits."""
    journal.save(task)
    task.node, task.devices, task.phase, task.fresh, task.stuck = -1, (), PENDING, False, False


def evict(journal: Journal, task: TaskState, at: int) -> None:
    """A placed task leaves its node from ``at`` on (µs since the epoch), and waits for another place."""
    journal.save(task)
    task.leaving, task.leaving_devices, task.terminating_since = task.node, task.devices, at
    task.phase, task.node, task.devices, task.fresh, task.stuck = PENDING, -1, (), False, False


def resume(journal: Journal, task: TaskState) -> None:
    """A terminating task waits for another place again, as when it was evicted."""
    journal.save(task)
    task.leaving, task.leaving_devices = task.node, task.devices
    task.phase, task.node, task.devices = PENDING, -1, ()


def depart(journal: Journal, task: TaskState) -> None:
    """An evicted task has left its node."""
    journal.save(task)
    task.leaving, task.leaving_devices, task.stuck = -1, (), False


def outstay(journal: Journal, task: TaskState) -> None:
    """A task that terminates is still there after its grace period."""
    journal.save(task)
    task.stuck = True


def stand(journal: Journal, task: TaskState) -> None:
    """An evicted task under notice contends for no other place until it has gone."""
    journal.save(task)
    task.phase, task.node, task.devices = TERMINATING, task.leaving, task.leaving_devices
    task.leaving, task.leaving_devices = -1, ()


def recall(journal: Journal, task: TaskState) -> None:
    """A task under notice runs on where it is."""
    journal.save(task)
    if task.leaving >= 0:
        task.node, task.devices = task.leaving, task.leaving_devices
    task.phase = BOUND if task.model.phase is BOUND else RUNNING
    task.leaving, task.leaving_devices, task.terminating_since = -1, (), 0


def finish(journal: Journal, task: TaskState) -> None:
    """A task that holds nothing any more has succeeded."""
    journal.save(task)
    task.phase = SUCCEEDED


def announce(journal: Journal, task: TaskState, notice: Notice) -> None:
    """A task that goes is told so, and goes at its deadline; that changes no state."""
    journal.set(task, "notice", notice)
    journal.set(task, "terminating_since", notice.deadline)
