"""Notices: evictions that are announced, so that a victim can save its work first (spec: the cycle, "Notice").

From the commit until its eviction a task runs on, but does not count any more: its queue is relieved of it, and the
room that it leaves may be promised, as if it terminated at its deadline. What a notice says stands on the task in the
cluster, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import add

from tenure.engine.state import lifecycle
from tenure.engine.state.queues import Amount
from tenure.engine.state.session import Session
from tenure.engine.state.workloads import PENDING, TERMINATING, TaskState, WorkloadState
from tenure.model.queue import Queue
from tenure.model.settings import MINUTE
from tenure.model.values.duration import format_time, parse_time
from tenure.model.workload import Notice

ACKNOWLEDGED = "tenure.dev/eviction-ack"
"""Annotation by which a pod, or its workload, says that it is ready to go."""

LONGEST = 10 * MINUTE
"""How long a notice may be, in µs, where no queue says."""


def notice_of(session: Session, workload: WorkloadState) -> int:
    """Give how long before its eviction a workload is told, in µs.

    Its own setting, else that of the first queue upward that has one, else the node pool's; an explicit 0 is one. The
    least `maxEvictionNotice` that is set on the way up bounds it, so that no queue escapes what is set above it.
    """
    queues = session.above(workload.leaf)
    own = workload.model.eviction_notice
    if own is None:
        own = next((q.eviction_notice for q in queues if q.eviction_notice is not None), None)
    if own is None:
        own = session.settings.eviction_notice
    return min(own, longest_notice(queues))


def longest_notice(queues: Sequence[Queue]) -> int:
    """Give how long a notice may be, in µs, in a queue that is given with all above it."""
    return min((q.max_eviction_notice for q in queues if q.max_eviction_notice is not None), default=LONGEST)


def announce(session: Session, task: TaskState, notice: Notice) -> None:
    """A task that was just evicted on the session is only told so: it goes at its deadline."""
    lifecycle.announce(session.journal, task, notice)
    if task not in session.noticed:
        session.journal.add(session.noticed, task)


def count_told(session: Session) -> None:
    """Count by queue what runs on under notice: a maximum holds for it as well until it has gone."""
    told: dict[int, Amount] = {}
    for task in session.noticed:
        node = task.node if task.phase is TERMINATING else task.leaving
        if node < 0 or task.nominated >= 0:  # where it lands it is counted already
            continue
        amount = task.cls.amount_at(node, session.nodes)
        for queue in session.queues.path[task.workload.leaf]:
            told[queue] = tuple(map(add, told[queue], amount)) if queue in told else amount
    session.journal.set(session.queues, "under_notice", told)


def stand(session: Session, task: TaskState) -> None:
    """From the next cycle on, a task that goes and has no place to land contends for none until it has gone."""
    if task.phase is not PENDING or task.leaving < 0 or task.nominated >= 0:
        return
    if task.asks:
        session.queues.unask(task.workload.leaf, task.cls.amount)
    lifecycle.stand(session.journal, task)


def in_turn(session: Session) -> list[list[TaskState]]:
    """Give what leaves, in the order in which it will: at once, once it has saved its work, or at its deadline.

    What leaves at the same time is together; the first may be nothing. What is under notice contends for nothing before
    its turn.
    """
    turns: dict[int, list[TaskState]] = {0: []}
    for task in sorted(session.leaving, key=lambda t: (t.workload.key, t.index)):
        turns.setdefault(_turn(task), []).append(task)
    for task in session.noticed:
        stand(session, task)
        session.refresh(task.workload)
    return [turns[turn] for turn in sorted(turns)]


def _turn(task: TaskState) -> int:
    checkpoint = task.workload.model.checkpoint
    if task.notice is None:
        return 0
    return 1 if checkpoint is not None and checkpoint.made else task.notice.deadline


def recall(session: Session, task: TaskState) -> None:
    """Take a notice back: the task runs on where it is, and its landing place is given up."""
    if task.nominated >= 0:
        session.withdraw(task)
    terminates = task.phase is TERMINATING
    node, devices = (task.node, task.devices) if terminates else (task.leaving, task.leaving_devices)
    leaf = task.workload.leaf
    session.occupancy.count_leaving(task, -1, now=True, then=False)
    if task.asks and not terminates:
        session.queues.unask(leaf, task.cls.amount)
    session.queues.allocate(leaf, task.cls.amount_at(node, session.nodes), fixed=task.workload.fixed)
    session.occupancy.occupy(task, node, devices, 1, now=False, then=True)
    session.occupancy.count_differing(-1)
    session.journal.remove(session.leaving, task)
    lifecycle.recall(session.journal, task)
    session.forget_notice(task)
    session.new_epoch()


def expire(session: Session, task: TaskState) -> None:
    """The time of a notice is over: the task terminates from now on."""
    session.journal.set(task, "terminating_since", session.now)
    session.forget_notice(task)


def over(session: Session, workload: WorkloadState, tasks: Sequence[TaskState]) -> str:
    """Say why tasks of one workload, all under one notice, have to wait no longer; nothing where they have to.

    One whose expected end comes before its deadline is left to finish, even if it saves in the meantime.
    """
    notice = tasks[0].notice
    assert notice is not None
    if session.now >= notice.deadline:
        return f"its notice ended {format_time(notice.deadline)}"
    end = workload.end_at()
    if end is not None and session.now < end <= notice.deadline:
        return ""
    told = notice.deadline if notice.at is None else notice.at
    saved = reported(workload)
    if saved is not None and told < saved <= session.now:
        return f"it saved its work {format_time(saved)}"
    if all(_acknowledged(task, told) for task in tasks):
        return "it acknowledged its notice"
    return ""


def reported(workload: WorkloadState) -> int | None:
    """Give the last checkpoint that a workload reported, in µs since the epoch."""
    checkpoint = workload.model.checkpoint
    stated = checkpoint.last_at if checkpoint is not None else None
    return max((t for t in (stated, workload.saved_at) if t is not None), default=None)


def _acknowledged(task: TaskState, told: int) -> bool:
    """Whether a task's annotation, or its workload's, acknowledges a notice that was given at ``told``.

    A time acknowledges what was announced until then; anything else but ``false`` or nothing, the present notice.
    """
    text = task.model.annotations.get(ACKNOWLEDGED)
    if text is None:
        text = task.workload.model.annotations.get(ACKNOWLEDGED, "")
    try:
        return parse_time(text) >= told
    except ValueError:
        return text not in ("", "false")
