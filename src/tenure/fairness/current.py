"""The fair shares of a session's queues as they are now, worked out when somebody first asks."""

from __future__ import annotations

from functools import cached_property
from operator import add

from tenure.engine.session import Session
from tenure.fairness.history import History
from tenure.fairness.shares import allocatable_share, fair_shares
from tenure.fairness.tree import tree_of
from tenure.model.resources import CPU, GPU, MEMORY


class Fairness:
    """Makes `CurrentShares` for a session; what does not change from one cycle to the next is kept here."""

    def __init__(self, session: Session) -> None:
        self.session = session
        queues = session.queues
        self.tree = tree_of(queues.queues, queues.resources)
        named = queues.named or [i for i, r in enumerate(queues.resources) if r in (CPU, MEMORY, GPU)]
        self.rows = named
        history = session.settings.fairness.history
        usage = [[q.status.usage.get(r, 0.0) if q.status else 0.0 for r in queues.resources] for q in queues.queues]
        self.history = History(usage, history.strength) if history else None

    def now(self) -> CurrentShares:
        """Give the shares for what is allocated and pending now."""
        return CurrentShares(self)


class CurrentShares:
    """Shares of every queue: ``fair`` with history where it is switched on, ``allocatable`` made of it.

    Lists are by number of the queue, then by row of amounts; ``rows`` are those that queues are compared by.
    """

    def __init__(self, fairness: Fairness) -> None:
        self._fairness = fairness
        self.rows = fairness.rows

    @cached_property
    def total(self) -> list[int]:
        """What ready nodes have, less what pods of other schedulers use."""
        return self._fairness.session.total()

    @cached_property
    def request(self) -> list[tuple[int, ...]]:
        """Allocated and pending, by queue."""
        queues = self._fairness.session.queues
        return [tuple(map(add, a, p)) for a, p in zip(queues.allocated, queues.pending, strict=True)]

    @cached_property
    def fair(self) -> list[list[int]]:
        """Fair share by queue."""
        return fair_shares(self._fairness.tree, self.total, self.request, self._fairness.history)

    @cached_property
    def fair_without_history(self) -> list[list[int]]:
        """Fair share as it is without history, which is what reclaim compares with."""
        if self._fairness.history is None:
            return self.fair
        return fair_shares(self._fairness.tree, self.total, self.request)

    @cached_property
    def allocatable(self) -> list[list[int]]:
        """min(max, max(guaranteed, fair share)) by queue."""
        queues = self._fairness.session.queues
        return [
            [allocatable_share(m, max(g, 0), f) for m, g, f in zip(most, floor, fair, strict=True)]
            for most, floor, fair in zip(queues.maximum, queues.guaranteed, self.fair, strict=True)
        ]
