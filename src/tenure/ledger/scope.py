"""What a rule of the ledger is about: which evictions, which pods, and when (spec: disruption SLOs)."""

from __future__ import annotations

from tenure.engine.room.labels import selects
from tenure.ledger.entries import EvictionRequest, LedgerPod
from tenure.model.settings import BudgetRule
from tenure.model.values.cron import window_at


class RuleScope:
    """The evictions and pods that a rule is about, and the times at which it is in force.

    ``strict``: see `Rule`.
    """

    def __init__(self, model: BudgetRule, *, strict: bool) -> None:
        self.model = model
        self.strict = strict

    @property
    def counts_pods(self) -> bool:
        """Whether it bounds how many pods are down at a time."""
        return self.model.max_unavailable is not None or self.model.min_available is not None

    def window(self, now: int) -> tuple[int, int | None] | None:
        """Give since when evictions count at ``now``, exclusively, and when the rule rests; None if it rests now."""
        model = self.model
        since = -1 if model.per is None else now - model.per
        if model.schedule is None or model.duration is None:
            return since, None
        opened = window_at(model.schedule, model.duration, model.time_zone, now)
        if opened is None:
            return None
        return (opened[0] - 1 if model.per is None else since), opened[1]

    def covers(self, ask: EvictionRequest) -> bool:
        """Whether an eviction is one of those that it is about."""
        model = self.model
        if model.causes is not None and ask.cause not in model.causes:
            return False
        if model.namespace is not None and ask.namespace != model.namespace:
            return False
        if model.queue is not None:
            queues = ask.queues if model.side == "victim" else ask.for_queues
            if queues is not None and model.queue not in queues:
                return False
        return model.selector is None or selects(model.selector, dict(ask.labels))

    def counts(self, pod: LedgerPod) -> bool:
        """Whether a pod belongs to those of which only so many may be down."""
        if not (self.strict or pod.started):
            return False
        model = self.model
        if model.namespace is not None and pod.workload.partition("/")[0] != model.namespace:
            return False
        if model.queue is not None and model.side == "victim" and model.queue not in pod.queues:
            return False
        return model.selector is None or selects(model.selector, dict(pod.labels))

    def insists(self, ask: EvictionRequest) -> bool:
        """Whether it refuses what is forced as well."""
        return self.strict or (self.model.causes is not None and ask.cause in self.model.causes)
