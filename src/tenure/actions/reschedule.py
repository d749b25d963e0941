"""Reschedule: moves running work for what has been pending too long, and off nodes that are to be emptied (spec 7)."""

from __future__ import annotations

from tenure.actions.context import Context
from tenure.engine.order import QueueOrder
from tenure.engine.workloads import WorkloadState
from tenure.model.settings import Cause
from tenure.victims.gates import anyone_waits

CAUSE: Cause = "reschedule"


def reschedule(context: Context) -> None:
    """Make room for what has waited for `pendingFor`, then empty the nodes that are to be emptied."""
    session = context.session
    if len(session.nodes) < 2:  # noqa: PLR2004  it takes two
        return
    draining = [i for i, n in enumerate(session.nodes.nodes) if n.drain and _occupied(context, i)]
    waiting = _overdue(context) if anyone_waits(session) else []
    if waiting or draining:
        from tenure.rescheduler.run import Memory, run  # noqa: PLC0415  only loaded where there is something to do

        if not isinstance(context.rescheduling, Memory):
            context.rescheduling = Memory()
        run(context.evicting(), context.rescheduling, waiting, draining)


def _overdue(context: Context) -> list[WorkloadState]:
    """Give what has been pending for `pendingFor`, in the order in which it would be served."""
    session = context.session
    since = session.now - session.settings.rescheduler.pending_for
    order = QueueOrder(session, context.fairness.now(), lambda _, __: False)
    found = []
    while (workload := order.next()) is not None:
        if workload.queued_at <= since:
            found.append(workload)
        order.pass_over(workload)
    return found


def _occupied(context: Context, node: int) -> bool:
    return any(t.node == node and t.active for t in context.session.on_node[node])
