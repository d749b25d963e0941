"""What queues use beyond what is allocated: tasks that terminate and have not left yet."""

from __future__ import annotations

from operator import add

from tenure.engine.state.queues import Amount
from tenure.engine.state.session import Session
from tenure.engine.state.workloads import TERMINATING, TaskState


class TerminatingUsage:
    """The usage that terminates, by queue and row, each with everything below.

    ``going`` should be gone soon; ``stuck`` is still there after its grace period, and its leaving is not counted on.
    A task that is moved counts where it lands, and not here.
    """

    def __init__(self, session: Session) -> None:
        queues = session.queues
        zero = (0,) * len(queues.resources)
        self.going: list[Amount] = [zero] * len(queues.queues)
        self.stuck: list[Amount] = [zero] * len(queues.queues)
        self.stuck_tasks: list[TaskState] = []
        for task in session.leaving:
            if task.workload.leaf >= 0 and (task.phase is TERMINATING or task.nominated < 0):
                self._count(session, task)
        self.stuck_tasks.sort(key=lambda t: (t.workload.key, t.index))

    def _count(self, session: Session, task: TaskState) -> None:
        node = task.node if task.phase is TERMINATING else task.leaving
        amount = task.cls.amount_at(node, session.nodes)
        held = self.stuck if task.stuck else self.going
        if task.stuck:
            self.stuck_tasks.append(task)
        for queue in session.queues.path[task.workload.leaf]:
            held[queue] = tuple(map(add, held[queue], amount))


def excess_of(session: Session, leaving: TerminatingUsage, queue: int) -> dict[int, int]:
    """Give by row what has to go from a queue: what it uses, less what is leaving already, over its max."""
    queues = session.queues
    rows = zip(queues.allocated[queue], leaving.stuck[queue], queues.maximum[queue], strict=True)
    return {row: more for row, (held, stuck, most) in enumerate(rows) if (more := held + stuck - most) > 0}


def used(session: Session, leaving: TerminatingUsage, queue: int) -> dict[str, int]:
    """Give all that a queue uses, by resource."""
    queues = session.queues
    rows = zip(queues.resources, queues.allocated[queue], leaving.going[queue], leaving.stuck[queue], strict=True)
    return {resource: held + going + stuck for resource, held, going, stuck in rows}
