"""What evictions could do for a workload that waits if one obstacle were lifted: the rules themselves are asked."""

from __future__ import annotations

from collections.abc import Collection
from copy import copy
from dataclasses import dataclass

from tenure.engine.serving.placement import may_move
from tenure.engine.state.workloads import WorkloadState
from tenure.explanation.standing_rules import StandingRules
from tenure.model.settings import Cause
from tenure.shields.delay import evicts_never
from tenure.shields.policy import DISABLED, FENCE
from tenure.shields.preemptibility import SHIELD as PREEMPTIBILITY
from tenure.victims.bounds.room_demand import room_in_all
from tenure.victims.rules.causes import PRIORITY, CauseRules
from tenure.victims.rules.pieces import held


class EvictionProspects:
    """The prospects of workloads that wait (namespace/name), as a cluster stands after a cycle.

    Victims are looked at one by one, by what the rules say of them and what does not end by itself. Whether there is
    room without them is not asked: that takes a search.
    """

    def __init__(self, standing: StandingRules) -> None:
        self.standing = standing

    def opens(self, contender: str, cause: Cause, shields: Collection[str], victim: str) -> bool:
        """Whether a victim could go once these shields are lifted from it; what cannot be told here counts as yes."""
        waiting, running = self._waiting(contender), self.standing.session.workloads.get(victim)
        if not _KNOWN.issuperset(shields) or waiting is None or running is None or not running.occupied():
            return True
        return self._could_go(*_otherwise(shields, waiting, running), cause=cause, lifted=shields)

    def priority_of(self, workload: str) -> int:
        """Give the priority of a workload; 0 if there is none of that name."""
        found = self.standing.session.workloads.get(workload)
        return 0 if found is None else found.priority

    def could_take(self, contender: str, cause: Cause, victim: str) -> bool:
        """Whether the rules of a cause and shields let a victim go for a contender."""
        waiting, running = self._waiting(contender), self.standing.session.workloads.get(victim)
        if waiting is None or running is None or waiting is running:
            return False
        return self._could_go(waiting, running, cause=cause)

    def could_evict(self, contender: str, cause: Cause) -> bool:
        """Whether a cause might evict, or move, something for a contender if it acted."""
        waiting = self._waiting(contender)
        if waiting is None or evicts_never(waiting) or (cause == "consolidate" and not self._could_move(waiting)):
            return False
        rules = self.standing.of(cause, waiting)
        running = (w for w in self.standing.session.workloads.values() if w.leaf >= 0 and w.occupied())
        return rules.contender_may() is None and any(
            rules.concerns(w) and self._passes(rules, waiting, w) for w in running if w is not waiting
        )

    def _waiting(self, workload: str) -> WorkloadState | None:
        """Give a workload, if it waits for something that this scheduler places."""
        found = self.standing.session.workloads.get(workload)
        return found if found is not None and found.leaf >= 0 and found.step is not None else None

    def _could_move(self, contender: WorkloadState) -> bool:
        session, step = self.standing.session, contender.step
        return step is not None and may_move(session) and room_in_all(session, step)

    def _could_go(
        self, contender: WorkloadState, victim: WorkloadState, *, cause: Cause, lifted: Collection[str] = ()
    ) -> bool:
        return self._passes(self.standing.of(cause, contender), contender, victim, lifted)

    def _passes(
        self, rules: CauseRules, contender: WorkloadState, victim: WorkloadState, lifted: Collection[str] = ()
    ) -> bool:
        """Whether rules and shields let a victim go, but for shields that are ``lifted`` or end by themselves."""
        session = self.standing.session
        amount = held(session, [t for t in victim.tasks if t.node >= 0])
        refusal = rules.eligible(victim)
        if refusal is not None and refusal.shield in lifted:
            refusal = None
        refusal = refusal or rules.may_take(victim, amount, core=True, owed=[])
        refusal = refusal or self.standing.plugins.filter(session, rules.cause, contender, victim)
        return refusal is None or refusal.until is not None or refusal.core_only


@dataclass(frozen=True, slots=True)
class ProspectsOfOne:
    """The prospects of one workload that waits."""

    prospects: EvictionProspects
    contender: str

    def opens(self, cause: Cause, shields: Collection[str], victim: str) -> bool:
        """Whether a victim could go for it once these shields are lifted from the victim."""
        return self.prospects.opens(self.contender, cause, shields, victim)

    def priority_of(self, victim: str) -> int:
        """Give the priority of a victim."""
        return self.prospects.priority_of(victim)


_KNOWN = frozenset({PRIORITY, PREEMPTIBILITY, DISABLED, FENCE})
"""Shields behind which others are looked at."""


def _otherwise(
    shields: Collection[str], contender: WorkloadState, victim: WorkloadState
) -> tuple[WorkloadState, WorkloadState]:
    """Give contender and victim as they would be without some shields; they themselves stay as they are."""
    other, free = copy(contender), copy(victim)
    if PRIORITY in shields:
        other.priority = victim.priority + 1
    if PREEMPTIBILITY in shields:
        free.fixed = False
    return other, free
