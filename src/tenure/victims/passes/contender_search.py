"""The search of one cause for one contender after the other: who may give way, what bounds leave, and the best set."""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property, partial

from tenure.engine.plan import Reason
from tenure.engine.serving.allocation import held_back
from tenure.engine.state.workloads import WorkloadState
from tenure.fairness.earlier_contenders import EarlierContenders
from tenure.model.settings import Cause
from tenure.shields.opt_out import may_go
from tenure.victims.bounds.branches import VictimBranches
from tenure.victims.bounds.room_demand import Mask, RoomDemand
from tenure.victims.bounds.victim_bounds import VictimBounds
from tenure.victims.candidates.gatherer import CandidateGatherer
from tenure.victims.dry_run.dry_runs import DryRuns
from tenure.victims.dry_run.outcome import AcceptedSet
from tenure.victims.recording.state import EvictionState
from tenure.victims.rules.causes import CauseRules
from tenure.victims.search.domain_search import search_domains
from tenure.victims.search.search_scope import CheapestScope, GrowingScope, ReclaimScope, SearchScope
from tenure.victims.search.trials import MOST_IN_VAIN, SearchBudget, SearchResult
from tenure.victims.search.victim_search import AHEAD, EXACT, VictimSearch

MOST_BEFORE = 8
"""The most earlier contenders for which a search makes room as well; as many as it has tasks, if these are more."""


class ContenderSearch:
    """The search of one cause for single contenders, on what all of them share.

    ``before`` counts who is served before a contender. ``detailed``: it is read why nothing is evicted for the
    contender that is searched for.
    """

    def __init__(self, state: EvictionState, cause: Cause) -> None:
        self.state = state
        self.session = state.session
        self.cause = cause
        self.detailed = state.detailed
        state.plugins.min_runtime.brief = not state.detailed
        self.shares = state.memory.shares()
        self.bounds = VictimBounds(state.session, self.shares, state.memory.limits, cause)
        self.before: EarlierContenders | None = None
        self._moves_in_vain: dict[WorkloadState, VictimSearch] = {}

    @cached_property
    def dry_runs(self) -> DryRuns:
        """Plays sets through."""
        return self.state.dry_runs(self.shares)

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

    def tell(self, *, detailed: bool) -> None:
        """Find out as much about the next contender as is read: everything, or what decides."""
        self.detailed = self.gatherer.detailed = detailed
        self.state.plugins.min_runtime.brief = not detailed

    def infeasible(self, contender: WorkloadState) -> bool:
        """Whether it is clear beforehand that nothing can be done for a contender now, or would put off a start."""
        assert contender.step is not None
        if self.bounds.infeasible(contender, contender.step):
            return True
        start = self.dry_runs.reserved_start(None) if self.cause == "consolidate" else None
        return start is not None and not start.may_allow(self.session, contender, self.state.endings)

    def may_take_spared(self, contender: WorkloadState, cause: Cause) -> bool:
        """Whether, where nothing else helps, what asked to be spared may be taken: not to move it, nor for surplus."""
        return may_go(cause, contender) and bool(self.gatherer.asked_to_be_spared)

    def best_set(self, rules: CauseRules, budget: SearchBudget, cause: Cause) -> SearchResult:
        """Search for one contender alone, by any action that evicts so; who is served before it is not looked at."""
        if self.cause != "requeue" and self.infeasible(rules.contender):
            return SearchResult()
        return self.searched(rules, budget, cause, alone=True).found

    def searched(self, rules: CauseRules, budget: SearchBudget, cause: Cause, *, alone: bool = False) -> VictimSearch:
        """Search; where nothing else helps, once more among what asked to be spared as well.

        Sets without that are not tried again where they were all seen; the rescheduler's program, which does not give
        up, has seen them. What it may move is looked for among the cheapest of many, too. Where reasons are asked for,
        contenders come here that the bounds exclude: for these nothing is tried.
        """
        contender = rules.contender
        assert contender.step is not None
        begin, domains = partial(self._searching, rules, alone=alone), self.dry_runs.placer.domains(contender.step)
        if cause == "reschedule" and contender in self._moves_in_vain:  # what consolidate may move is the same
            search = self._moves_in_vain[contender]
        elif not alone and self.detailed and self.bounds.infeasible(contender, contender.step):
            search = begin()
        else:
            search = search_domains(begin, domains, budget)
        if alone and cause == "consolidate" and search.found.pieces is None and not budget.hit:
            self._moves_in_vain[contender] = search
        seen = search.found.tried and not (domains or search.trials.many)
        known = bool(seen) and (cause == "reschedule" or not search.found.cut)
        if cause == "reschedule" and search.found.pieces is None and search.trials.many:
            search = search_domains(partial(begin, cheapest=True), domains, budget)
        if search.found.pieces is None and not budget.hit and self.may_take_spared(contender, cause):
            before = search.found
            with self.gatherer.everybody():
                search = search_domains(partial(begin, with_spared=known), domains, budget)
            if known:
                search.found.join(before)
        return search

    def _searching(
        self, rules: CauseRules, *, alone: bool, within: Mask | None = None, cheapest: bool = False,
        with_spared: bool = False,
    ) -> VictimSearch:  # fmt: skip
        """Begin the search for victims of one contender on some nodes, among the candidates that the bounds leave."""
        contender = rules.contender
        scope, near, further = self._scope(contender, alone=alone) if self.cause == "reclaim" else (None, None, ())
        candidates = self.gatherer.gather(rules, near, further)
        scope = CheapestScope(self.session, candidates.all(), EXACT) if cheapest else scope
        patient = alone and self.state.plugins.min_runtime.may_hold(self.session, self.cause, contender.leaf)
        most = MOST_IN_VAIN * AHEAD if patient else MOST_IN_VAIN
        told = self.detailed and not alone
        search = VictimSearch(self.dry_runs, rules, candidates, scope, most, told=told, within=within)
        search.trials.with_spared = with_spared
        return search

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
        assert self.before is not None
        count = self.before.count(contender, None if self.detailed else most)
        direct = {branch.queue: count[branch.mine] for branch in branches if branch.direct}
        found = {queue: others for queue, others in direct.items() if others <= most}
        if direct and not found:
            others = min(direct.values())
            text = f"evictions by {self.cause} would make room for {others} others that are served before it"
            self.state.obstacle(contender.key, Reason("OthersFirst", text, {"cause": self.cause, "others": others}))
        return min(found.values(), default=0), found.keys()

    def as_it_is(self, rules: CauseRules) -> AcceptedSet | None:
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
        played = self.dry_runs.play(rules, ())  # others may get the room first
        return played if isinstance(played, AcceptedSet) else None
