"""The search for the best set of victims.

Necessary bounds come first. Then a set is found greedily, node by node, and improved by taking apart the few pieces
that matter: all their subsets in order, from the best, until one passes its play-through. Where there are only few
pieces this is exact. Steps are counted, not seconds, so that the same input gives the same plan.
"""

from __future__ import annotations

from itertools import islice, takewhile

from tenure.engine.refusal import Refusal
from tenure.fairness.reclaiming import FULLNESS
from tenure.victims.bounds.room_demand import Mask, RoomDemand
from tenure.victims.candidates.gatherer import VictimCandidates
from tenure.victims.candidates.index import CandidateIndex, sorted_pieces
from tenure.victims.dry_run.dry_runs import DryRuns
from tenure.victims.dry_run.outcome import NO_ROOM, AcceptedSet, to_the_end
from tenure.victims.rules.causes import CauseRules
from tenure.victims.rules.pieces import Piece
from tenure.victims.search.exact import MOST_AROUND, ExactSets
from tenure.victims.search.greedy import GreedySets, Unwanted, prefix
from tenure.victims.search.search_scope import SearchScope
from tenure.victims.search.trials import MOST_IN_VAIN, SearchBudget, SearchResult, SetTrials, first_of, needed
from tenure.victims.search.usable import UsablePieces

EXACT = 12
"""Pieces of which all subsets are looked at."""

AROUND = 8
"""Pieces of which all subsets are looked at where there are more than `EXACT`."""

ATTEMPTS = 6
"""Greedy sets that are tried, each without the workloads for which the one before was refused."""

AHEAD = 4
"""How many times as many where it is asked what a later cycle finds, to which minimum runtimes may leave fewer."""

TOLD = 8
"""Queues of which it is said why nothing is taken from them, where nothing is taken from any."""

LARGE = 64
"""Sets beyond this size are cut by room alone, and not improved."""


class VictimSearch:
    """The search of one contender among candidates, of which the ``scope`` says what need not be looked at.

    Why nothing is taken need not be ``told`` where it is not read.
    """

    def __init__(
        self, dry_runs: DryRuns, rules: CauseRules, candidates: VictimCandidates, scope: SearchScope | None = None,
        most_in_vain: int = MOST_IN_VAIN, *, told: bool = True, within: Mask | None = None,
    ) -> None:  # fmt: skip
        assert rules.contender.step is not None
        self.session = rules.session
        self.dry_runs = dry_runs
        self.rules = rules
        self.candidates = candidates
        self.scope = SearchScope() if scope is None else scope
        self.need = RoomDemand(rules.session, rules.contender.step, within)
        self.usable = UsablePieces(rules, self.need, self.scope)
        self.found = SearchResult(refusals=self.usable.refusals, closed=self.scope.shut)
        self.trials = SetTrials(dry_runs, rules, self.need, self.found, most_in_vain)
        self.told = told
        self.few: list[Piece] = []

    def run(self, budget: SearchBudget) -> SearchResult:
        """Find the best set within the budget."""
        found = self.found
        if self.need.ever():
            found.pieces = self._best(budget)
        if found.pieces is not None:
            found.played = self.trials.outcome(found.pieces)
        return found

    def _best(self, budget: SearchBudget) -> list[Piece] | None:
        if (in_turn := self.rules.in_turn) is not None:
            return first_of(self.trials, in_turn(filter(self.usable.wanted, self.candidates.all())), budget)
        first = self._first_alone(budget) if self.need.tasks == 1 else None
        if first is not None or self.found.closed or not self._choose():
            return first
        best = None
        if self.trials.many or budget.left < 1 << len(self.few):
            best = self._greedy(budget)
            if best is None and self.scope.others:  # the few that are taken apart have no room for all of them
                self.found.cut = True
                return None
        best = self._taken_apart(best, budget)
        return None if best is None else sorted_pieces(best)

    def _taken_apart(self, best: list[Piece] | None, budget: SearchBudget) -> list[Piece] | None:
        """Give the best of all subsets of the pieces that matter, ``best`` being the best that is known."""
        found = self.found
        sets = ExactSets(self.trials, self.scope, self._core(best), budget)
        pieces, beyond = sets.best(best), sets.subsets.beyond
        if self.told and beyond is not None and not (pieces or found.refusals or budget.hit):
            self.trials.play(beyond)  # to say why nothing is taken
        if (self.trials.many or sets.gave_up) and self.rules.cause == "consolidate":
            most, key = None if pieces is None else sets.key(pieces), sets.subsets.key
            may_do = (p for p in self.trials.alike.first_of_each(self.pool.ordered()) if self.trials.may_do([p]))
            first = takewhile(lambda p: most is None or key([p], None) < most, islice(may_do, MOST_AROUND))
            if one := next(filter(None, (self._alone(piece, budget) for piece in first)), None):
                pieces = sets.lower_inside(one) or one  # the very first may have no place to go to, and one does
            found.cut = found.cut and pieces is None
        return pieces

    def _choose(self) -> bool:
        """See what there is to choose from; False if nothing."""
        beyond = self.candidates.beyond is not None
        among = (p for c in self.candidates.candidate_leaves for p in c.all() if self.scope.allows(p))
        several = beyond or len(list(islice(among, EXACT + 1))) > EXACT
        usable = self.usable.could_serve if several else self.usable.wanted_and_allowed
        self.usable.told = self.told or not several
        self.pool = CandidateIndex(self.session, self.candidates, usable, self.usable.refused)
        self.few = list(islice(self.pool.ordered(), EXACT + 1))
        self.trials.many = len(self.few) > EXACT or beyond
        return bool(self.few)

    def tell(self, candidates: VictimCandidates) -> None:
        """Where what is allowed makes no room, ask about a few others, one of each queue, to say why not these.

        Those are asked that free something where a task could go; if there are none, any.
        """
        if not self.need.ever():
            return
        barred: dict[int, Piece] = {}
        useful: dict[int, Piece] = {}
        some_allowed = False
        for piece in candidates.all():
            leaf = piece.workload.leaf
            if self.scope.allows(piece):
                some_allowed = True
                continue
            barred.setdefault(leaf, piece)
            if leaf not in useful and self.usable.wanted(piece):
                useful[leaf] = piece
            if len(useful) == TOLD:
                break
        if not useful and not some_allowed:
            useful = barred
        for piece in list(useful.values())[:TOLD]:
            self.trials.play([piece])

    def _first_alone(self, budget: SearchBudget) -> list[Piece] | None:
        """The first piece of all, if it will do: no set comes before it."""

        def alone(piece: Piece | None) -> list[Piece] | None:
            may_do = piece is not None and self.usable.wanted(piece) and self.trials.may_do([piece])
            return self._alone(piece, budget) if piece is not None and may_do else None

        piece = self.candidates.first()
        found = alone(piece)
        if found is not None or (piece is not None and self.scope.allows(piece)):
            return found
        return alone(self.candidates.first(self.scope.allows))

    def _alone(self, piece: Piece, budget: SearchBudget) -> list[Piece] | None:
        """One piece of use that frees enough, if it will do."""
        if not budget.spend():
            return None
        verdict = self.trials.play([piece], enough=to_the_end)
        return [piece] if isinstance(verdict, AcceptedSet) and not self.trials.follows([piece]) else None

    def _core(self, best: list[Piece] | None) -> list[Piece]:
        """The pieces that are taken apart: all if they are few, else those of the set found and the first others."""
        returns = self.trials.returns
        if not self.trials.many:
            return self.few
        if best is None:
            return [p for p in self.few if not returns(p)][:AROUND]
        if len(best) >= AROUND:
            return []
        chosen = dict.fromkeys(best)
        remaining = [p for node in dict.fromkeys(n for p in best for n, _ in p.frees) for p in self.pool.at(node)]
        others = sorted_pieces([p for p in dict.fromkeys(remaining) if p not in chosen and not returns(p)])
        chosen.update(dict.fromkeys(others[: (AROUND - len(best)) // 2]))
        more = (p for p in self.pool.ordered() if p not in chosen and not returns(p))
        return sorted_pieces([*chosen, *islice(more, AROUND - len(chosen))])

    # -- greedy -----------------------------------------------------------------------------------------------------

    def _greedy(self, budget: SearchBudget) -> list[Piece] | None:
        """The first of the greedy sets that pays, with what it does not need given back."""
        greedy = None
        if len(self.need.parts) == 1:
            greedy = GreedySets(self.need, self.pool, self.rules, self.scope)
            if self.trials.returned:
                greedy.leave_out(self.trials.returns)
        pieces = [] if greedy is not None else list(self.pool.ordered())
        for _ in range(ATTEMPTS):
            chosen = greedy.run() if greedy is not None else prefix(self.need, pieces)
            if not chosen or not budget.spend():
                return None
            verdict = self.trials.play(chosen)
            if isinstance(verdict, AcceptedSet):
                large = self.need.exact and len(chosen) > LARGE
                dearest_first = reversed(sorted_pieces(chosen))
                return chosen if large else needed(self.trials, chosen, budget, dearest_first)
            if not verdict.about:
                if greedy is None or verdict.shield != NO_ROOM or not greedy.also(self.dry_runs.ahead):
                    return None
                continue
            unwanted = self._unwanted(verdict)
            if greedy is not None:
                greedy.leave_out(unwanted)
            else:
                pieces = [p for p in pieces if not unwanted(p)]
        return None

    def _unwanted(self, verdict: Refusal) -> Unwanted:
        """Say what to leave out after a refusal: a workload, or everything of a queue that is not full enough."""
        if verdict.shield == NO_ROOM:
            return self.trials.returns
        if verdict.shield != FULLNESS:
            return lambda piece: piece.workload.key == verdict.about
        path, queue = self.session.queues.path, self.session.queues.index[verdict.about]
        return lambda piece: queue in path[piece.workload.leaf]
