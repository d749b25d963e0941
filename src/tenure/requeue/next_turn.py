"""The rules of requeue in a scenario: what runs past its expectation now gives way, every cooldown being over."""

from __future__ import annotations

from tenure.engine.queues import Amount
from tenure.engine.refusal import Refusal
from tenure.engine.workloads import WorkloadState
from tenure.requeue.rules import RequeueRules, core_of
from tenure.victims.asked import overdue


class RequeueNext(RequeueRules):
    """The rules for one contender, any of whose candidates may go."""

    def concerns(self, victim: WorkloadState) -> bool:
        """Whether it is overdue as things are."""
        return victim is not self.contender and overdue(self.session, victim)

    def _cooling(self, victim: WorkloadState) -> Refusal | None:  # noqa: ARG002  the cooldown of nobody counts
        return None

    def _asks(self, victim: WorkloadState) -> Amount:
        """Give what a candidate asks for once it is gone."""
        tasks = core_of(victim) or victim.tasks
        return tuple(map(sum, zip(*(t.cls.amount for t in tasks), strict=True)))
