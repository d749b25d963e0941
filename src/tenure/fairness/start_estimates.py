"""When those that wait would start by themselves: all on one future, in the order in which they are served."""

from __future__ import annotations

from typing import Final

from tenure.engine.serving.estimate import estimated_starts
from tenure.engine.state.session import Session
from tenure.engine.state.workloads import WorkloadState
from tenure.fairness.current import Fairness

MOST_WAITING: Final = 256
"""So many of those that find no place are looked at, at each time, while a cycle decides."""

MOST_TIMES: Final = 256
"""So many times at which something ends are looked at while a cycle decides."""


class StartEstimates:
    """The estimated starts of one cycle, worked out when they are first asked for, and again once room has grown."""

    def __init__(self) -> None:
        self._known: tuple[int, dict[str, int]] | None = None

    def begin(self) -> None:
        """A cycle begins: what was known holds no longer."""
        self._known = None

    def of(self, session: Session, contender: WorkloadState) -> int | None:
        """Give when a contender would start (µs since the epoch) if nothing were evicted for it; None if unknown."""
        if self._known is None or self._known[0] != session.epoch:
            found = estimated_starts(session, Fairness(session), MOST_WAITING, MOST_TIMES, likely=True)
            self._known = session.epoch, found
        return self._known[1].get(contender.key)
