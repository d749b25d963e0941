"""Patience: others are evicted for a contender once its waiting is worth what they cost.

What it waits for, in weighted resources, times how long it has waited, times a weight and a factor, has to reach the
price of the set; after ``atMost`` it need not. This is the rule for renting or buying where nobody knows for how long:
who pays rent until it adds up to the price never pays more than twice the best. ``docs/worth.md`` has the bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import mul
from typing import Final, NamedTuple

from tenure.engine.cost import MICRO, SECOND, UNITS, rate, saved_at
from tenure.engine.session import Session
from tenure.engine.workloads import TaskState, WorkloadState
from tenure.model.duration import format_time
from tenure.model.readable import weighted_hours
from tenure.model.settings import Cause, PatienceRule
from tenure.shields.price import repeat_factor

STEPS: Final = 16
"""Where only a bound of the price is known, it is looked at again after this part of the wait so far, or later."""


class NotYet(NamedTuple):
    """Why evictions do not pay yet.

    ``price`` and ``worth`` are in millionths of a weighted resource-second, times in µs since the epoch. They pay at
    ``pays_at`` if nothing is saved until then; ``again`` is when to look again, since something is saved then, or they
    pay.
    """

    price: int
    worth: int
    pays_at: int
    again: int

    @property
    def text(self) -> str:
        """The sentence that `tenure explain` says."""
        return (
            f"the evictions that would make room for it cost {weighted_hours(self.price / MICRO)} and its waiting is "
            f"worth {weighted_hours(self.worth / MICRO)} so far: they pay from {format_time(self.pays_at)} on"
        )


class Patience:
    """The rule, asked about a contender and the price of a set."""

    def applies(self, session: Session, cause: Cause) -> bool:
        """Whether evictions of a cause have to pay for anybody."""
        if cause in session.settings.worth.patience:
            return True
        return any(cause in queue.patience for queue in session.queues.queues)

    def not_yet(
        self, session: Session, cause: Cause, contender: WorkloadState, price: int, tasks: Sequence[TaskState] = ()
    ) -> NotYet | None:
        """Say why a set of ``tasks`` is too dear for what a contender has waited; None where it pays.

        Without them the price is a bound: when to look again is then no sooner than after a part of the wait so far.
        """
        rule = rule_for(session, cause, contender)
        if rule is None or not price:
            return None
        since, now = waits_since(contender), session.now
        latest, each = since + rule.at_most, rule.factor * gain_rate(session, contender)
        worth = round(each * (now - since + rule.ahead) / SECOND * MICRO)
        if now >= latest or worth >= price:
            return None
        dearer = sum(rate(session, t) * repeat_factor(session, t.workload) for t in tasks)
        pays_at = latest
        if each > dearer:
            pays_at = min(latest, now + 1 + round((price - worth) / MICRO * SECOND / (each - dearer)))
        again = min([pays_at, *_next_saves(session, tasks)]) if tasks else max(pays_at, now + (now - since) // STEPS)
        return NotYet(price, worth, pays_at, min(again, latest))


class PatienceOver(Patience):
    """Patience where every wait is taken to be over."""

    def applies(self, session: Session, cause: Cause) -> bool:  # noqa: ARG002  the same for all
        """Give no."""
        return False

    def not_yet(
        self,
        session: Session,  # noqa: ARG002
        cause: Cause,  # noqa: ARG002
        contender: WorkloadState,  # noqa: ARG002
        price: int,  # noqa: ARG002
        tasks: Sequence[TaskState] = (),  # noqa: ARG002
    ) -> NotYet | None:
        """Find that everything pays."""
        return None


def rule_for(session: Session, cause: Cause, contender: WorkloadState) -> PatienceRule | None:
    """Give the rule for a contender: that of its queue or the first above that has one, else the node pool's."""
    for queue in session.above(contender.leaf):
        for patient, rule in queue.patience.items():
            if patient == cause:
                return rule
    return next((rule for patient, rule in session.settings.worth.patience.items() if patient == cause), None)


def waits_since(contender: WorkloadState) -> int:
    """When a contender began to wait: its creation, its last eviction, or, where it wants to grow, its start."""
    return max(contender.created_at, contender.last_evicted_at or 0, contender.started_at or 0)


def gain_rate(session: Session, contender: WorkloadState) -> float:
    """Give what a second of waiting counts: the weighted resources of the next step, times the contender's weight."""
    assert contender.step is not None
    costs, queues = session.settings.disruption.cost, session.queues
    each = [costs.get(name, 0.0) / UNITS.get(name, 1) for name in queues.resources]
    names = {queue.name for queue in session.above(contender.leaf)}
    weights = (
        w.weight
        for w in session.settings.worth.weights
        if (w.queue is None or w.queue in names) and (w.min_priority is None or contender.priority >= w.min_priority)
    )
    amount: float = sum(map(mul, each, contender.step.amount))
    return next(weights, 1.0) * amount


def _next_saves(session: Session, tasks: Iterable[TaskState]) -> list[int]:
    """When the workloads of some tasks save their work next, where that is known: then they are cheaper."""
    found = []
    for workload in dict.fromkeys(t.workload for t in tasks):
        checkpoint = workload.model.checkpoint
        interval = checkpoint.interval if checkpoint is not None else None
        interval = interval or session.settings.disruption.assumed_checkpoint
        if interval and (following := saved_at(session, workload) + interval) > session.now:
            found.append(following)
    return found
