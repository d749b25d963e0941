"""Follow-ups: what enabled causes would evict or move next for victims that wait."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from tenure.engine.serving.nominations import kind_of
from tenure.engine.state.session import Session
from tenure.engine.state.workloads import WorkloadState
from tenure.victims.aftermath.ahead import SearchesAhead
from tenure.victims.aftermath.asked import MOST_ASKED, MOST_STEPS, Asked, AskedWorkloads, asks_for_more
from tenure.victims.dry_run.outcome import Enough, FollowUp, to_the_end
from tenure.victims.search.trials import SearchBudget, SearchResult

MOST_HELPED = 16
"""The most victims of one set, or of a plan, for which a follow-up is searched, of those that do not stand alike."""


class FollowUpSearch:
    """The search for what would be done for victims, in a state that is looked ahead at.

    ``sets`` are those that were found last, one for each victim that is helped.
    """

    def __init__(self, searches: SearchesAhead, asked: AskedWorkloads) -> None:
        self.searches = searches
        self.ahead = searches.ahead
        self.asked = asked
        self.session = searches.state.session
        self.fairness = searches.state.fairness
        self.sets: list[SearchResult] = []
        self._helped: set[int] = set()

    def of(self, helped: Iterable[Asked], enough: Enough = to_the_end) -> tuple[tuple[FollowUp, ...], bool]:
        """Give what would be done for each victim by the first cause that finds something, and whether that is all.

        Of those that stand alike none is helped if one is not. It is not all where what was found is ``enough``; so
        that this is known soon, victims of leaves that were helped before come first.
        """
        by_victim: dict[WorkloadState, list[Asked]] = {}
        for asked in helped:
            by_victim.setdefault(asked.workload, []).append(asked)
        in_vain: set[object] = set()
        found: dict[WorkloadState, list[FollowUp]] = {}
        # what is free goes to the first of those that stand alike, in the order of its leaf
        order = sorted(by_victim, key=lambda v: (v.leaf, *(v.entry or ())[:-1]))
        if len(order) <= MOST_HELPED:
            order.sort(key=lambda v: v.leaf not in self._helped)
        budget, self.sets = SearchBudget(MOST_HELPED), []
        for victim in order:
            if alike(self.session, victim) in in_vain:
                continue
            if not budget.spend():
                break
            first = self._first_set(by_victim[victim])
            if first is None:
                in_vain.add(alike(self.session, victim))
                continue
            found[victim] = [follow_up(*first), *self._as_it_grows(*first)]
            self.sets.append(first[1])
            self._helped.add(victim.leaf)
            if enough([follow_up for each in found.values() for follow_up in each]):
                return tuple(f for victim in by_victim for f in found.get(victim, ())), False
        return tuple(f for victim in by_victim for f in found.get(victim, ())), True

    def _as_it_grows(self, asked: Asked, first: SearchResult) -> list[FollowUp]:
        """Give what would be done for further steps of a victim once what was found for its first has come true."""
        if not asks_for_more(asked.workload):
            return []
        with self.ahead.undone():
            if not self.ahead.carry_out(first):
                return []
            return [follow_up(*pair) for pair in self.growth([asked.workload])]

    def growth(self, growing: Iterable[WorkloadState]) -> Iterator[tuple[Asked, SearchResult]]:
        """Let workloads grow as long as room is made for them; gives who is helped, and by which set, step by step."""
        for workload in islice(growing, MOST_ASKED):
            for _ in range(MOST_STEPS):
                helped = list(self.asked.may_be_helped([workload], self.asked.enabled(""), self.fairness.now()))
                found = self._first_set(helped)
                if found is None and self.ahead.pass_on():
                    found = self._first_set(helped)
                if found is None:
                    break
                yield found
                self.ahead.carry_out(found[1])

    def _first_set(self, helped: Iterable[Asked]) -> tuple[Asked, SearchResult] | None:
        """Give the first cause that finds a set for a workload, and that set."""
        sets = ((asked, self.searches.best_set(asked)) for asked in helped)
        return next((pair for pair in sets if pair[1].pieces), None)


def follow_up(asked: Asked, best: SearchResult) -> FollowUp:
    """Give what a set that was found for a workload would do."""
    pieces = best.pieces or ()
    tasks = tuple(dict.fromkeys(t for p in pieces for t in p.tasks))
    cost, growth = sum(p.cost for p in pieces), sum(p.growth for p in pieces)
    return FollowUp(asked.workload, asked.cause, tasks, cost, growth)


def alike(session: Session, victim: WorkloadState) -> object:
    """Give what victims have in common of which none is helped if one is not: beside a reservation, their ends too."""
    step = victim.step
    assert step is not None
    ends = (victim.started_at, victim.expected) if session.settings.backfill == "easy" else None
    return kind_of(victim, step) if step.shape is not None else victim, ends
