"""What asked to be spared: last of all for every cause, and never for what only improves (spec: the cycle).

This is the one place that reads it. A request counts for as long as it does: until ``allowPreemptionUntil``, and at
most for `maxOptOut` after the start. Owner and driver pods (``role: originator``) are spared as well, for as long as
that lasts: with them goes what they started. So are pods whose PodDisruptionBudgets never allow an eviction.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tenure.engine.refusal import Refusal
from tenure.engine.state.session import Session
from tenure.engine.state.workloads import GROW, TaskState, WorkloadState
from tenure.model.opt_out import opt_out_of
from tenure.model.settings import Cause
from tenure.model.values.duration import parse_duration
from tenure.model.workload import DO_NOT_DISRUPT, OPT_OUT, PREFER_NO_EVICTION, SAFE_TO_EVICT, SPARING

ORIGINATOR = "originator"
SHIELD = "opt-out"


def longest(session: Session, workload: WorkloadState) -> int:
    """Give for how long after its start a workload may be spared, in µs: the first `maxOptOut` on the way up."""
    queues = session.queues
    path = queues.path[workload.leaf] if workload.leaf >= 0 else ()
    return opt_out_of((queues.queues[queue] for queue in path), session.settings)


def ends_at(session: Session, workload: WorkloadState) -> int:
    """When a request to be spared ends, in µs since the epoch.

    It ends at ``allowPreemptionUntil``, and at the latest when the `maxOptOut` that holds has passed since the start.
    """
    last, asked = latest(session, workload), workload.model.allow_preemption_until
    return last if asked is None else min(asked, last)


def latest(session: Session, workload: WorkloadState) -> int:
    """When whatever spares a workload ends, in µs since the epoch; an unknown start counts as the creation."""
    return _start(workload) + longest(session, workload)


def spared(session: Session, task: TaskState) -> bool:
    """Whether a task asks to be spared now, or is an originator."""
    until = spared_until(session, task)
    return until is not None and session.now < until


def spared_until(session: Session, task: TaskState) -> int | None:
    """When the request of a task to be spared ends or ended, in µs since the epoch; None where it asks for nothing."""
    workload = task.workload
    if not workload.sparing:
        return None
    if task.model.role == ORIGINATOR:
        return latest(session, workload)
    asked = ends_at(session, workload) if not workload.model.allow_preemption else _asked_until(session, task)
    return None if asked is None else min(asked, ends_at(session, workload))


def count_spared(session: Session, tasks: Iterable[TaskState]) -> int:
    """Count the tasks that ask to be spared: of two sets the one with fewer comes first."""
    return sum(spared(session, task) for task in tasks)


def asked_to_stay(session: Session, victim: WorkloadState) -> Refusal:
    """Refuse a victim that asked to be spared, where it may not go: until the first of its tasks asks no more."""
    ends = [at for t in victim.placed() if (at := spared_until(session, t)) is not None and session.now < at]
    text = f"{victim.key} asked to be spared, and is taken only where nothing else helps"
    return Refusal(SHIELD, text, min(ends, default=None))


def may_go(cause: Cause, contender: WorkloadState) -> bool:
    """Whether what asked to be spared may go where nothing else helps: for no move, and for no surplus task."""
    grows = contender.step is not None and contender.step.kind == GROW
    return cause != "consolidate" and not grows


def _asked_until(session: Session, task: TaskState) -> int | None:
    """Until when annotations ask for it; of the task's own and its workload's the task's own counts."""
    own, common = task.model.annotations or {}, task.workload.model.annotations or {}
    found = {key: text for key in SPARING if (text := own.get(key, common.get(key))) is not None}
    text = found.get(DO_NOT_DISRUPT, "false")
    if _asks_without_end(found) or text == "true":
        return ends_at(session, task.workload)
    try:
        return None if text == "false" else _start(task.workload) + parse_duration(text)
    except ValueError:
        return None


def _asks_without_end(annotations: Mapping[str, str]) -> bool:
    """Whether one of those annotations asks for it that have no end of their own."""
    if annotations.get(OPT_OUT) == "false" or annotations.get(SAFE_TO_EVICT) == "false":
        return True
    return annotations.get(PREFER_NO_EVICTION, "false") != "false"


def _start(workload: WorkloadState) -> int:
    return workload.created_at if workload.started_at is None else workload.started_at
