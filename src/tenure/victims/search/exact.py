"""The best set of a few pieces: all their subsets in order, from the best, until one passes its play-through."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from heapq import heapify, heappop, heappush

from tenure.model.settings import Settings
from tenure.victims.dry_run.outcome import LANDLESS, AcceptedSet, Enough, FollowUp, to_the_end
from tenure.victims.rules.pieces import Piece
from tenure.victims.rules.set_order import Key, Usage, consistent, key_of, lowest_of, usage
from tenure.victims.search.search_scope import SearchScope
from tenure.victims.search.trials import SearchBudget, SetTrials

MOST_TRIED = 512
"""Sets that may be refused, for whatever reason, before the search gives up: all subsets of nine pieces."""

MOST_AROUND = 32
"""Sets around the greedy one, where there are many pieces, that may be refused before the search gives up."""

MOST_WITHOUT = 8
"""The same where nothing was found greedily."""

LEAST = -(1 << 40)
"""Below every priority."""


class PieceSubsets:
    """The subsets of some pieces in order; what is learnt on the way leaves out all that come later and hold it.

    ``beyond`` is the first set that is more than the ``scope`` lets go. ``weights`` are those of resources, by row, and
    ``lowest`` is the lowest priority that could be taken, by queue.
    """

    def __init__(self, settings: Settings, weights: Sequence[int], scope: SearchScope) -> None:
        self.settings = settings
        self.weights = weights
        self.lowest: dict[int, int] = {}
        self.scope = scope
        self.beyond: list[Piece] | None = None
        self._parts: list[frozenset[Piece]] = []

    def usage(self, pieces: Sequence[Piece], leaf: int) -> Usage:
        """Give what some pieces take of which priority inside one queue."""
        return usage(pieces, leaf, self.weights, self.lowest.get(leaf, LEAST))

    def key(self, pieces: list[Piece], alone: int | None, follows: Sequence[int] = ()) -> Key:
        """Order sets, ``follows`` being the costs of what follows.

        Inside one queue (``alone``) what is taken of which priority comes before everything else but what is spared.
        """
        key = key_of(self.settings, pieces, follows)
        return key if alone is None else (key[0], self.usage(pieces, alone), *key[1:])

    def of(self, pieces: list[Piece], alone: int | None) -> Iterator[tuple[Key, list[Piece]]]:
        """Give all subsets in their order."""
        too_much = self.scope.limits(pieces)
        heap: list[tuple[Key, tuple[int, ...]]] = [(self.key([p], alone), (n,)) for n, p in enumerate(pieces)]
        heapify(heap)
        while heap:
            key, numbers = heappop(heap)
            subset = [pieces[n] for n in numbers]
            if self._is_needless(subset):
                continue
            yield key, subset
            for number in range(numbers[-1] + 1, len(pieces)):
                larger = [*subset, pieces[number]]
                if not consistent(larger):
                    continue
                if too_much is not None and too_much(larger):
                    self.beyond = self.beyond or larger
                else:
                    heappush(heap, (self.key(larger, alone), (*numbers, number)))

    def leave_out_larger(self, pieces: list[Piece]) -> None:
        """Leave out every set that holds all of these, and others."""
        self._parts.append(frozenset(pieces))

    def _is_needless(self, pieces: list[Piece]) -> bool:
        """Whether a part of a set is known to do."""
        return bool(self._parts) and any(map(frozenset(pieces).__gt__, self._parts))


class ExactSets:
    """The search among all subsets of some pieces, within a budget.

    A set that pays is not the last word where another one that also pays refuses it (spec: choosing victims), or where
    causes would evict for its victims next: then one after which less follows may come before it. ``paying``: those of
    the sets so far that pay, where all pieces are of one queue; their order is that of what they use there.
    """

    def __init__(self, trials: SetTrials, scope: SearchScope, pieces: list[Piece], budget: SearchBudget) -> None:
        self.trials = trials
        self.pieces = pieces
        self.budget = budget
        self.others = scope.others
        self.subsets = PieceSubsets(trials.rules.session.settings, trials.dry_runs.weights, scope)
        self.subsets.lowest = lowest_of(pieces)
        leaves = set(self.subsets.lowest)
        self.alone = leaves.pop() if len(leaves) == 1 and scope.by_priority else None
        self.gave_up = False
        self.paying: list[list[Piece]] | None = None if self.alone is None or trials.many or self.others else []

    def best(self, best: list[Piece] | None) -> list[Piece] | None:
        """The best set among all subsets, or ``best`` if none comes before it."""
        trials = self.trials
        if not trials.need.met(self.pieces):
            return best
        if not trials.may_land(self.pieces):
            trials.refuse(self.pieces, LANDLESS)
            return best
        limit = self._limit(best)
        most = trials.found.tried + (MOST_TRIED if not trials.many else MOST_AROUND if best else MOST_WITHOUT)
        for key, subset in self.subsets.of(self.pieces, self.alone):
            if (limit is not None and key >= limit) or self._gives_up(most, best):
                break
            if not self._may_do(subset):
                continue
            if not self.budget.spend():
                return best
            enough = to_the_end if best is None else partial(self._is_no_better, self.key(best), subset)
            if not self._pays(subset, enough):
                continue
            better = self.lower_inside(subset)
            if better is not None:
                best = best or better
            elif not trials.follows(subset):
                first = subset if best is None else min(subset, best, key=self.key)
                return subset if first is subset else self.lower_inside(first) or first
            else:
                self.subsets.leave_out_larger(subset)  # only sets of which no part would do are compared
                best = subset if best is None else min(best, subset, key=self.key)
                limit = self._limit(best)
        return None if best is None else self.lower_inside(best) or best

    def _limit(self, best: list[Piece] | None) -> Key | None:
        """Give the key from which on no set comes before the best one; inside one queue a set with follow-ups has none.

        It refuses none that has no follow-up, whatever is taken of which priority.
        """
        if best is None or (self.alone is not None and self.trials.follows(best)):
            return None
        return self.subsets.key(best, self.alone, self.trials.follows(best))

    def key(self, pieces: list[Piece]) -> Key:
        """Give the order of a set that pays, with what follows from it."""
        return self.subsets.key(pieces, None, self.trials.follows(pieces))

    def _may_do(self, subset: list[Piece]) -> bool:
        """Whether it frees enough; where there are many pieces, those are left aside that had their place back."""
        trials = self.trials
        if trials.with_spared and not any(p.spared for p in subset):
            return False
        if (trials.many and any(map(trials.returns, subset))) or not trials.need.met(subset, self.others):
            return False
        return trials.may_land(subset)

    def _gives_up(self, most: int, best: list[Piece] | None) -> bool:
        """Whether as many sets were tried in vain as may be."""
        over = self.gave_up = self.trials.gives_up(most)
        self.trials.found.cut = over and best is None
        self.paying = None if over else self.paying
        return over

    def _is_no_better(self, best: Key, subset: list[Piece], follow_ups: Sequence[FollowUp]) -> bool:
        """Whether a set from which at least so much follows does not come before the best one."""
        return self.subsets.key(subset, None, [f.cost for f in follow_ups]) >= best

    def _pays(self, subset: list[Piece], enough: Enough) -> bool:
        pays = isinstance(self.trials.play(subset, enough=enough, brief=not self.trials.many), AcceptedSet)
        if pays and self.paying is not None:
            self.paying.append(subset)
        return pays

    def lower_inside(self, chosen: list[Piece]) -> list[Piece] | None:
        """A set that differs from ``chosen`` inside one queue only and uses lower priorities there, if one pays."""
        trials = self.trials
        for leaf in sorted({p.workload.leaf for p in chosen if not p.fresh}):
            own = [p for p in self.pieces if p.workload.leaf == leaf]
            outside = [p for p in chosen if p.workload.leaf != leaf]
            level = self.subsets.usage(chosen, leaf)
            for subset in (s for _, s in self.subsets.of(own, leaf)) if self.paying is None else self.paying:
                if self.subsets.usage(subset, leaf) >= level:
                    if any(p.spared for p in own):  # else they come by what is used of which priority
                        continue
                    break
                candidate = [*outside, *subset]
                if sum(p.spared for p in candidate) > sum(p.spared for p in chosen):
                    break
                if not trials.may_do(candidate):
                    continue
                if not self.budget.spend():
                    return None
                if isinstance(trials.play(candidate), AcceptedSet) and (
                    trials.follows(chosen) or not trials.follows(candidate)
                ):
                    return self.lower_inside(candidate) or candidate
        return None
