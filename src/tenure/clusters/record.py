"""What an adapter writes down of an eviction, and of its own faults."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

from tenure.engine.plan import Plan, PlanStep
from tenure.engine.state.cost import lost_amounts
from tenure.model.cluster import Eviction
from tenure.model.settings import Settings
from tenure.model.workload import Phase, Workload

BROKEN: Final = "Broken"
"""Reason of a failed write whose fault is this process's own."""


def logged(step: PlanStep, workloads: Mapping[str, Workload], now: int, settings: Settings) -> Eviction:
    """Give an eviction with everything that budgets will ask about it once its workload has gone."""
    victim = workloads[step.workload]
    beneficiary = workloads.get(step.beneficiary or "")
    spec = victim.tasks[step.task_index].spec
    return Eviction(
        at=now, workload=step.workload, task=step.task, cause=step.cause or "", beneficiary=step.beneficiary,
        from_node=step.node, to_node=step.to, labels=dict(spec.labels), queue=victim.queue,
        beneficiary_queue=None if beneficiary is None else beneficiary.queue,
        lost=lost_amounts(spec, step.lost, settings) if step.lost > 0 else None,
    )  # fmt: skip


def times_evicted(plan: Plan, workloads: Mapping[str, Workload], span: int) -> dict[str, int]:
    """Give how often each workload of which a plan evicts all that runs was evicted, this time included.

    After ``span`` (µs) it is forgotten, see `tenure.model.workload.remembered`.
    """
    gone = Counter(step.workload for step in plan.steps if step.action == "evict")
    return {
        key: workloads[key].times_evicted(plan.now, span) + 1
        for key, count in gone.items()
        if count >= sum(t.phase in _RUNNING for t in workloads[key].tasks)
    }


_RUNNING: Final = (Phase.BOUND, Phase.RUNNING)
