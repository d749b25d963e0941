"""Writes a set that was carried out on the session into the plan."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from tenure.engine.plan import PlanStep
from tenure.engine.serving.allocation import promise_crowded
from tenure.engine.state.cost import MICRO, cost, lost_time
from tenure.engine.state.notices import announce, count_told, expire, notice_of, over
from tenure.engine.state.session import Session
from tenure.engine.state.workloads import TaskState, WorkloadState
from tenure.engine.terms.table import claims_of
from tenure.model.settings import Cause
from tenure.model.workload import Notice
from tenure.victims.dry_run.outcome import AcceptedSet
from tenure.victims.recording.state import EvictionState
from tenure.victims.rules.pieces import Piece

PLACING = ("bind", "nominate")

Price = dict[TaskState, tuple[int, int, int]]
"""By task: cost in millionths of a weighted resource-second, lost time in µs, end of its minimum runtime."""


def prices(state: EvictionState, pieces: Iterable[Piece], cause: Cause, contender: WorkloadState | None) -> Price:
    """What evicting these pieces costs, before it is done."""
    session, found = state.session, {}
    beneficiary = contender.leaf if contender is not None else -1
    for piece in pieces:
        state.remember(piece.workload)
        until = state.plugins.min_runtime.protected_until(session, cause, beneficiary, piece.workload)
        for task in piece.ran:
            found[task] = cost(session, task), lost_time(session, task), until
    return found


def record(
    state: EvictionState, played: AcceptedSet, price: Price, cause: Cause, contender: WorkloadState | None,
    reason: Callable[[WorkloadState, float], str], *, wave: int | None = None,
) -> None:  # fmt: skip
    """Write what was evicted, withdrawn and placed into the plan, in the order in which it is to be carried out."""
    _undo(state, played.withdrawn)
    beneficiary = contender.key if contender is not None else None
    totals: dict[WorkloadState, int] = {}
    for task in played.evicted:
        totals[task.workload] = totals.get(task.workload, 0) + price[task][0]
    reasons = {w: state.reason(partial(reason, w), total / MICRO) for w, total in totals.items()}
    told = _announce(state, played.evicted, cause, beneficiary)
    for task in played.evicted:
        state.plan.steps.append(_evict_step(state, task, price[task], cause, beneficiary, reasons[task.workload], wave))
    lost = {task: price[task][1] for task in played.evicted}
    state.plugins.budgets.charge(state.session, cause, contender, lost, told)
    for workload in totals:
        state.evicted.add(workload.key)
        state.endings.discard(workload)
        if workload.occupied() and state.session.settings.backfill == "easy":
            state.endings.add(workload)
    write_placed(state, played.placed)


def write_placed(state: EvictionState, placed: Sequence[TaskState]) -> None:
    """Write what was placed into the plan; what a queue's maximum keeps out until others have gone is promised only."""
    session = state.session
    if session.noticed:
        count_told(session)
        promise_crowded(session, placed)
    for task in placed:
        state.plan.steps.append(place_step(session, task, state.cycle))
    for workload in dict.fromkeys(t.workload for t in placed):
        _note_start(state, workload)


def _announce(
    state: EvictionState, tasks: Sequence[TaskState], cause: Cause, beneficiary: str | None
) -> set[TaskState]:
    """Give notice to tasks that get one; the deadline of a notice that lapsed in this cycle stands."""
    session, told = state.session, set[TaskState]()
    by_workload: dict[WorkloadState, list[TaskState]] = {}
    lengths: dict[tuple[int, int | None], int] = {}
    for task in tasks:
        setting = task.workload.leaf, task.workload.model.eviction_notice
        if setting not in lengths:
            lengths[setting] = notice_of(session, task.workload)
        if lengths[setting]:
            by_workload.setdefault(task.workload, []).append(task)
    for workload, own in by_workload.items():
        for (deadline, at), batch in _batches(state, workload, own).items():
            for task in batch:
                announce(session, task, Notice(deadline=deadline, cause=cause, beneficiary=beneficiary, at=at))
            if deadline <= session.now or (at < session.now and over(session, workload, batch)):
                for task in batch:
                    expire(session, task)
                continue
            told.update(batch)
            state.wake_at(deadline)
    return told


def _batches(
    state: EvictionState, workload: WorkloadState, tasks: Sequence[TaskState]
) -> dict[tuple[int, int], Sequence[TaskState]]:
    """Give the tasks of a workload by deadline and time of their notice; none where it has none. A core goes whole."""
    now, length = state.session.now, notice_of(state.session, workload)
    found: dict[tuple[int, int], list[TaskState]] = {}
    for task in tasks if length else ():
        lapsed, times = state.lapsed.get(task), (now + length, now)
        if lapsed is not None:
            times = min(now + length, lapsed.deadline), now if lapsed.at is None else lapsed.at
        found.setdefault(times, []).append(task)
    if len(found) > 1 and not workload.root.satisfied(nominated=False):
        return {max(found): tasks}
    return dict(found)


def _evict_step(
    state: EvictionState, task: TaskState, price: tuple[int, int, int], cause: Cause, beneficiary: str | None,
    reason: str, wave: int | None,
) -> PlanStep:  # fmt: skip
    names, notice = state.session.nodes.names, task.notice or state.lapsed.get(task)
    action = "evict" if task.notice is None else "notice"
    return PlanStep(
        action, task.workload.key, task.name, names[task.leaving], task.index, task.leaving, task.leaving_devices,
        state.cycle, cause, beneficiary, price[0] / MICRO, reason,
        names[task.nominated] if task.nominated >= 0 else None, wave,
        state.session.leaves_at(task), price[1], price[2],
        -1 if notice is None else notice.deadline, -1 if notice is None or notice.at is None else notice.at,
    )  # fmt: skip


def place_step(session: Session, task: TaskState, cycle: int) -> PlanStep:
    """Give the step that places a task where it is bound or nominated."""
    bound = task.node >= 0
    node, devices = (task.node, task.devices) if bound else (task.nominated, task.nominated_devices)
    volumes, claims = claims_of(session.terms, task.terms)
    return PlanStep(
        "bind" if bound else "nominate", task.workload.key, task.name, session.nodes.names[node], task.index, node,
        devices, cycle, volumes=volumes, claims=claims,
    )  # fmt: skip


def _undo(state: EvictionState, tasks: Sequence[TaskState]) -> None:
    """Take back what this cycle placed before, and give up what was promised earlier: the plan holds the outcome."""
    if not tasks:
        return
    undone = {(t.workload.key, t.index) for t in tasks}
    plan = state.plan
    placed = {(s.workload, s.task_index) for s in plan.steps if s.action in PLACING} & undone
    plan.steps[:] = [s for s in plan.steps if s.action not in PLACING or (s.workload, s.task_index) not in placed]
    plan.expired += [key for key in sorted(undone - placed) if key not in plan.expired]
    for workload in dict.fromkeys(t.workload for t in tasks):
        if workload.started_at is None and workload.key in plan.started:
            plan.started.remove(workload.key)
            state.endings.discard(workload)


def _note_start(state: EvictionState, workload: WorkloadState) -> None:
    """Note the start of a workload whose core was bound."""
    session, before = state.session, workload.started_at
    session.note_start(workload)
    if before is None and workload.started_at is not None:
        state.plan.started.append(workload.key)
        if session.settings.backfill == "easy":
            state.endings.add(workload)
