"""What requeue keeps from one cycle to the next: the nominators, and when what runs is expected to end."""

from __future__ import annotations

from tenure.engine.session import Session
from tenure.engine.workloads import WorkloadState
from tenure.nominators.due import Due
from tenure.nominators.registry import Registry


class Memory:
    """Has to be told of every start; what was running when it was made, or came running later, it finds itself."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.registry = Registry(session.settings)
        self.due = Due(session)

    def started(self, key: str) -> None:
        """A workload has started."""
        self.due.add(self.session.workloads[key])

    def overdue(self) -> list[WorkloadState]:
        """Give what runs and has reached its expected runtime, by name."""
        for workload in self.session.added:
            if workload.occupied():
                self.due.add(workload)
        return self.due.now()
