"""Pods that a PodDisruptionBudget has kept for longer than anything may be spared: these are deleted.

The Eviction API keeps a pod for as long as its budget allows nothing, and who may write pods may write such a budget.
So it spares for no longer than any other request to be spared (`maxOptOut`). What the budget allows is taken from what
Kubernetes itself wrote on it.
"""

from __future__ import annotations

from collections.abc import Mapping

from tenure.clusters.kubernetes import api
from tenure.clusters.kubernetes.cache.informers import InformerCache
from tenure.clusters.kubernetes.cache.pod_records import PodRecord
from tenure.clusters.kubernetes.read.budgets import allows_nothing, blocked_since, budget_of
from tenure.engine.plan import PlanStep
from tenure.engine.room.labels import selects
from tenure.model.cluster import Cluster
from tenure.model.opt_out import opt_out_of
from tenure.model.queue import Queue
from tenure.model.workload import Workload

REFUSED_BY_BUDGET = frozenset({429, 500})
"""Answers to an eviction that a budget does not allow, or that several budgets cover."""

_SERVING = frozenset({"reclaim", "preempt", "requeue", "quota"})
"""Causes that serve what is somebody's due; for what only improves a budget is kept for ever."""


class OverdueBudgets:
    """Tells which pods their budgets have kept for too long."""

    def __init__(self, informers: InformerCache) -> None:
        self._informers = informers

    def is_overdue(self, step: PlanStep, pod: PodRecord, workload: Workload, cluster: Cluster) -> bool:
        """Whether nothing but budgets that have allowed nothing for too long keeps a pod from being evicted."""
        if step.cause not in _SERVING:
            return False
        queues = {queue.name: queue for queue in cluster.queues}
        patience = opt_out_of(_upward(workload.queue, queues), cluster.settings)
        start = workload.created_at if workload.started_at is None else workload.started_at
        covering = self._covering(pod)
        if not covering or cluster.now < start + patience:
            return False
        return len(covering) > 1 or all(_is_stuck(item, patience, cluster.now) for item in covering)

    def _covering(self, pod: PodRecord) -> list[api.ApiObject]:
        store = self._informers.objects.get("poddisruptionbudgets")
        items = store.sorted() if store is not None else ()
        found = []
        for item in items:
            if item.metadata.namespace != pod.namespace:
                continue
            budget = budget_of(item, lambda *_: None)
            if budget is not None and selects(budget.selector, pod.labels):
                found.append(item)
        return found


def _is_stuck(item: api.ApiObject, patience: int, now: int) -> bool:
    since = blocked_since(item)
    return allows_nothing(item) or (since is not None and now - since >= patience)


def _upward(name: str, queues: Mapping[str, Queue]) -> list[Queue]:
    """Give a queue and those above it."""
    found: list[Queue] = []
    while name in queues and queues[name] not in found:
        found.append(queues[name])
        name = queues[name].parent or ""
    return found
