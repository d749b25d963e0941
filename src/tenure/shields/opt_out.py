"""What asked to be spared: last of all for every cause, and never for what only improves (spec: the cycle).

This is the one place that reads it. A request counts for as long as it does: until ``allowPreemptionUntil``, and at
most for `maxOptOut` after the start. Owner and driver pods (``role: originator``) are spared as well: with them goes
what they started.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tenure.engine.session import Session
from tenure.engine.workloads import TaskState, WorkloadState
from tenure.model.duration import parse_duration
from tenure.model.workload import DO_NOT_DISRUPT, OPT_OUT, PREFER_NO_EVICTION, SAFE_TO_EVICT, SPARING

ORIGINATOR = "originator"
SHIELD = "opt-out"


def ends_at(session: Session, workload: WorkloadState) -> int | None:
    """When a request to be spared ends, in µs since the epoch; None if it has no end.

    It ends at ``allowPreemptionUntil``, and at the latest when the first ``maxOptOut`` that is set on the way from
    its queue up has passed since the start; an unknown start counts as the creation.
    """
    ends = [] if workload.model.allow_preemption_until is None else [workload.model.allow_preemption_until]
    queues = session.queues
    limits = (queues.queues[queue].max_opt_out for queue in queues.path[workload.leaf])
    limit = next((found for found in limits if found is not None), None)
    if limit is not None:
        ends.append(_start(workload) + limit)
    return min(ends, default=None)


def spared(session: Session, task: TaskState) -> bool:
    """Whether a task asks to be spared now, or is an originator."""
    workload = task.workload
    if not workload.sparing:
        return False
    if task.model.role == ORIGINATOR:
        return True
    if workload.model.allow_preemption and not _asks(session, task):
        return False
    end = ends_at(session, workload)
    return end is None or session.now < end


def count_spared(session: Session, tasks: Iterable[TaskState]) -> int:
    """Count the tasks that ask to be spared: of two sets the one with fewer comes first."""
    return sum(spared(session, task) for task in tasks)


def _asks(session: Session, task: TaskState) -> bool:
    """Whether an annotation asks for it; of the task's own and its workload's the task's own counts."""
    own, common = task.model.annotations or {}, task.workload.model.annotations or {}
    found = {key: text for key in SPARING if (text := own.get(key, common.get(key))) is not None}
    return bool(found) and _says_so(session, task, found)


def _says_so(session: Session, task: TaskState, annotations: Mapping[str, str]) -> bool:
    if annotations.get(OPT_OUT) == "false" or annotations.get(SAFE_TO_EVICT) == "false":
        return True
    if annotations.get(PREFER_NO_EVICTION, "false") != "false":
        return True
    text = annotations.get(DO_NOT_DISRUPT, "false")
    if text in {"true", "false"}:
        return text == "true"
    try:
        return session.now < _start(task.workload) + parse_duration(text)
    except ValueError:
        return False


def _start(workload: WorkloadState) -> int:
    return workload.created_at if workload.started_at is None else workload.started_at
