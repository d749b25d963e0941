"""Reschedule: moves running work for what has been pending too long, off nodes, and for a better layout (spec 7)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from tenure.actions.context import Context
from tenure.engine.serving.order import QueueOrder
from tenure.engine.state.session import Session
from tenure.engine.state.waiting import anything_waits
from tenure.engine.state.workloads import WorkloadState
from tenure.rescheduler.memory import CAUSE, NEW_NODES, MoveMemory
from tenure.shields.delay import delay, moved_for_from
from tenure.victims.bounds.room_demand import room_in_all, room_of_all

MANY: Final = 256
"""So many that wait are looked at in every cycle; to look at more would take longer than a look that is in vain."""


def reschedule(context: Context) -> None:
    """Look whether anything is due, which most cycles find out cheaply, and only then for moves."""
    session = context.session
    memory = context.rescheduling
    if not isinstance(memory, MoveMemory):
        memory = context.rescheduling = MoveMemory()
    draining, made, read = memory.marks(session.nodes)
    if len(session.nodes) < 2 and not draining:  # noqa: PLR2004  it takes two, but to say what a drain leaves
        return
    settings = session.settings.rescheduler
    memory.note_helped(context.plan, settings.settle)
    waiting: list[WorkloadState] = []
    by_room = session.settings.fairness.history is None
    if anything_waits(session.waiting):
        if session.now >= memory.look_at:
            waiting = _overdue(context, memory, by_room=by_room)
        elif not by_room or _any_fits(session):  # something has happened since the last look
            context.plan.wake_at(memory.look_at)
    if context.about is not None:
        waiting = [w for w in waiting if w.key == context.about] or waiting
    emptied = [n for n in draining if any(t.node == n and t.active for t in session.on_node[n])] if draining else []
    new = _new(context, memory, made) if settings.new_nodes.enabled and made else []
    hot = _hot(context, memory, read) if settings.hot_nodes.enabled and read else []
    background = settings.background.interval is not None and _improvable(context, memory)
    if waiting or emptied or new or hot or background:
        from tenure.rescheduler.run import DueTriggers, run  # noqa: PLC0415  only loaded where there is something to do

        run(context.evicting(), memory, DueTriggers(waiting, emptied, hot, new, background))


def _overdue(context: Context, memory: MoveMemory, *, by_room: bool) -> list[WorkloadState]:
    """Give what has been pending for `pendingFor`, in the order of service, and note when to look next.

    Until then no other workload can have been pending for so long. What comes back to the queue with its old place may
    have to wait for that look; what was evicted was asked about then, and is left alone for a while. Where nothing but
    room decides (``by_room``), what asks for more than all that is free is not woken for: moves make no room, and what
    makes some is followed by a cycle.
    """
    session, wait = context.session, context.session.settings.rescheduler.pending_for
    now, waiting = session.now, session.waiting.all()
    due = {w.key: max(moved_for_from(session, w), memory.again.get(w.key, 0)) for w in waiting}
    later = [at for at in due.values() if at > now]
    soonest = min(later, default=None)
    fitting = list(_fitting(session, waiting))
    woken_for = fitting if by_room else waiting
    context.plan.wake_at(min((due[w.key] for w in woken_for if due[w.key] > now), default=None))
    memory.look_at = min(now + wait, soonest) if soonest is not None else now + wait
    overdue = [w for w in waiting if due[w.key] <= now]
    concerned = context.detailed or any(due[w.key] <= now for w in fitting) or any(delay(session, w) for w in overdue)
    if not (overdue and concerned):
        return []
    order = QueueOrder(session, context.fairness.now(), lambda _, __: False)
    found = []
    while (workload := order.next()) is not None:
        if due.get(workload.key, now) <= now:
            found.append(workload)
        order.pass_over(workload)
    return found


def _fitting(session: Session, waiting: Iterable[WorkloadState]) -> Iterator[WorkloadState]:
    """Give those of some that wait for which all free room together would do: moves make none."""
    room = room_of_all(session)
    return (w for w in waiting if w.step is not None and room_in_all(session, w.step, room))


def _any_fits(session: Session) -> bool:
    """Whether all free room together would do for one that waits; of very many, one is taken to be small enough."""
    waiting = list(islice((e[-1] for each in session.waiting.entries.values() for e in each if e[-1].entry is e), MANY))
    return len(waiting) == MANY or any(_fitting(session, waiting))


def _new(context: Context, memory: MoveMemory, made: list[tuple[int, int]]) -> list[int]:
    now = context.session.now
    since = now - context.session.settings.rescheduler.new_nodes.within
    new = [n for n, at in made if at > since]
    if new and memory.rests(NEW_NODES, now):  # something has happened since the last look
        context.plan.wake_at(memory.again[NEW_NODES])
        return []
    return new


def _hot(context: Context, memory: MoveMemory, read: list[int]) -> list[int]:
    from tenure.rescheduler.triggers.hot_nodes import NAME, hot  # noqa: PLC0415  only where there are readings

    session = context.session
    names = session.nodes.names
    return hot(session, memory, [n for n in read if not memory.rests(f"{NAME} {names[n]}", session.now)])


def _improvable(context: Context, memory: MoveMemory) -> bool:
    """Whether the layout is due: `interval` has passed since it was looked at, or since moves were last made for it.

    The second is in the log, so that a restart does not begin anew.
    """
    session, every = context.session, context.session.settings.rescheduler.background.interval
    assert every is not None
    if memory.improved is None:
        logged = [min(e.at, session.now) for e in session.evictions if e.cause == CAUSE and e.beneficiary is None]
        memory.improved = max(logged, default=None)
    if memory.improved is None or memory.unfinished:
        return True
    context.plan.wake_at(memory.improved + every)  # something has happened since the last look
    return session.now >= memory.improved + every
