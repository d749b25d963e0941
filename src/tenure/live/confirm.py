"""Nothing is evicted on a first look: after a start, or a change of leader, a second cycle has to say the same.

Source: the specification's section on Kubernetes.
"""

from __future__ import annotations

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
        wishes = frozenset(_wish(s, identities) for s in plan.steps if s.action in _DISRUPTING)
        confirmed = self._before is not None and wishes <= self._before
        self.done = self._before is not None and (confirmed or not wishes)
        self._before = wishes
        return plan if confirmed or not wishes else without_evictions(plan)


_DISRUPTING = frozenset({"evict", "notice"})


def without_evictions(plan: Plan) -> Plan:
    """Give a plan without its evictions and without what is promised or noted because of them."""
    steps = [s for s in plan.steps if s.action == "bind"]
    requeue = RequeueOutcome(plan.requeue.nominations, plan.requeue.skipped, rolled_back=plan.requeue.rolled_back)
    return replace(plan, steps=steps, requeue=requeue)


def _wish(step: PlanStep, identities: dict[tuple[str, int], str]) -> Wish:
    pod = identities.get((step.workload, step.task_index), step.task)
    return pod, step.node, step.cause or "", step.beneficiary
