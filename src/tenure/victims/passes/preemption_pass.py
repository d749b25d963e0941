"""Contenders take turns: each gets a few steps of the search, those that need more get them when all had theirs.

So one that cannot be helped does not starve the others, and a bound that is hit is hit fairly.
"""

from __future__ import annotations

from collections.abc import Callable

from tenure.engine.plan import Plan, Reason
from tenure.engine.state.workloads import WorkloadState
from tenure.fairness.current import CurrentShares
from tenure.fairness.earlier_contenders import EarlierContenders
from tenure.model.settings import Cause
from tenure.model.values.readable import weighted_hours
from tenure.shields.delay import delay, told
from tenure.victims.candidates.gatherer import VictimCandidates
from tenure.victims.passes.contender_search import ContenderSearch
from tenure.victims.passes.no_effect import NoEffect
from tenure.victims.passes.pass_patience import PassPatience
from tenure.victims.passes.unhelped import UnhelpedKinds
from tenure.victims.recording.explanations import considered_of
from tenure.victims.recording.record import prices, record
from tenure.victims.recording.state import EvictionState
from tenure.victims.rules.causes import CauseRules
from tenure.victims.search.trials import SearchBudget, SearchResult
from tenure.victims.search.victim_search import VictimSearch

FIRST_TURN = 64
"""Sets that a contender may have tried in its first turn; each further turn gives four times as many."""

EXHAUSTED = "search-exhausted"

MakeRules = Callable[[WorkloadState, CurrentShares], CauseRules]


class PreemptionPass:
    """The pass of one action over all contenders; those ``unhelped`` have no turn."""

    def __init__(self, state: EvictionState, cause: Cause, make_rules: MakeRules) -> None:
        self.state = state
        self.session = state.session
        self.cause = cause
        self.wave = 0 if cause == "consolidate" else None
        self.make_rules = make_rules
        self.searches = ContenderSearch(state, cause)
        self.shares = self.searches.shares
        self.unhelped = UnhelpedKinds(state, cause)

    def run(self) -> None:
        """Help the contenders that evictions of this cause can help."""
        no_effect, waiting = NoEffect(self.state, self.cause, self.shares), list[WorkloadState]()
        if no_effect.holds():
            no_effect.look_again()
        elif self.state.detailed or self._anyone_may_be_helped():
            order = self.state.in_order(self.shares)
            if self.cause == "reclaim":
                self.searches.before = EarlierContenders(self.session, self.shares, order)
            self.patience = PassPatience(self.searches, self.unhelped, order)
            waiting = [w for w in order if _may_contend(self.state, w)]
        if waiting:
            waiting = self._take_turns(waiting)
            self.searches.gatherer.memory.close()
        for workload in waiting:
            text = f"the search for victims by {self.cause} was cut off by search.maxScenarios and goes on next cycle"
            self.state.obstacle(workload.key, Reason("SearchExhausted", text, {"cause": self.cause}))
            _warn_exhausted(self.state.plan, self.cause, workload)
        no_effect.remember(exhausted=bool(waiting))
        known = set(self.state.plan.warnings)
        self.state.plan.warnings += [c for c in self.state.plugins.complaints.values() if c not in known]

    def _take_turns(self, waiting: list[WorkloadState]) -> list[WorkloadState]:
        """Let contenders have their turns; gives those that have none left."""
        turn = FIRST_TURN
        while waiting and self.state.budget.left > 0:
            waiting = [w for w in waiting if self._turn(w, turn)]
            turn *= 4
        return waiting

    def _anyone_may_be_helped(self) -> bool:
        """Whether, by the bounds, a search could find anything for one of them; one stands for all equivalent ones."""
        seen: set[object] = set()
        for entries in self.session.waiting.entries.values():
            for entry in entries:
                workload: WorkloadState = entry[-1]
                if workload.entry is not entry:
                    continue
                kind = self.unhelped.kind(workload)
                if kind not in seen:
                    seen.add(kind)
                    if not self._infeasible(workload):
                        return True
        return False

    def _infeasible(self, contender: WorkloadState) -> bool:
        """Whether it is clear beforehand that nothing can be done for a contender now."""
        return self.searches.infeasible(contender)

    def _turn(self, contender: WorkloadState, steps: int) -> bool:
        """Give a contender its turn; True if it wants another."""
        if contender.step is None or contender.entry is None or contender.key in self.state.evicted:
            return False
        self._tell(contender)
        if self.unhelped.has(contender):
            if self.searches.detailed:
                self.unhelped.explain(contender)
            return False
        if not self.searches.detailed and self._infeasible(contender):
            self.unhelped.exclude(contender)
            return False
        rules = self.make_rules(contender, self.shares)
        asked = contender.step.tasks
        if self._fits_as_it_is(rules):  # what was evicted by this plan has to wait for the next cycle
            return contender.step is not None and contender.step.tasks != asked
        refusal = rules.contender_may()
        if refusal is None:
            return self._search(rules, steps)
        self.state.obstacle(contender.key, Reason("NoRight", refusal.message, {"cause": self.cause}))
        return False

    def _tell(self, contender: WorkloadState) -> None:
        """Find out as much as is read: of one that is asked about and its kind, which share what is found, all."""
        about, kind = self.state.about, self.unhelped.kind
        if about is not None and self.state.detailed:
            alike = about.step is not None and kind(contender) == kind(about)
            self.searches.tell(detailed=contender is about or alike)

    def _search(self, rules: CauseRules, steps: int) -> bool:
        """Look for victims; True if the contender wants another turn."""
        state, contender = self.state, rules.contender
        if not self.searches.detailed and self.patience.cannot_pay(rules):
            self.unhelped.exclude(contender)
            return False
        with_spared = self.searches.may_take_spared(contender, self.cause)
        if self.searches.detailed and not with_spared and not (everybody := self.searches.gatherer.gather(rules)):
            self.unhelped.searched(contender, everybody, SearchResult(), detailed=True)
            return False
        granted = min(steps, state.budget.left)
        budget = SearchBudget(granted)
        search = self.searches.searched(rules, budget, self.cause)
        found = search.found
        state.budget.left -= granted - budget.left
        if budget.hit and granted == steps:
            return True
        if budget.hit:
            _warn_exhausted(state.plan, self.cause, contender)
        if found.pieces is not None and self._accept(rules, search.candidates, found):
            self._carry_out(rules, search.candidates, found)
            return contender.step is not None
        if budget.hit:
            return True
        self._give_up(rules, search)
        return False

    def _give_up(self, rules: CauseRules, search: VictimSearch) -> None:
        """Remember that a search found nothing, and say why where the reasons are read.

        Then candidates of all leaves are gathered: the search was given those alone that the bounds leave.
        """
        candidates = search.candidates
        if self.searches.detailed:
            candidates = self.searches.gatherer.gather(rules)
            if not search.found.refusals and not search.found.closed:
                search.tell(candidates)
        self.unhelped.searched(rules.contender, candidates, search.found, detailed=self.searches.detailed)

    def _accept(self, rules: CauseRules, candidates: VictimCandidates, found: SearchResult) -> bool:
        """Whether the best set is to be carried out: not before the contender's waiting is worth it."""
        return self.patience.pays(rules, candidates, found)

    def _fits_as_it_is(self, rules: CauseRules) -> bool:
        """Serve a contender for which there is room by now; nothing is taken for it."""
        if (played := self.searches.as_it_is(rules)) is None:
            return False
        self.searches.dry_runs.carry_out(rules.contender, played)
        record(self.state, played, {}, self.cause, rules.contender, lambda _, __: "")
        self.searches.gatherer.memory.leave({t.workload for t in played.placed})
        self.unhelped.clear()
        return True

    def _carry_out(self, rules: CauseRules, candidates: VictimCandidates, found: SearchResult) -> None:
        """Carry the best set out on the session, and write it into the plan."""
        contender, pieces, played = rules.contender, found.pieces or [], found.played
        assert played is not None
        first = {piece.workload.leaf: piece.workload for piece in reversed(pieces)}
        why = {leaf: rules.why(victim) for leaf, victim in first.items()}
        price = prices(self.state, [p for p in pieces if not p.fresh], self.cause, contender)
        self.searches.dry_runs.carry_out(contender, played)
        considered = considered_of(candidates, found, pieces if self.searches.detailed else None)

        def reason(workload: WorkloadState, cost: float) -> str:
            return (
                f"{workload.key} gives way to {contender.key} ({self.cause}): {why[workload.leaf]}; "
                f"the eviction costs {weighted_hours(cost)}; {considered}"
            )

        record(self.state, played, price, self.cause, contender, reason, wave=self.wave)
        if self.wave is not None:
            self.state.moved.update(p.workload.key for p in pieces if not p.fresh)
        self.searches.gatherer.memory.forget(p.workload for p in pieces)
        self.searches.gatherer.memory.leave({t.workload for t in played.placed} - {p.workload for p in pieces})
        self.unhelped.clear()
        self.searches.dry_runs.changed.update(self.session.waiting.compact())


def _may_contend(state: EvictionState, workload: WorkloadState) -> bool:
    """Whether evictions for a workload are allowed at all."""
    if workload.key in state.evicted or workload.key in state.given_up:
        return False
    refusal = delay(state.session, workload)
    if refusal is not None:
        state.obstacle(workload.key, told(refusal))
        state.wake_at(refusal.until)
        return False
    return True


def _warn_exhausted(plan: Plan, cause: Cause, contender: WorkloadState) -> None:
    """Say that the bound was hit."""
    text = f"{EXHAUSTED}: search.maxScenarios was reached by {cause}, for {contender.key} or before"
    if not any(w.startswith(EXHAUSTED) for w in plan.warnings):
        plan.warnings.append(text)
