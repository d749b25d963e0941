"""Takes back, at the end of a cycle, what its plan evicts and does not need (spec: choosing victims, "reprieve").

Each set of victims is the best for its contender as things were after the sets before it. What one of them frees beyond
its contender's need may be room for a victim of an earlier one, which would have its place back as soon as all is
carried out: it would lose its work for nothing. Such a victim stays. What is judged is the whole plan, whatever causes
its evictions have: all that wait are served in order, and what then lands where it stood is not evicted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Final

from tenure.actions.context import Context
from tenure.engine.allocation import serve
from tenure.engine.notices import recall
from tenure.engine.plan import EVICTING, PlanStep
from tenure.engine.session import Session
from tenure.engine.workloads import TaskState, WorkloadState
from tenure.model.settings import Cause
from tenure.victims.dry_run import is_back
from tenure.victims.state import EvictionState

FOR_A_CONTENDER: Final[frozenset[Cause | None]] = frozenset(("reclaim", "preempt", "requeue"))
"""Causes that evict for a contender, and move nothing."""


def reprieve(context: Context, settled: Collection[str]) -> None:
    """Let victims stay that would land where they stand; not those that were told of it before and have ``settled``."""
    state = context.evictions
    if state is None or state.plan is not context.plan:
        return
    while _reprieve_some(context, state, settled):
        """Beside a reservation, what runs on may let another be served as well."""


def _reprieve_some(context: Context, state: EvictionState, settled: Collection[str]) -> bool:
    """Let all stay for which there is a place as things are; gives whether there are any."""
    going = [t for t in _going(state) if t.workload.key not in settled]
    if not any(context.placer.fits_later(task, task.leaving) for task in going):
        return False
    stay = [(w, tasks) for w, tasks in _landing_at_home(context, going).items() if _stay(context, w, tasks)]
    for workload, tasks in stay:
        _take_back(context, state, workload, tasks)
    return bool(stay)


def _going(state: EvictionState) -> list[TaskState]:
    """Give the tasks that a plan evicts for a contender, and to which it gives no other place."""
    workloads, found = state.session.workloads, dict[TaskState, None]()
    for step in state.plan.steps:
        if step.action in EVICTING and step.cause in FOR_A_CONTENDER and step.workload not in state.moved:
            found[workloads[step.workload].tasks[step.task_index]] = None
    return [t for t in found if t.leaving >= 0 and t.nominated < 0 and not t.stuck and t not in state.lapsed]


def _landing_at_home(context: Context, going: Sequence[TaskState]) -> dict[WorkloadState, list[TaskState]]:
    """Give, by workload, the tasks that are served where they stand once all that is decided has come true."""
    session, placer = context.session, context.placer
    found: dict[WorkloadState, list[TaskState]] = {}
    with session.scenario():
        session.new_epoch()
        placer.own = "first"
        try:
            serve(session, placer, context.fairness.now())
        finally:
            placer.own = "any"
        for task in filter(is_back, going):
            found.setdefault(task.workload, []).append(task)
    return found


def _stay(context: Context, workload: WorkloadState, tasks: Sequence[TaskState]) -> bool:
    """Let tasks of one workload run on; False, and nothing is done, if it would be part of a core, or room is lacking.

    Whole GPUs of theirs that were promised are exchanged for others of the same node.
    """
    session, placer = context.session, context.placer
    with session.scenario() as scenario:
        promised = _promised_on(session, tasks)
        for other, _ in promised:
            session.withdraw(other)
        for task in tasks:
            recall(session, task)
        session.refresh(workload)
        if not workload.root.satisfied(nominated=False):
            return False
        for other, node in promised:
            if not placer.fits_later(other, node):
                return False
            placer.put(other, node, bindable=False)
        for whose in dict.fromkeys(other.workload for other, _ in promised):
            session.refresh(whose)
        scenario.keep()
    _rewrite(context.plan.steps, [other for other, _ in promised])
    return True


def _promised_on(session: Session, tasks: Iterable[TaskState]) -> list[tuple[TaskState, int]]:
    """Give the tasks that were promised whole GPUs which some tasks hold, each with the node."""
    held = {(t.leaving, device) for t in tasks for device in t.leaving_devices if t.cls.milli is None}
    found = [t for t in session.nominated if any((t.nominated, device) in held for device in t.nominated_devices)]
    return [(t, t.nominated) for t in sorted(found, key=lambda t: (t.workload.key, t.index))]


def _rewrite(steps: list[PlanStep], promised: Sequence[TaskState]) -> None:
    """Write the devices into a plan that were promised in the end."""
    devices = {(t.workload.key, t.index): t.nominated_devices for t in promised}
    for number, step in enumerate(steps):
        found = devices.get((step.workload, step.task_index))
        if found is not None and step.action == "nominate":
            steps[number] = step._replace(devices=found)


def _take_back(context: Context, state: EvictionState, workload: WorkloadState, tasks: Sequence[TaskState]) -> None:
    """Strike evictions from the plan, and from what is known of the workload."""
    session, plan = context.session, context.plan
    stays = {(t.workload.key, t.index) for t in tasks}
    plan.steps[:] = [s for s in plan.steps if s.action not in EVICTING or (s.workload, s.task_index) not in stays]
    state.plugins.budgets.take_back(tasks)
    times, left = state.before[workload], [s for s in plan.steps if s.action in EVICTING and s.workload == workload.key]
    workload.started_at, workload.evictions = times.started_at, times.evictions
    if not left:
        workload.last_evicted_at = times.last_evicted_at
        state.evicted.discard(workload.key)
    if all(step.cause != "requeue" for step in left):
        workload.not_before = times.not_before
        plan.requeue.take_back(workload.key)
    workload.queued_at = session.queued_since(workload)
    session.refresh(workload)
    if context.requeueing is not None:
        context.requeueing.started(workload.key)
    if session.settings.backfill == "easy":
        state.endings.discard(workload)
        state.endings.add(workload)
