"""Nothing is evicted on a first look: after a start, or a change of leader, a second cycle has to say the same.

Source: the specification's section on Kubernetes.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from tenure.engine.plan import Plan, PlanStep
from tenure.engine.requeued import RequeueOutcome

Wish = tuple[str, str, str, str | None]
"""An eviction that was planned: the pod, the node, the cause, and for whom."""


class Confirmation:
    """The second look: evictions are held back until two cycles planned them; placements are not held."""

    def __init__(self) -> None:
        self._before: frozenset[Wish] | None = None
        self.done = False

    def of(self, plan: Plan, identities: dict[tuple[str, int], str]) -> Plan:
        """Give what of a plan may be carried out now.

        Parameters
        ----------
        plan
            The plan of this cycle.
        identities
            By workload and number of the task, what tells its pod from any other.
        """
        if self.done:
            return plan
        wishes: dict[Set, set[Wish]] = {}
        for step in plan.steps:
            if step.action in _DISRUPTING:
                wishes.setdefault(_set_of(step), set()).add(_wish(step, identities))
        before = self._before
        confirmed = {key for key, own in wishes.items() if before is not None and own <= before}
        self.done = before is not None and len(confirmed) == len(wishes)
        self._before = frozenset().union(*wishes.values())
        return plan if self.done or not wishes else with_evictions_of(plan, confirmed)


_DISRUPTING = frozenset({"evict", "notice"})

Set = tuple[str | None, str]
"""What tells evictions that are carried out together from others: for whom, else whose."""


def with_evictions_of(plan: Plan, confirmed: Collection[Set]) -> Plan:
    """Give a plan with some of its evictions, and with what is promised or noted because of those alone.

    So whoever has other evictions planned in each cycle holds up nobody's but those.
    """
    evicted = {(s.workload, s.task_index) for s in plan.steps if s.action in _DISRUPTING and _set_of(s) in confirmed}
    whom = {beneficiary for beneficiary, _ in confirmed}
    gone = {workload for workload, _ in evicted}

    def goes(step: PlanStep) -> bool:
        if step.action in _DISRUPTING:
            return _set_of(step) in confirmed
        if step.action == "nominate":
            return step.workload in whom or (step.workload, step.task_index) in evicted
        return step.action == "bind"

    told = plan.requeue
    requeue = RequeueOutcome(
        told.nominations,
        told.skipped,
        rolled_back=told.rolled_back,
        not_before={key: at for key, at in told.not_before.items() if key in gone},
        beneficiaries={key: name for key, name in told.beneficiaries.items() if key in gone},
    )
    return replace(plan, steps=[s for s in plan.steps if goes(s)], requeue=requeue)


def _set_of(step: PlanStep) -> Set:
    return (step.beneficiary, "") if step.beneficiary is not None else (None, step.workload)


def _wish(step: PlanStep, identities: dict[tuple[str, int], str]) -> Wish:
    pod = identities.get((step.workload, step.task_index), step.task)
    return pod, step.node, step.cause or "", step.beneficiary
