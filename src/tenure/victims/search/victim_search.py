"""The search for the best set of victims.

Necessary bounds come first. Then a set is found greedily, node by node, and improved by taking apart the few pieces
that matter: all their subsets in order, from the best, until one passes its play-through. Where there are only few
pieces this is exact. Steps are counted, not seconds, so that the same input gives the same plan.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice

from tenure.engine.queues import Amount
from tenure.engine.refusal import Refusal
from tenure.engine.session import Session
from tenure.engine.volume_bound import volume_shortage
from tenure.engine.workloads import WorkloadState
from tenure.fairness.reclaiming import FULLNESS
from tenure.victims.bounds.room_demand import RoomDemand
from tenure.victims.candidates.gatherer import VictimCandidates
from tenure.victims.candidates.index import CandidateIndex, sorted_pieces
from tenure.victims.dry_run.dry_runs import (
    LANDLESS,
    NO_LANDING,
    NO_ROOM,
    AcceptedSet,
    DryRuns,
    Enough,
    FollowUp,
    to_the_end,
)
from tenure.victims.rules.causes import CauseRules
from tenure.victims.rules.pieces import Piece
from tenure.victims.rules.set_order import Key, lowest_of
from tenure.victims.search.greedy import GreedySets, Unwanted, prefix
from tenure.victims.search.returning_victims import ReturningVictims
from tenure.victims.search.search_scope import ScopeBounds
from tenure.victims.search.subsets import PieceSubsets
from tenure.victims.search.usable import UsablePieces

EXACT = 12
"""Pieces of which all subsets are looked at."""

AROUND = 8
"""Pieces of which all subsets are looked at where there are more than `EXACT`."""

ATTEMPTS = 6
"""Greedy sets that are tried, each without the workloads for which the one before was refused."""

MOST_IN_VAIN = 32
"""Sets that may be played through to the end without the contender getting a place, before the search gives up."""

AHEAD = 4
"""How many times as many where it is asked what a later cycle would find: that may choose among fewer pieces."""

MOST_TRIED = 512
"""Sets that may be refused, for whatever reason, before the search gives up: all subsets of nine pieces."""

MOST_AROUND = 32
"""Sets around the greedy one, where there are many pieces, that may be refused before the search gives up."""

MOST_WITHOUT = 8
"""The same where nothing was found greedily."""

TOLD = 8
"""Queues of which it is said why nothing is taken from them, where nothing is taken from any."""

LARGE = 64
"""Sets beyond this size are cut by room alone, and not improved."""


@dataclass(slots=True)
class SearchBudget:
    """The number of sets that may still be tried; ``hit`` says that it was not enough."""

    left: int
    hit: bool = False

    def spend(self) -> bool:
        """Take one step; False if there is none left."""
        if self.left <= 0:
            self.hit = True
            return False
        self.left -= 1
        return True


@dataclass(slots=True)
class SearchResult:
    """The result for one contender: the best set, if any, and what the search saw.

    ``played`` is what the set does; it may have been carried out already, because nothing could come before it.
    ``closed``: nothing was searched for, because nothing may be taken to begin with. ``cut``: nothing was found among
    as many sets as may be tried in vain, and there are others.
    """

    pieces: list[Piece] | None = None
    played: AcceptedSet | None = None
    tried: int = 0
    refusals: list[tuple[str, Refusal]] = field(default_factory=list)
    closed: bool = False
    cut: bool = False

    @property
    def carried_out(self) -> bool:
        """Whether the session is as the set leaves it."""
        return self.played is not None and self.played.undone is None


class VictimSearch:
    """The search of one contender among candidates, of which ``reach`` says what need not be looked at.

    ``prepare`` is told a set of which it is clear beforehand that it is the last word: if it pays, it stays carried
    out. Without it nothing ever does.
    """

    def __init__(
        self,
        session: Session,
        dry_runs: DryRuns,
        contender: WorkloadState,
        rules: CauseRules,
        candidates: VictimCandidates,
        prepare: Callable[[list[Piece]], None] | None = None,
        reach: ScopeBounds | None = None,
    ) -> None:
        assert contender.step is not None
        self.session = session
        self.dry_runs = dry_runs
        self.contender = contender
        self.rules = rules
        self.need = RoomDemand(session, contender.step)
        self.candidates = candidates
        self.few: list[Piece] = []
        self.many = False
        self.prepare = prepare
        self.allowed = reach.allowed if reach is not None else None
        self.opening = reach.opening if reach is not None else None
        self.others = reach.others if reach is not None else 0
        self.subsets = PieceSubsets(session.settings, dry_runs.weights, reach.limits if reach is not None else None)
        self.infeasible: Callable[[], bool] = bool
        self.found = SearchResult()
        self._without_effect = 0
        self.most_in_vain = MOST_IN_VAIN
        self._back: set[WorkloadState] = set()
        self._verdicts: dict[frozenset[Piece], AcceptedSet | Refusal] = {}
        self.returning = ReturningVictims(session, contender)
        self.usable = UsablePieces(session.queues, contender, self.need, rules, self.allowed, self.found.refusals)

    def run(self, budget: SearchBudget) -> SearchResult:
        """Find the best set within the budget."""
        found = self.found
        if not self.need.ever():
            return found
        if self.need.tasks == 1 and (first := self._first_alone(budget)) is not None:
            found.pieces, found.played = first, self._outcome(first)
            return found
        found.closed = self.opening is not None and not self.opening.first
        if infeasible := self.infeasible():
            found.refusals.clear()  # it is not for their sake
        if infeasible or found.closed or not self._choose():
            return found
        best = None
        if self.many or budget.left < 1 << len(self.few):
            best = self._greedy(budget)
            if found.carried_out:
                found.pieces = best
                return found
            if best is None and self.others:  # the few that are taken apart have no room for all of them
                found.cut = True
                return found
        found.pieces = self._exact(self._core(best), best, budget)
        if found.pieces is None and self.many and self.rules.cause == "consolidate":
            moves = (self._alone(piece, budget) for piece in islice(self.pool.ordered(), MOST_AROUND))
            found.pieces = next(filter(None, moves), None)  # the very first may have no place to go to, and one does
            found.cut = found.cut and found.pieces is None
        if found.pieces is not None:
            found.pieces = sorted_pieces(found.pieces)
            found.played = self._outcome(found.pieces)
        return found

    def _outcome(self, pieces: list[Piece]) -> AcceptedSet:
        """Give what a set that pays does."""
        verdict = self._verdicts[frozenset(pieces)]
        assert isinstance(verdict, AcceptedSet), verdict
        return verdict

    def _choose(self) -> bool:
        """See what there is to choose from; False where that could not make room at all."""
        allowed = self.allowed
        self.pool = CandidateIndex(self.session, self.candidates, self.usable.wanted_and_allowed)
        among = self.candidates.all() if allowed is None else filter(allowed, self.candidates.all())
        if self.candidates.beyond is not None or len(list(islice(among, EXACT + 1))) > EXACT:
            self.pool = CandidateIndex(self.session, self.candidates, self.usable.could_serve)
        self.few = list(islice(self.pool.ordered(), EXACT + 1))
        beyond = self.candidates.beyond is not None
        self.many = len(self.few) > EXACT or beyond
        return bool(self.few) and (beyond or self.need.met_by_all(self.candidates.freed(self.session.nodes)))

    def tell(self) -> None:
        """Where what is allowed makes no room, ask about a few others, one of each queue, to say why not these.

        Those are asked that free something where a task could go; if there are none, any.
        """
        if self.allowed is None or not self.need.ever():
            return
        barred: dict[int, Piece] = {}
        useful: dict[int, Piece] = {}
        some_allowed = False
        for piece in self.candidates.all():
            leaf = piece.workload.leaf
            if self.allowed(piece):
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
            self._play([piece])

    def _first_alone(self, budget: SearchBudget) -> list[Piece] | None:
        """The first piece of all, if it will do: no set comes before it."""
        piece = self.candidates.first()
        if piece is not None and (found := self._alone(piece, budget)) is not None:
            return found
        if self.allowed is None or (piece is not None and self.allowed(piece)):
            return None
        piece = self.candidates.first(self.allowed)
        return None if piece is None else self._alone(piece, budget)

    def _alone(self, piece: Piece, budget: SearchBudget) -> list[Piece] | None:
        """One piece, if it will do."""
        if not self.usable.wanted(piece) or not self.need.met([piece]) or not self._may_land([piece]):
            return None
        if not budget.spend():
            return None
        verdict = self._play([piece], last=True, enough=to_the_end)
        return [piece] if isinstance(verdict, AcceptedSet) and not self._follows([piece]) else None

    def _core(self, best: list[Piece] | None) -> list[Piece]:
        """The pieces that are taken apart: all if they are few, else those of the set found and the first others."""
        if not self.many:
            return self.few
        if best is None:
            return [p for p in self.few if not self._returns(p)][:AROUND]
        if len(best) >= AROUND:
            return []
        chosen = dict.fromkeys(best)
        remaining = [p for node in dict.fromkeys(n for p in best for n, _ in p.frees) for p in self.pool.at(node)]
        others = sorted_pieces([p for p in dict.fromkeys(remaining) if p not in chosen and not self._returns(p)])
        chosen.update(dict.fromkeys(others[: (AROUND - len(best)) // 2]))
        more = (p for p in self.pool.ordered() if p not in chosen and not self._returns(p))
        return sorted_pieces([*chosen, *islice(more, AROUND - len(chosen))])

    def _returns(self, piece: Piece) -> bool:
        """Whether it had its place back in a set that was tried, or would return as another did."""
        return piece.workload in self._back or self.returning(piece)

    # -- greedy -----------------------------------------------------------------------------------------------------

    def _greedy(self, budget: SearchBudget) -> list[Piece] | None:
        """The first of the greedy sets that pays, with what it does not need given back."""
        greedy = None
        if len(self.need.parts) == 1:
            greedy = GreedySets(self.session, self.need, self.pool, self.rules, self.opening, self.others)
            if self._back:
                greedy.leave_out(self._returns)
        pieces = [] if greedy is not None else list(self.pool.ordered())
        for _ in range(ATTEMPTS):
            chosen = greedy.run() if greedy is not None else prefix(self.need, pieces)
            if not chosen or not budget.spend():
                return None
            large = self.need.exact and len(chosen) > LARGE
            verdict = self._play(chosen, last=large)
            if isinstance(verdict, AcceptedSet):
                return chosen if large else self._reprieve(chosen, budget)
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
            return self._returns
        if verdict.shield != FULLNESS:
            return lambda piece: piece.workload.key == verdict.about
        path, queue = self.session.queues.path, self.session.queues.index[verdict.about]
        return lambda piece: queue in path[piece.workload.leaf]

    def _reprieve(self, pieces: list[Piece], budget: SearchBudget) -> list[Piece]:
        """Give back, the dearest first, every victim without which the set pays as well."""
        kept = list(pieces)
        for piece in reversed(sorted_pieces(pieces)):
            fewer = [p for p in kept if p is not piece]
            if not fewer or not self.need.met(fewer):
                continue
            if not budget.spend():
                break
            if isinstance(self._play(fewer), AcceptedSet):
                kept = fewer
        return kept

    # -- exact ------------------------------------------------------------------------------------------------------

    def _exact(self, pieces: list[Piece], best: list[Piece] | None, budget: SearchBudget) -> list[Piece] | None:
        """The best set among all subsets, or ``best`` if none comes before it."""
        if not self.need.met(pieces):
            return best
        if not self._may_land(pieces):
            self._refused(pieces, LANDLESS)
            return best
        self.subsets.lowest = lowest_of(pieces)
        leaves = set(self.subsets.lowest)
        alone = leaves.pop() if len(leaves) == 1 else None
        limit = self._limit(best, alone)
        most = self.found.tried + (MOST_TRIED if not self.many else MOST_AROUND if best else MOST_WITHOUT)
        for key, subset in self.subsets.of(pieces, alone):
            if (limit is not None and key >= limit) or self._gives_up(most, best):
                break
            if not self._may_do(subset):
                continue
            if not budget.spend():
                return best
            enough = to_the_end if best is None else partial(self._is_no_better, self._key(best, None) or (), subset)
            if not self._pays(subset, pieces, enough):
                continue
            better = self._lower_inside(pieces, subset, budget)
            if better is not None:
                best = best or better
            elif not self._follows(subset):
                first = min((s for s in (subset, best) if s is not None), key=lambda s: self._key(s, None) or ())
                return subset if first is subset else self._last_word(pieces, first, budget)
            else:
                self.subsets.bar(frozenset(subset), beyond=True)  # only sets of which no part would do are compared
                best = min((s for s in (best, subset) if s is not None), key=lambda s: self._key(s, None) or ())
                limit = self._limit(best, alone)
        return self._last_word(pieces, best, budget)

    def _last_word(self, pieces: list[Piece], best: list[Piece] | None, budget: SearchBudget) -> list[Piece] | None:
        """Give the best set that was found, or one that refuses it; where there is none, ask once more to say why."""
        if best is not None:
            return self._lower_inside(pieces, best, budget) or best
        if self.subsets.beyond is not None and not self.found.refusals:
            self._play(self.subsets.beyond)
        return None

    def _limit(self, best: list[Piece] | None, alone: int | None) -> Key | None:
        """Give the key from which on no set comes before the best one; inside one queue a set with follow-ups has none.

        It refuses none that has no follow-up, whatever is taken of which priority.
        """
        return None if best is None or (alone is not None and self._follows(best)) else self._key(best, alone)

    def _key(self, pieces: list[Piece] | None, alone: int | None) -> Key | None:
        """Give the order of a set that pays, with what follows from it."""
        return None if pieces is None else self.subsets.key(pieces, alone, self._follows(pieces))

    def _may_do(self, subset: list[Piece]) -> bool:
        """Whether it frees enough; where there are many pieces, those are left aside that had their place back."""
        if (self.many and any(map(self._returns, subset))) or not self.need.met(subset, self.others):
            return False
        return self._may_land(subset)

    def _may_land(self, pieces: list[Piece]) -> bool:
        """Whether there may be room for pieces that move as well; where there is none, none is for some of them."""
        if self.rules.cause != "consolidate":
            return True
        moved = list(dict.fromkeys(t for p in pieces for t in p.tasks))
        return volume_shortage(self.session.nodes, moved, self.need.fixed) is None

    def _gives_up(self, most: int, best: list[Piece] | None) -> bool:
        """Whether as many sets were tried in vain as may be."""
        over = self._without_effect > self.most_in_vain or self.found.tried > most
        self.found.cut = over and best is None
        return over

    def _is_no_better(self, best: Key, subset: list[Piece], follow_ups: Sequence[FollowUp]) -> bool:
        """Whether a set from which at least so much follows does not come before the best one."""
        return self.subsets.key(subset, None, [f.cost for f in follow_ups]) >= best

    def _pays(self, subset: list[Piece], among: list[Piece], enough: Enough) -> bool:
        known = frozenset(subset) in self._verdicts
        verdict = self._play(subset, enough=enough)
        if isinstance(verdict, Refusal) and not known:  # else it was asked about in another order
            self._note_barred(subset, verdict, among)
        return isinstance(verdict, AcceptedSet)

    def _note_barred(self, pieces: list[Piece], verdict: Refusal, among: list[Piece]) -> None:
        """Remember what a queue does not let go together: the more is taken from its side, the less it has to give."""
        barring = self.rules.barring(verdict, lambda queue: self._inside(queue, among))
        if barring >= 0:
            path = self.session.queues.path
            self.subsets.bar(frozenset(p for p in pieces if barring in path[p.workload.leaf]))

    def _inside(self, queue: int, among: list[Piece]) -> Amount:
        """Give what some pieces hold together below a queue, at most."""
        path, rows = self.session.queues.path, len(self.session.queues.resources)
        amounts = [p.amount for p in among if queue in path[p.workload.leaf]]
        return tuple(map(sum, zip((0,) * rows, *amounts, strict=True)))

    def _lower_inside(self, pieces: list[Piece], chosen: list[Piece], budget: SearchBudget) -> list[Piece] | None:
        """A set that differs from ``chosen`` inside one queue only and uses lower priorities there, if one pays."""
        for leaf in sorted({p.workload.leaf for p in chosen if not p.fresh}):
            own = [p for p in pieces if p.workload.leaf == leaf]
            outside = [p for p in chosen if p.workload.leaf != leaf]
            level = self.subsets.usage(chosen, leaf)
            for _, subset in self.subsets.of(own, leaf):
                if self.subsets.usage(subset, leaf) >= level:
                    if any(p.spared for p in own):  # else they come by what is used of which priority
                        continue
                    break
                candidate = [*outside, *subset]
                if sum(p.spared for p in candidate) > sum(p.spared for p in chosen):
                    break
                if not self.need.met(candidate) or not self._may_land(candidate):
                    continue
                if not budget.spend():
                    return None
                if isinstance(self._play(candidate), AcceptedSet) and not (
                    not self._follows(chosen) and self._follows(candidate)
                ):
                    return self._lower_inside(pieces, candidate, budget) or candidate
        return None

    def _follows(self, pieces: list[Piece]) -> list[int]:
        """Give the costs of the follow-ups of a set that pays."""
        verdict = self._verdicts.get(frozenset(pieces))
        if not isinstance(verdict, AcceptedSet):
            return []
        if verdict.follow_ups is None:
            self.dry_runs.note_follow_ups(self.contender, verdict, self.rules.cause)
        return [f.cost for f in verdict.follow_ups or ()]

    def _play(self, pieces: list[Piece], *, last: bool = False, enough: Enough | None = None) -> AcceptedSet | Refusal:
        """Play a set through; what was found out about it is kept. ``last``: it is carried out if it pays.

        ``enough``: it is asked what follows from it; where that is asked, ``last`` holds if nothing does.
        """
        brief = enough is not None and not last and not self.many  # nobody learns from who else was in the way
        key = frozenset(pieces)
        verdict = self._verdicts.get(key)
        if verdict is None:
            pieces = sorted_pieces(pieces)  # the rules are asked piece by piece: always in one order
            self.found.tried += 1
            last = last and self.prepare is not None
            if last and self.prepare is not None:
                self.prepare(pieces)
            verdict = self.dry_runs.play(self.contender, pieces, self.rules, keep=last, enough=enough, brief=brief)
            if last and isinstance(verdict, AcceptedSet) and verdict.undone is None:
                self.found.played = verdict
            if isinstance(verdict, Refusal) and verdict.shield == NO_ROOM and (back := self.dry_runs.back):
                verdict = verdict._replace(about=back[0].key)
                self.returning.learn(pieces, back)
                self._back.update(back)
            self._verdicts[key] = verdict
            if isinstance(verdict, Refusal):
                self._without_effect += verdict.shield in (NO_ROOM, NO_LANDING)
                self._refused(pieces, verdict)
        return verdict

    def _refused(self, pieces: list[Piece], refusal: Refusal) -> None:
        self.found.refusals.append((", ".join(dict.fromkeys(p.workload.key for p in pieces)), refusal))
