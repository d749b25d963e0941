"""Contenders take turns: each gets a few steps of the search, those that need more get them when all had theirs.

So one that cannot be helped does not starve the others, and a bound that is hit is hit fairly.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import cached_property, partial
from math import inf

from tenure.engine.memo import Memo
from tenure.engine.plan import Reason
from tenure.engine.serving.allocation import held_back
from tenure.engine.state.workloads import WorkloadState
from tenure.fairness.current import CurrentShares
from tenure.fairness.earlier_contenders import EarlierContenders
from tenure.model.settings import Cause
from tenure.model.values.readable import weighted_hours
from tenure.shields.delay import delay, told
from tenure.shields.longest_wait import LongestWait
from tenure.shields.opt_out import may_go
from tenure.shields.patience import falls_of, waits_since
from tenure.victims.bounds.branches import VictimBranches
from tenure.victims.bounds.least_price import PriceBound
from tenure.victims.bounds.room_demand import RoomDemand
from tenure.victims.bounds.victim_bounds import VictimBounds
from tenure.victims.candidates.gatherer import CandidateGatherer, VictimCandidates
from tenure.victims.dry_run.dry_runs import DryRuns
from tenure.victims.dry_run.outcome import AcceptedSet, FollowUp
from tenure.victims.passes.no_effect import NoEffect
from tenure.victims.passes.unhelped import UnhelpedKinds
from tenure.victims.recording.explanations import considered_of
from tenure.victims.recording.record import Price, prices, record
from tenure.victims.recording.state import EvictionState
from tenure.victims.rules.causes import CauseRules
from tenure.victims.rules.pieces import Piece
from tenure.victims.search.search_scope import GrowingScope, ReclaimScope, SearchScope
from tenure.victims.search.trials import MOST_IN_VAIN, SearchBudget, SearchResult
from tenure.victims.search.victim_search import AHEAD, EXACT, VictimSearch

FIRST_TURN = 64
"""Sets that a contender may have tried in its first turn; each further turn gives four times as many."""

EXHAUSTED = "search-exhausted"

MOST_BEFORE = 8
"""The most earlier contenders for which a search makes room as well; as many as it has tasks, if these are more.
"""

MakeRules = Callable[[WorkloadState, CurrentShares], CauseRules]


class PreemptionPass:
    """The pass of one action over all contenders; those ``unhelped`` have no turn.

    ``detailed``: it is read why nothing is evicted for the contender whose turn it is.
    """

    def __init__(self, state: EvictionState, cause: Cause, make_rules: MakeRules) -> None:
        self.state = state
        self.session = state.session
        self.cause = cause
        self.detailed = state.detailed
        state.plugins.min_runtime.brief = not state.detailed
        self.wave = 0 if cause == "consolidate" else None
        self.make_rules = make_rules
        self.shares = state.memory.shares()
        self.bounds = VictimBounds(state.session, self.shares, state.memory.limits, cause)
        self._prepared: tuple[dict[int, str], Price] = {}, {}
        self._served_as_it_is = Memo[None, frozenset[WorkloadState]](
            lambda _: self.dry_runs.served_as_it_is(), lambda _: self.session.epoch
        )
        self.unhelped = UnhelpedKinds(state, cause)

    @cached_property
    def dry_runs(self) -> DryRuns:
        """Plays sets through."""
        return self.state.dry_runs(self.shares)

    def run(self) -> None:
        """Help the contenders that evictions of this cause can help."""
        no_effect, waiting = NoEffect(self.state, self.cause, self.shares), list[WorkloadState]()
        if not no_effect.holds() and (self.state.detailed or self._anyone_may_be_helped()):
            order = self.state.in_order(self.shares)
            if self.cause == "reclaim":
                self.before = EarlierContenders(self.session, self.shares, order)
            patient = self.state.plugins.patience.applies(self.session, self.cause)
            self.longest_wait = LongestWait(order if patient else (), self.unhelped.kind)
            waiting = list(filter(self._may_contend, order))
        if waiting:
            waiting = self._take_turns(waiting)
            self.gatherer.close()
        for workload in waiting:
            text = f"the search for victims by {self.cause} was cut off by search.maxScenarios and goes on next cycle"
            self.state.obstacle(workload.key, Reason("SearchExhausted", text, {"cause": self.cause}))
            self._exhausted(workload)
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

    @cached_property
    def gatherer(self) -> CandidateGatherer:
        """Gathers who may give way."""
        state = self.state
        fresh, detailed = state.fresh(), state.detailed
        holdings, paid = state.memory.holdings, state.settled()
        gatherer = CandidateGatherer(
            self.session, state.plugins, holdings, fresh, state.moved, paid=paid, detailed=detailed, known=state.pieces
        )
        gatherer.whole = state.leaves
        return gatherer

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
        """Whether it is clear beforehand that nothing can be done for a contender now, or would put off a start."""
        assert contender.step is not None
        if self.bounds.infeasible(contender, contender.step):
            return True
        start = self.dry_runs.reserved_start(None) if self.cause == "consolidate" else None
        return start is not None and not start.may_allow(self.session, contender, self.state.endings)

    def _exhausted(self, contender: WorkloadState) -> None:
        """Say that the bound was hit."""
        text = f"{EXHAUSTED}: search.maxScenarios was reached by {self.cause}, for {contender.key} or before"
        if not any(w.startswith(EXHAUSTED) for w in self.state.plan.warnings):
            self.state.plan.warnings.append(text)

    def _may_contend(self, workload: WorkloadState) -> bool:
        """Whether evictions for a workload are allowed at all."""
        state = self.state
        if workload.key in state.evicted:
            return False
        refusal = delay(self.session, workload)
        if refusal is not None:
            state.obstacle(workload.key, told(refusal))
            state.wake_at(refusal.until)
            return False
        return True

    def _turn(self, contender: WorkloadState, steps: int) -> bool:
        """Give a contender its turn; True if it wants another."""
        if contender.step is None or contender.entry is None:
            return False
        self._tell(contender)
        if self.unhelped.has(contender):
            if self.detailed:
                self.unhelped.explain(contender)
            return False
        if not self.detailed and self._infeasible(contender):
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
            self.detailed = contender is about or (about.step is not None and kind(contender) == kind(about))
            self.gatherer.detailed, self.state.plugins.min_runtime.brief = self.detailed, not self.detailed

    def _search(self, rules: CauseRules, steps: int) -> bool:
        """Look for victims; True if the contender wants another turn."""
        state, contender = self.state, rules.contender
        if not self.detailed and self._cannot_pay(rules):
            self.unhelped.exclude(contender)
            return False
        with_spared = self._may_take_spared(contender, self.cause)
        if self.detailed and not with_spared and not (everybody := self.gatherer.gather(rules)):
            self.unhelped.searched(contender, everybody, SearchResult(), detailed=True)
            return False
        granted = min(steps, state.budget.left)
        budget = SearchBudget(granted)
        search = self._searched(rules, budget, self.cause)
        found = search.found
        state.budget.left -= granted - budget.left
        if budget.hit and granted == steps and not found.carried_out:
            return True
        if budget.hit:
            self._exhausted(contender)
        if found.pieces is not None and self._accept(rules, found):
            self._carry_out(rules, search.candidates, found)
            return contender.step is not None
        if budget.hit:
            return True
        self._give_up(rules, search)
        return False

    def _cannot_pay(self, rules: CauseRules) -> bool:
        """Whether even the least that a set could cost is more than what a contender has waited is worth."""
        session, contender, patience = self.session, rules.contender, self.state.plugins.patience
        if not patience.applies(session, self.cause) or self.gatherer.asked_to_be_spared:
            return False
        if contender.step is None or not patience.holds_for(session, self.cause, contender):
            return False
        leaves = None if self.cause != "reclaim" else self.bounds.open_to(contender).leaves
        candidates = self.gatherer.gather(rules, leaves)
        waited = session.now - waits_since(contender)
        bound = PriceBound(RoomDemand(session, contender.step), candidates, waited)
        too_dear = partial(patience.too_dear, session, self.cause, contender, since=self.longest_wait.since(contender))
        least = bound.least_if_paid(lambda price: too_dear(price) is not None)
        not_yet = None if least == inf else too_dear(least, falls=falls_of(session, candidates.all(), waited))
        if not_yet is not None:
            self.unhelped.put_off(contender, not_yet.again)
        return not_yet is not None

    def _may_take_spared(self, contender: WorkloadState, cause: Cause) -> bool:
        """Whether, where nothing else helps, what asked to be spared may be taken: not to move it, nor for surplus."""
        return may_go(cause, contender) and bool(self.gatherer.asked_to_be_spared)

    def best_set(self, rules: CauseRules, budget: SearchBudget, cause: Cause) -> SearchResult:
        """Search for one contender alone, by any action that evicts so; who is served before it is not looked at."""
        if self.cause != "requeue" and self._infeasible(rules.contender):
            return SearchResult()
        return self._searched(rules, budget, cause, alone=True).found

    def _searched(self, rules: CauseRules, budget: SearchBudget, cause: Cause, *, alone: bool = False) -> VictimSearch:
        """Search; where nothing else helps, once more among what asked to be spared as well.

        Where reasons are asked for, contenders come here that the bounds exclude: for these nothing is tried.
        """
        contender, search = rules.contender, self._searching(rules, alone=alone)
        assert contender.step is not None
        if alone or not (self.detailed and self.bounds.infeasible(contender, contender.step)):
            search.run(budget)
        if search.found.pieces is None and not budget.hit and self._may_take_spared(contender, cause):
            with self.gatherer.everybody():
                search = self._searching(rules, alone=alone)
                search.run(budget)
        return search

    def _searching(self, rules: CauseRules, *, alone: bool) -> VictimSearch:
        """Begin the search for victims of one contender, among the candidates that the bounds leave."""
        contender = rules.contender
        at_once = self.wave is None and not self.state.plugins.patience.applies(self.session, self.cause)
        prepare = partial(self._prepare, rules) if at_once and not alone else None
        scope, near, further = self._scope(contender, alone=alone) if self.cause == "reclaim" else (None, None, ())
        candidates = self.gatherer.gather(rules, near, further)
        patient = alone and self.state.plugins.min_runtime.may_hold(self.session, self.cause, contender.leaf)
        most = MOST_IN_VAIN * AHEAD if patient else MOST_IN_VAIN
        told = self.detailed and not alone
        return VictimSearch(self.dry_runs, rules, candidates, scope, prepare, most, told=told)

    def _scope(self, contender: WorkloadState, *, alone: bool) -> tuple[SearchScope, Collection[int], Collection[int]]:
        """Give what reclaim may take for a contender, the leaves that are open at first, and those that may open."""
        branches = self.bounds.open_to(contender)
        if self.state.memory.holdings.at_most(EXACT, branches.leaves):
            return ReclaimScope(branches), branches.leaves, ()
        first: Collection[int] = [branch.queue for branch in branches if branch.direct]
        others, first = (0, first) if alone else self._worth_it(contender, branches)
        scope = GrowingScope(branches, first, others)
        return scope, scope.leaves, set(branches.leaves).difference(scope.leaves)

    def _worth_it(self, contender: WorkloadState, branches: VictimBranches) -> tuple[int, Collection[int]]:
        """Give the branches from which something may be taken at once, but those whose room goes to too many others.

        Beside them, how many others would be served before the contender at least.
        """
        assert contender.step is not None
        most = max(len(contender.step.tasks), MOST_BEFORE)
        count = self.before.count(contender, None if self.detailed else most)
        direct = {branch.queue: count[branch.mine] for branch in branches if branch.direct}
        found = {queue: others for queue, others in direct.items() if others <= most}
        if direct and not found:
            others = min(direct.values())
            text = f"evictions by {self.cause} would make room for {others} others that are served before it"
            self.state.obstacle(contender.key, Reason("OthersFirst", text, {"cause": self.cause, "others": others}))
        return min(found.values(), default=0), found.keys()

    def _give_up(self, rules: CauseRules, search: VictimSearch) -> None:
        """Remember that a search found nothing, and say why where the reasons are read.

        Then candidates of all leaves are gathered: the search was given those alone that the bounds leave.
        """
        candidates = search.candidates
        if self.detailed:
            candidates = self.gatherer.gather(rules)
            if not search.found.refusals and not search.found.closed:
                search.tell(candidates)
        self.unhelped.searched(rules.contender, candidates, search.found, detailed=self.detailed)

    def _accept(self, rules: CauseRules, found: SearchResult) -> bool:
        """Whether the best set is to be carried out: not before the contender's waiting is worth it."""
        contender, patience = rules.contender, self.state.plugins.patience
        if found.carried_out or not patience.applies(self.session, self.cause):
            return True
        pieces, follow_ups = found.pieces or (), self._follow_ups(rules, found)
        since = self.longest_wait.since(contender)
        not_yet = patience.not_yet(self.session, self.cause, contender, pieces, since, follow_ups)
        if not_yet is None:
            return True
        self.state.obstacle(contender.key, not_yet.reason(self.cause, pieces))
        self.unhelped.put_off(contender, not_yet.again)
        return False

    def _price(self, rules: CauseRules, found: SearchResult) -> int:
        """Give the price of the best set with all that follows from it, in millionths of a weighted resource-second."""
        return sum(p.cost for p in (*(found.pieces or ()), *self._follow_ups(rules, found)))

    def _follow_ups(self, rules: CauseRules, found: SearchResult) -> Sequence[FollowUp]:
        """Give all that follows from the best set."""
        played = found.played
        assert played is not None
        return self.dry_runs.follow_ups(rules, played)

    def _fits_as_it_is(self, rules: CauseRules) -> bool:
        """Serve a contender for which there is room by now; nothing is taken for it."""
        if (played := self.as_it_is(rules, keep=True)) is None:
            return False
        record(self.state, played, {}, self.cause, rules.contender, lambda _, __: "")
        self.gatherer.leave({t.workload for t in played.placed})
        self.unhelped.clear()
        return True

    def as_it_is(self, rules: CauseRules, *, keep: bool = False) -> AcceptedSet | None:
        """Give what serves a contender for which there is room by now, if there is."""
        session, contender, step = self.session, rules.contender, rules.contender.step
        assert step is not None
        known = step.shape is not None and step.shape.failed == session.epoch
        if known or session.settings.backfill == "easy" or held_back(session, contender, step):
            return None
        if not RoomDemand(session, step).met(()):
            if step.shape is not None:
                step.shape.failed = session.epoch
            return None
        is_next = contender in self._served_as_it_is(None)
        played = self.dry_runs.play(rules, (), keep=keep) if is_next else None
        return played if isinstance(played, AcceptedSet) else None

    def _carry_out(self, rules: CauseRules, candidates: VictimCandidates, found: SearchResult) -> None:
        """Carry the best set out on the session, and write it into the plan."""
        contender, pieces, played = rules.contender, found.pieces or [], found.played
        assert played is not None
        if played.undone is not None:
            self._prepare(rules, pieces)
            self.dry_runs.carry_out(contender, played)
        why, price = self._prepared
        considered = considered_of(candidates, found, pieces if self.detailed else None)

        def reason(workload: WorkloadState, cost: float) -> str:
            return (
                f"{workload.key} gives way to {contender.key} ({self.cause}): {why[workload.leaf]}; "
                f"the eviction costs {weighted_hours(cost)}; {considered}"
            )

        record(self.state, played, price, self.cause, contender, reason, wave=self.wave)
        if self.wave is not None:
            self.state.moved.update(p.workload.key for p in pieces if not p.fresh)
        self.gatherer.forget(p.workload for p in pieces)
        self.gatherer.leave({t.workload for t in played.placed} - {p.workload for p in pieces})
        self.unhelped.clear()
        self.dry_runs.changed.update(self.session.waiting.compact())

    def _prepare(self, rules: CauseRules, pieces: list[Piece]) -> None:
        """Note, before a set is taken, what allows it and what it costs."""
        victims: dict[int, WorkloadState] = {}
        for piece in pieces:
            victims.setdefault(piece.workload.leaf, piece.workload)
        why = {leaf: rules.why(victim) for leaf, victim in victims.items()}
        real = [p for p in pieces if not p.fresh]
        self._prepared = why, prices(self.state, real, self.cause, rules.contender)
