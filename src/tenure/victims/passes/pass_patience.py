"""Whether evictions pay for the contenders of one pass: before the search for each, and of the set that it found."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from math import inf

from tenure.engine.state.workloads import WorkloadState
from tenure.model.values.duration import LAST_TIME
from tenure.shields.longest_wait import LongestWait
from tenure.shields.patience import cheaper_at, falls_of, waits_since
from tenure.victims.bounds.first_payable import first_payable
from tenure.victims.bounds.least_price import PriceBound
from tenure.victims.bounds.room_demand import RoomDemand
from tenure.victims.candidates.gatherer import VictimCandidates
from tenure.victims.passes.contender_search import ContenderSearch
from tenure.victims.passes.unhelped import UnhelpedKinds
from tenure.victims.rules.causes import CauseRules
from tenure.victims.search.trials import SearchResult


class PassPatience:
    """The patience of a pass: contenders whose waiting is not worth a set yet are put off until it may be."""

    def __init__(self, searches: ContenderSearch, unhelped: UnhelpedKinds, order: Iterable[WorkloadState]) -> None:
        self.searches = searches
        self.unhelped = unhelped
        self.session = searches.session
        self.cause = searches.cause
        self.patience = searches.state.plugins.patience
        self.longest_wait = LongestWait(order if self.patience.applies(self.session, self.cause) else (), unhelped.kind)

    def cannot_pay(self, rules: CauseRules) -> bool:
        """Whether even the least that a set could cost is more than what a contender has waited is worth."""
        session, contender, patience = self.session, rules.contender, self.patience
        if not patience.applies(session, self.cause) or self.searches.gatherer.asked_to_be_spared:
            return False
        if contender.step is None or not patience.holds_for(session, self.cause, contender):
            return False
        leaves = None if self.cause != "reclaim" else self.searches.bounds.open_to(contender).leaves
        candidates = self.searches.gatherer.gather(rules, leaves)
        waited, since = session.now - waits_since(contender), self.longest_wait.since(contender)
        bound = PriceBound(RoomDemand(session, contender.step), candidates, waited)
        too_dear = partial(patience.too_dear, session, self.cause, contender, since=since)
        least = bound.least_if_paid(lambda price: too_dear(price) is not None)
        if least == inf:
            return False
        too_dear = partial(too_dear, falls=falls_of(session, candidates.all(), waited))
        not_yet = too_dear(least)
        if not_yet is None:
            return False

        def pays_at(price: float) -> int:
            dear = too_dear(price)
            return session.now if dear is None else dear.again

        cheaper = candidates.times(lambda w: cheaper_at(session, w) or LAST_TIME)
        self.unhelped.put_off(contender, first_payable(bound, cheaper, pays_at, not_yet.again))
        self.unhelped.wake_after(candidates)
        return True

    def pays(self, rules: CauseRules, candidates: VictimCandidates, found: SearchResult) -> bool:
        """Whether a contender's waiting is worth the best set, with what follows from it; say why where it is not.

        It is asked again once any of the ``candidates`` is cheaper: another set may be the best then.
        """
        contender = rules.contender
        if not self.patience.applies(self.session, self.cause):
            return True
        assert found.played is not None
        pieces, follow_ups = found.pieces or (), self.searches.dry_runs.follow_ups(rules, found.played)
        since = self.longest_wait.since(contender)
        not_yet = self.patience.not_yet(self.session, self.cause, contender, pieces, since, follow_ups)
        if not_yet is None:
            return True
        self.searches.state.obstacle(contender.key, not_yet.reason(self.cause, pieces))
        cheaper = (cheaper_at(self.session, w) for w in dict.fromkeys(p.workload for p in candidates.all()))
        self.unhelped.put_off(contender, min([not_yet.again, *(at for at in cheaper if at is not None)]))
        return False
