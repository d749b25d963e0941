"""Consolidation: room for a contender by moving what runs, every moved task having a place to land (spec: consolidate).

A move restarts what it moves, so it is refused where victims that reclaim or preempt may take come cheaper.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from tenure.engine.moves import MovePlan, MoveStep
from tenure.engine.plan import Reason
from tenure.engine.refusal import Refusal
from tenure.engine.state.cost import MICRO
from tenure.engine.state.session import Session
from tenure.engine.state.workloads import WorkloadState
from tenure.model.modes import enabled_for
from tenure.victims.bounds.room_demand import room_in_all
from tenure.victims.candidates.gatherer import VictimCandidates
from tenure.victims.passes.contender_search import ContenderSearch
from tenure.victims.passes.preemption_pass import PreemptionPass
from tenure.victims.recording.state import EvictionState
from tenure.victims.rules.causes import CauseRules, ConsolidateRules, PreemptRules, ReclaimEligibility
from tenure.victims.rules.pieces import Piece
from tenure.victims.search.domain_search import search_domains
from tenure.victims.search.trials import SearchBudget, SearchResult
from tenure.victims.search.victim_search import VictimSearch

TOO_MANY = "max-moves"

UNPROVEN = "found by the search that reclaim and preempt share, which proves no bound"


class _Bounded(ConsolidateRules):
    """Moves of so many workloads at most."""

    def __init__(self, session: Session, contender: WorkloadState, most: int) -> None:
        super().__init__(session, contender)
        self.most = most

    def exchange(self, victims: Sequence[WorkloadState]) -> Refusal | None:
        """Refuse more than may still move in this cycle; what was placed in it does not move."""
        moved = sum(any(t.node >= 0 and not t.fresh for t in w.tasks) for w in victims)
        if moved <= self.most:
            return None
        text = f"{moved} workloads would move, and maxConsolidatedWorkloads allows {self.most} more in this cycle"
        return Refusal(TOO_MANY, text)


class ConsolidationPass(PreemptionPass):
    """The pass of consolidate over its contenders; what is found may be refused, and is bounded in number."""

    def __init__(self, state: EvictionState) -> None:
        super().__init__(state, "consolidate", lambda contender, _: _Bounded(state.session, contender, self._left()))

    def _infeasible(self, contender: WorkloadState) -> bool:
        """Whether it is clear beforehand that nothing could be moved for it."""
        return not self._room_in_all(contender) or super()._infeasible(contender)

    def _turn(self, contender: WorkloadState, steps: int) -> bool:
        """Look for moves only while there is room enough in all, of the cluster and of the contender's queues."""
        return self._room_in_all(contender) and super()._turn(contender, steps)

    def _room_in_all(self, contender: WorkloadState) -> bool:
        """Whether more may be moved, and there is room enough in all: a move frees none, in no queue either."""
        step, queues = contender.step, self.session.queues
        if step is None or self._left() <= 0 or queues.over_max(contender.leaf, step.amount) is not None:
            return False
        return room_in_all(self.session, step)

    def _left(self) -> int:
        """How many workloads may still move in this cycle."""
        return self.session.settings.max_consolidated_workloads - len(self.state.moved)

    # -- what is found ----------------------------------------------------------------------------------------------

    def _accept(self, rules: CauseRules, candidates: VictimCandidates, found: SearchResult) -> bool:
        """Refuse what is dearer than what reclaim or preempt would take."""
        price = partial(price_of, self.searches, rules, found)
        if instead := cheaper(self.searches, rules.contender, price, self.state.budget):
            others, pieces = instead
            names = ", ".join(dict.fromkeys(p.workload.key for p in pieces))
            text = f"moving others for it would cost more than {others.cause} from {names}, so nothing is moved"
            self.state.obstacle(rules.contender.key, Reason("CheaperVictims", text, {"cause": self.cause}))
            return False
        return super()._accept(rules, candidates, found)

    def _carry_out(self, rules: CauseRules, candidates: VictimCandidates, found: SearchResult) -> None:
        """Carry the moves out, and list them among the plan's moves as well."""
        plan, cost = self.state.plan, sum(p.cost for p in found.pieces or [])
        before = len(plan.steps)
        super()._carry_out(rules, candidates, found)
        moved = tuple(
            MoveStep(s.workload, s.task, s.node, s.to, "evict-first")
            for s in plan.steps[before:]
            if s.cause == self.cause and s.to is not None
        )
        if moved:
            plan.moves.append(
                MovePlan((rules.contender.key,), "pending", cost / MICRO, 0, None, "greedy", UNPROVEN, (moved,))
            )


def cheaper(
    searches: ContenderSearch, contender: WorkloadState, price: Callable[[], int], budget: SearchBudget
) -> tuple[CauseRules, list[Piece]] | None:
    """Give what reclaim or preempt would take for a contender at less than a ``price``, if there is something."""
    actions = enabled_for(searches.session.settings, "consolidate")
    reclaim = ReclaimEligibility(searches.session, searches.shares, contender) if "reclaim" in actions else None
    preempt = PreemptRules(searches.session, contender) if "preempt" in actions else None
    for others in (reclaim, preempt):
        if others is None or others.contender_may() is not None:
            continue
        begin = partial(VictimSearch, searches.dry_runs, others, searches.gatherer.gather(others))
        domains = [] if contender.step is None else searches.dry_runs.placer.domains(contender.step)
        found = search_domains(begin, domains, budget).found
        if found.pieces is not None and price_of(searches, others, found) < price():
            return others, found.pieces
    return None


def price_of(searches: ContenderSearch, rules: CauseRules, found: SearchResult) -> int:
    """Give the price of a set in millionths of a weighted resource-second, with what follows, where that is asked."""
    judged = None if searches.dry_runs.consequences is None else found.played
    follow_ups = () if judged is None else searches.dry_runs.follow_ups(rules, judged)
    return sum(p.cost for p in (*(found.pieces or ()), *follow_ups))
