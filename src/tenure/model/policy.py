"""The policy of a cluster: what an administrator decides, apart from the nodes and the workloads it is applied to."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from tenure.model.cluster import Cluster
from tenure.model.device_resources import vendors_apart
from tenure.model.queue import Queue
from tenure.model.settings import BudgetRule, Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Queues, settings and budgets. ``None`` stands for what a source says nothing of: the cluster's own stays.

    ``budgets`` come beside those of the settings, as ``DisruptionBudget`` objects do; ``quota`` has the settings of
    quota preemption that YuniKorn's ``queues.yaml`` sets, by attribute.
    """

    queues: tuple[Queue, ...] | None = None
    settings: Settings | None = None
    budgets: tuple[BudgetRule, ...] | None = None
    quota: dict[str, Any] = field(default_factory=dict)

    def without_queues_on(self, base: Policy) -> Policy:
        """Give this policy with the queues of another, and what that sets of quota preemption, if it has none."""
        return self if self.queues is not None else replace(self, queues=base.queues, quota=base.quota | self.quota)

    def over(self, base: Cluster) -> Cluster:
        """Give a cluster under this policy. What the scheduler wrote on queues stays where their names do."""
        settings = base.settings if self.settings is None else self.settings
        if self.quota:
            settings = replace(settings, quota_preemption=replace(settings.quota_preemption, **self.quota))
        if self.budgets is not None:
            own = self.settings.disruption.budgets if self.settings is not None else ()
            settings = replace(settings, disruption=replace(settings.disruption, budgets=(*own, *self.budgets)))
        queues = base.queues if self.queues is None else _keeping_status(self.queues, base.queues)
        return replace(base, settings=vendors_apart(settings, queues), queues=queues)


def policy_of(cluster: Cluster) -> Policy:
    """Give the policy that a cluster is under."""
    return Policy(queues=cluster.queues, settings=cluster.settings)


def _keeping_status(queues: tuple[Queue, ...], before: tuple[Queue, ...]) -> tuple[Queue, ...]:
    known = {queue.name: queue for queue in before}
    return tuple(
        replace(q, status=q.status or known[q.name].status, created_at=q.created_at or known[q.name].created_at)
        if q.name in known
        else q
        for q in queues
    )
