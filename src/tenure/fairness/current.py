"""The fair shares of a session's queues as they are now, computed when they are first asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from operator import add, sub

from tenure.engine.state.queues import Amount
from tenure.engine.state.session import Session
from tenure.engine.state.workloads import TERMINATING, TaskState, WorkloadState
from tenure.fairness.history import UsageHistory, accrue
from tenure.fairness.shares import allocatable_share, fair_shares
from tenure.fairness.tree import tree_of
from tenure.model.queue import Queue, QueueStatus
from tenure.model.values.resources import CPU, GPU, MEMORY, MILLI


class Fairness:
    """The maker of `CurrentShares` for a session; it keeps what does not change from one cycle to the next."""

    def __init__(self, session: Session) -> None:
        self.session = session
        queues = session.queues
        self.tree = tree_of(queues.queues, queues.resources)
        named = queues.named or [i for i, r in enumerate(queues.resources) if r in (CPU, MEMORY, GPU)]
        self.rows = named
        self.settings = session.settings.fairness.history
        self.scale = [1.0 / MILLI if r in (CPU, GPU) else 1.0 for r in queues.resources]
        self._used = self._in_use()
        self.usage = [self._so_far(number) for number in range(len(queues.queues))]
        self.usage_at = session.now

    def _so_far(self, number: int) -> list[float]:
        """Past usage now, by resource: what the queue's status tells, and what the queue has held since."""
        queues, status = self.session.queues, self.session.queues.queues[number].status
        if self.settings is None or status is None:
            return [0.0] * len(queues.resources)
        past = [status.usage.get(resource, 0.0) for resource in queues.resources]
        elapsed = 0 if status.usage_at is None else self.session.now - status.usage_at
        return self._accrued(past, number, elapsed, self.settings.half_life)

    def _accrued(self, past: list[float], number: int, elapsed: int, half_life: int) -> list[float]:
        held = self._used[number]
        return [accrue(p / s, h, elapsed, half_life) * s for p, h, s in zip(past, held, self.scale, strict=True)]

    def _in_use(self) -> list[Amount]:
        """What each queue really holds: what runs on under notice as well, and nothing of what is only promised.

        Else those that give way would seem to use nothing and their contenders all of it, though neither is so yet; the
        order of queues would turn, the eviction would not pay any more, and with its withdrawal all would begin anew.
        """
        session = self.session
        used = list(session.queues.allocated)
        if self.settings is None or not (session.noticed or session.nodes.waiting):
            return used
        for workload in session.workloads.values():
            for task in workload.tasks if workload.leaf >= 0 else ():
                if task.notice is not None:
                    node = task.node if task.node >= 0 else task.leaving
                    self._count(used, workload, add, task.cls.amount_at(node, session.nodes))
                if task.nominated >= 0:
                    self._count(used, workload, sub, task.cls.amount_at(task.nominated, session.nodes))
        return used

    def _count(
        self, used: list[Amount], workload: WorkloadState, how: Callable[[int, int], int], amount: Amount
    ) -> None:
        for queue in self.session.queues.path[workload.leaf]:
            used[queue] = tuple(map(how, used[queue], amount))

    @property
    def history(self) -> UsageHistory | None:
        """Past usage of all queues; None where shares do not look back."""
        return UsageHistory(self.usage, self.settings.strength) if self.settings else None

    def elapse(self, now: int) -> None:
        """Count what has been held since the last time."""
        if self.settings is not None and now != self.usage_at:
            elapsed, half_life = now - self.usage_at, self.settings.half_life
            self._used = self._in_use()
            self.usage = [self._accrued(past, n, elapsed, half_life) for n, past in enumerate(self.usage)]
            self.usage_at = now

    def to_write(self) -> dict[str, QueueStatus]:
        """Give the status that is to be written on each queue; nothing where shares do not look back."""
        if self.settings is None:
            return {}
        return {q.name: self._status(number, q) for number, q in enumerate(self.session.queues.queues)}

    def _status(self, number: int, queue: Queue) -> QueueStatus:
        resources = self.session.queues.resources
        usage = {r: u for r, u in zip(resources, self.usage[number], strict=True) if u}
        return replace(queue.status or QueueStatus(), usage=usage, usage_at=self.usage_at)

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
        return self._fairness.session.occupancy.total()

    @cached_property
    def request(self) -> list[tuple[int, ...]]:
        """Allocated and pending, by queue.

        What runs on under notice, and stands for itself no more, still counts, as does what goes now at the end of one:
        it will wait again, as it did in the play-through that decided. Else shares would change by the mere
        announcement.
        """
        session = self._fairness.session
        queues = session.queues
        found = [tuple(map(add, a, p)) for a, p in zip(queues.allocated, queues.pending, strict=True)]
        for task in session.leaving:
            if task.phase is TERMINATING and task.workload.leaf >= 0 and _was_told(session, task):
                for queue in queues.path[task.workload.leaf]:
                    found[queue] = tuple(map(add, found[queue], task.cls.amount))
        return found

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
        return self._allocatable(self.fair)

    @cached_property
    def allocatable_without_history(self) -> list[list[int]]:
        """The same as it is without history."""
        return self.allocatable if self._fairness.history is None else self._allocatable(self.fair_without_history)

    def _allocatable(self, shares: list[list[int]]) -> list[list[int]]:
        queues = self._fairness.session.queues
        return [
            [allocatable_share(m, max(g, 0), f) for m, g, f in zip(most, floor, fair, strict=True)]
            for most, floor, fair in zip(queues.maximum, queues.guaranteed, shares, strict=True)
        ]


def _was_told(session: Session, task: TaskState) -> bool:
    """Whether what terminates is under notice, or was until the present cycle let it go."""
    ends_now = task.terminating_since == session.now and task.model.phase is not TERMINATING
    return task.notice is not None or ends_now
