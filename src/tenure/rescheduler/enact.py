"""Carries a plan out on the session, with the scheduler's own fit rules, or finds that it does not hold there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tenure.engine.refusal import Refusal
from tenure.engine.serving.allocation import serve
from tenure.engine.serving.reserved_start import RESERVED, ReservedStart, reserved_start
from tenure.engine.state.evictions import evict
from tenure.engine.state.transaction import Scenario
from tenure.engine.state.workloads import TaskState, WorkloadState
from tenure.model.values.resources import MILLI
from tenure.rescheduler.memory import CAUSE
from tenure.rescheduler.problem.build import ProblemView
from tenure.rescheduler.problem.definition import MemberLanding, TaskMove
from tenure.victims.aftermath.ahead import settle
from tenure.victims.dry_run.outcome import NO_ROOM, AcceptedSet, is_back
from tenure.victims.recording.state import EvictionState


class WantedLanding(NamedTuple):
    """A task that is to land on a node, and on which devices (none: on those that suit best)."""

    task: TaskState
    node: int
    devices: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class EnactedPlan:
    """Tasks that were evicted, and tasks that were nominated, contenders first."""

    evicted: list[TaskState]
    placed: list[TaskState]


def enact(
    state: EvictionState, made: ProblemView, moves: Sequence[TaskMove], landings: Sequence[MemberLanding]
) -> EnactedPlan | Refusal | None:
    """Evict what moves, promise contenders and moved tasks their places; None, with nothing done, if one does not fit.

    A refusal, if what enabled causes would do next, or the order of allocation, keeps a contender from its place. What
    would land where it stands, as a part of a core of which others move, stays there. Everything is nominated and
    nothing bound: it is when the room is there.
    """
    session = state.session
    moved = [WantedLanding(made.tasks[m.task], m.target, made.devices[m.shape] if made.devices else ()) for m in moves]
    waiting = [list(tasks) for tasks in made.asks]
    wanted = [
        WantedLanding(waiting[x.ask].pop(0), x.node, made.devices[x.shape] if made.devices else ())
        for x in landings
        if x.ask < len(waiting)
    ]
    start = reserved_start(session, state.placer, state.fairness.now(), state.endings) if wanted else None
    with session.scenario() as scenario:
        for task, _, _ in moved:
            evict(session, task)
        for workload in dict.fromkeys(w.task.workload for w in moved):
            session.refresh(workload)
        if land(state, [*wanted, *moved]):
            return None
        back = {w.task for w in moved if is_back(w.task)}
        if not back:
            return _enacted(state, scenario, wanted, moved, start)
    return enact(state, made, [m for m in moves if made.tasks[m.task] not in back], landings)


def _enacted(
    state: EvictionState, scenario: Scenario, wanted: Sequence[WantedLanding], moved: Sequence[WantedLanding],
    start: ReservedStart | None,
) -> EnactedPlan | Refusal:  # fmt: skip
    """Keep moves that have landed in a scenario, unless they are refused; ``start`` is reserved."""
    for workload in dict.fromkeys(w.task.workload for w in (*wanted, *moved)):
        state.session.refresh(workload)
    refusal = _refusal(state, [w.task for w in wanted], [w.task for w in moved], start)
    if refusal is not None:
        return refusal
    scenario.keep()
    return EnactedPlan([w.task for w in moved], [w.task for w in (*wanted, *moved)])


def _refusal(
    state: EvictionState, wanted: Sequence[TaskState], moved: Sequence[TaskState], start: ReservedStart | None
) -> Refusal | None:
    """Refuse moves for a contender that would lose its place, or come after others, or that delay a reserved start."""
    session, shares = state.session, state.fairness.now()
    victims = list(dict.fromkeys(t.workload for t in moved))
    for contender in dict.fromkeys(t.workload for t in wanted):
        own = [t for t in wanted if t.workload is contender]
        result = AcceptedSet([], [*own, *moved], evicted=list(moved))
        if state.aftermath is not None:
            refusal = state.aftermath.judge(contender, CAUSE, result, shares)
            if refusal is not None:
                return refusal
        if not _in_turn(state, contender, own, moved):
            easy = session.settings.backfill == "easy"
            why = "would delay the first workload that waits" if easy else "comes after others that would get the room"
            return Refusal(RESERVED if easy else NO_ROOM, f"{contender.key} {why}")
        if start is not None and start.put_off(session, state.placer, contender, victims, state.endings):
            return Refusal(RESERVED, f"the moves would put off the start that is promised to {start.workload.key}")
    return None


def _in_turn(
    state: EvictionState, contender: WorkloadState, own: Sequence[TaskState], moved: Sequence[TaskState]
) -> bool:
    """Whether the ordinary order of allocation, with any reservation, gives a contender its step as well.

    What is moved has landed then, and its run begins anew: the reservation counts on its end there.
    """
    session = state.session
    victims = list(dict.fromkeys(t.workload for t in moved))
    with session.scenario():
        for task in own:
            session.withdraw(task)
        session.refresh(contender)
        settle(state, moved, moved)
        return serve(
            session, state.placer, state.fairness.now(), contender, victims, endings=state.endings
        ).reached  # fmt: skip


def land(state: EvictionState, wanted: Sequence[WantedLanding]) -> list[int]:
    """Nominate tasks to their nodes, and give the numbers of those that do not fit there, whichever lands before them.

    A task that has to be near another one can only land after it, so a task that was refused is tried again.
    """
    left, before = list(range(len(wanted))), -1
    while left and len(left) != before:
        before = len(left)
        left = [n for n in left if not _promise(state, *wanted[n])]
    return left


def _promise(state: EvictionState, task: TaskState, node: int, devices: tuple[int, ...]) -> bool:
    only = np.zeros(len(state.session.nodes), bool)
    only[node] = True
    found, _ = state.placer.find(task, only)
    if found != node:
        return False
    if devices and _free(state, task, node, devices):
        state.session.nominate(task, node, devices)
    else:
        state.placer.put(task, node, bindable=False)
    return True


def _free(state: EvictionState, task: TaskState, node: int, devices: tuple[int, ...]) -> bool:
    """Whether these devices have room for the task."""
    free = state.session.nodes.free_devices(node, bindable=False)
    part = MILLI if task.cls.milli is None else int(task.cls.milli[node])
    return all(free[d] >= part for d in devices)
