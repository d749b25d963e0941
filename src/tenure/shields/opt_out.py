"""Opt-out: work that asks to be spared is the last resort, for as long as its request counts (spec: quota preemption).

Owner and driver pods (``role: originator``) are the last resort as well: with them goes what they started.
"""

from __future__ import annotations

from tenure.engine.session import Session
from tenure.engine.workloads import TaskState, WorkloadState
from tenure.model.workload import OPT_OUT

ORIGINATOR = "originator"


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
        start = workload.created_at if workload.started_at is None else workload.started_at
        ends.append(start + limit)
    return min(ends, default=None)


def last_resort(session: Session, task: TaskState) -> bool:
    """Whether a task is taken only if nothing else helps: an originator, or one whose opt-out still counts."""
    model, workload = task.model, task.workload
    if model.role == ORIGINATOR:
        return True
    if workload.model.allow_preemption:
        asked = model.annotations.get(OPT_OUT) if model.annotations else None
        if asked is None and workload.model.annotations:
            asked = workload.model.annotations.get(OPT_OUT)
        if asked != "false":
            return False
    end = ends_at(session, workload)
    return end is None or session.now < end
