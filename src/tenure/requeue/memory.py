"""What requeue keeps from one cycle to the next: the nominators, expected ends, and where the search was cut off."""

from __future__ import annotations

from typing import NamedTuple

from tenure.engine.state.session import Session
from tenure.engine.state.workloads import WorkloadState
from tenure.nominators.expected_ends import ExpectedEnds
from tenure.nominators.registry import Registry
from tenure.requeue.pending_index import PendingIndex


class SearchPosition(NamedTuple):
    """The position where the search was cut off: what it would have tried next.

    ``contender`` and ``candidate`` are names; without a candidate it is a set of the first ``size``, or, for one
    candidate, the option of that number. ``spared`` are those that have been given back from the set. ``everybody``:
    the set was looked for among all candidates, and not among those alone that did not ask to be spared.
    """

    contender: str
    candidate: str = ""
    size: int = 0
    spared: tuple[str, ...] = ()
    everybody: bool = False


class RequeueMemory:
    """The state that requeue keeps between cycles; starts are reported to it, what already runs it finds itself.

    ``position`` is where the last search was cut off, None if it came to its end. It is not written anywhere: after a
    restart the search begins at its beginning.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self.registry = Registry(session.settings)
        self.due = ExpectedEnds(session)
        self.pending_index = PendingIndex(session)
        self.position: SearchPosition | None = None
        self._fresh: set[str] = set()

    def started(self, key: str) -> None:
        """A workload has started in this cycle; to be told twice does no harm."""
        if key not in self._fresh:
            self._fresh.add(key)
            self.due.add(self.session.workloads[key])

    def overdue(self) -> list[WorkloadState]:
        """Give what runs and has reached its expected runtime, by name; a new cycle has begun."""
        self._fresh.clear()
        for workload in self.session.added:
            if workload.occupied():
                self.due.add(workload)
        return self.due.now()
