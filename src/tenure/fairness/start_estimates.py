"""When those that wait would start by themselves: all on one future, in the order in which they are served."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Final

from tenure.engine.estimate import estimated_starts
from tenure.engine.order import QueueOrder, skip_none
from tenure.engine.session import Session
from tenure.engine.workloads import WorkloadState
from tenure.fairness.current import Fairness

MOST_WAITING: Final = 256
"""So many of those that wait are looked at while a cycle decides; who stands behind them counts as unknown."""

MOST_TIMES: Final = 256
"""So many times at which something ends are looked at while a cycle decides."""


def in_order_of_service(session: Session, waiting: Sequence[WorkloadState]) -> list[WorkloadState]:
    """Put those that wait into the order in which they would be served; those that ask for nothing now come last."""
    found = served_in_order(session, None)
    served = set(found)
    return found + [w for w in waiting if w not in served]


def served_in_order(session: Session, most: int | None) -> list[WorkloadState]:
    """Give who would be served next, in order; so many of them at most."""
    order = QueueOrder(session, Fairness(session).now(), skip_none)
    found: list[WorkloadState] = []
    for workload in islice(iter(order.next, None), most):
        found.append(workload)
        order.pass_over(workload)
    return found


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
            waiting = served_in_order(session, MOST_WAITING)
            self._known = session.epoch, estimated_starts(session, waiting, MOST_TIMES, likely=True)
        return self._known[1].get(contender.key)
