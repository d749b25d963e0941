"""The ordinary order of allocation, over all that wait."""

from __future__ import annotations

from tenure.engine.order import QueueOrder
from tenure.engine.placement import Placer
from tenure.engine.session import Session
from tenure.engine.workloads import TaskState
from tenure.fairness.current import CurrentShares
from tenure.victims.allocation_pass import held_back


def serve_all(session: Session, placer: Placer, shares: CurrentShares) -> list[TaskState]:
    """Serve everybody who finds room, in order; give every task that was placed, bound or nominated."""
    most = session.most_room()
    order = QueueOrder(session, shares, lambda _, step: step.cannot_fit(session.epoch, most))
    placed: list[TaskState] = []
    while (workload := order.next()) is not None:
        step = workload.step
        assert step is not None
        barred = step.cannot_fit(session.epoch, most) or held_back(session, workload, step)
        if not barred and placer.place(workload, step):
            placed += step.tasks
            session.refresh(workload)
            order.served(workload)
            continue
        if step.shape is not None and not barred:
            step.shape.failed = session.epoch
        order.pass_over(workload)
    return placed
