"""The search for the best set of victims.

Necessary bounds come first. Then a set is found greedily, node by node, and improved by taking apart the few pieces
that matter: all their subsets in order, from the best, until one passes its play-through. Where there are only few
pieces this is exact. Steps are counted, not seconds, so that the same input gives the same plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

from tenure.engine.refusal import Refusal
from tenure.engine.session import Session
from tenure.engine.workloads import WorkloadState
from tenure.fairness.reclaiming import FULLNESS
from tenure.victims.candidates import Candidates
from tenure.victims.choice import Key, consistent, key_of, priorities, uses_lower
from tenure.victims.greedy import Greedy, prefix
from tenure.victims.pieces import Piece, held
from tenure.victims.room import Need, freed_in_all
from tenure.victims.rules import Rules
from tenure.victims.trial import NO_LANDING, NO_ROOM, Played, Trials

EXACT = 12
"""Pieces of which all subsets are looked at."""

AROUND = 8
"""Pieces of which all subsets are looked at where there are more than `EXACT`."""

ATTEMPTS = 8
"""Greedy sets that are tried, each without the workloads for which the one before was refused."""

MOST_IN_VAIN = 32
"""Sets that may be played through to the end without the contender getting a place, before the search gives up."""

MOST_TRIED = 512
"""Sets that may be refused, for whatever reason, before the search gives up: all subsets of nine pieces."""

TOLD = 8
"""Queues of which it is said why nothing is taken from them, where nothing is taken from any."""

LARGE = 64
"""Sets beyond this size are cut by room alone, and not improved."""


LEAST = -(1 << 40)
"""Below every priority."""


@dataclass(slots=True)
class Budget:
    """How many sets may still be tried; ``hit`` says that it was not enough."""

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
class Found:
    """The outcome for one contender: the best set, if any, and what the search saw.

    ``played``: the set has been carried out on the session already, because nothing could come before it.
    """

    pieces: list[Piece] | None = None
    played: Played | None = None
    tried: int = 0
    refusals: list[tuple[str, Refusal]] = field(default_factory=list)


class Search:
    """One contender's search among candidates, of which only those that are ``allowed`` can be part of a set.

    ``prepare`` is told a set of which it is clear beforehand that it is the last word: if it pays, it stays carried
    out. Without it nothing ever does. ``others``: of whom it is asked why nothing is taken, where nothing is allowed.
    """

    def __init__(
        self,
        session: Session,
        trials: Trials,
        contender: WorkloadState,
        rules: Rules,
        candidates: Candidates,
        prepare: Callable[[list[Piece]], None] | None = None,
        allowed: Callable[[Piece], bool] | None = None,
        others: Candidates | None = None,
    ) -> None:
        assert contender.step is not None
        self.session = session
        self.settings = session.settings
        self.trials = trials
        self.contender = contender
        self.rules = rules
        self.need = Need(session, contender.step)
        self.candidates = candidates
        self.pieces: list[Piece] = []
        self.prepare = prepare
        self.allowed = allowed
        self.others = others
        self.found = Found()
        self._in_vain = 0
        self._barred: list[frozenset[Piece]] = []
        self._verdicts: dict[frozenset[Piece], Played | Refusal] = {}
        self._allowed: dict[tuple[int, tuple[bool, ...]], Refusal | None] = {}

    def run(self, budget: Budget) -> Found:
        """Find the best set within the budget."""
        found = self.found
        if not self.need.ever():
            return found
        if self.need.tasks == 1 and (first := self._first_alone(budget)) is not None:
            found.pieces = first
            return found
        self.pieces = self._possible(self.candidates.all())
        self.pieces = [p for p in self.pieces if self._could_serve(p)]
        if not self.pieces or not self.need.met_by_all(freed_in_all(self.session.nodes, self.pieces)):
            return found
        best = None
        if len(self.pieces) > EXACT or budget.left < 1 << len(self.pieces):
            best = self._greedy(budget)
            if found.played is not None:
                found.pieces = best
                return found
        found.pieces = self._exact(self._core(best), best, budget)
        if found.pieces is not None:
            order = {p: n for n, p in enumerate(self.pieces)}
            found.pieces.sort(key=order.__getitem__)
        return found

    def _first_alone(self, budget: Budget) -> list[Piece] | None:
        """The first piece of all, if it will do: no set comes before it."""
        piece = self.candidates.first()
        if piece is not None and (found := self._alone(piece, budget)) is not None:
            return found
        if piece is None or self.allowed is None or self.allowed(piece):
            return None
        piece = next(filter(self.allowed, self.candidates.all()), None)
        return None if piece is None else self._alone(piece, budget)

    def _alone(self, piece: Piece, budget: Budget) -> list[Piece] | None:
        """One piece, if it will do."""
        if not self._could_serve(piece) or not self.need.met([piece]) or not budget.spend():
            return None
        return [piece] if isinstance(self._play([piece], last=True), Played) else None

    def _possible(self, pieces: list[Piece]) -> list[Piece]:
        """Those that the bounds do not exclude; where they exclude everything, a few are asked about to say why."""
        if self.allowed is None:
            return list(pieces)
        found = [p for p in pieces if self.allowed(p)]
        if not found and self.others is not None:
            leaves: dict[int, Piece] = {}
            for piece in self.others.all():
                leaves.setdefault(piece.workload.leaf, piece)
            for piece in list(leaves.values())[:TOLD]:
                self._play([piece])
        return found

    def _could_serve(self, piece: Piece) -> bool:
        """Whether it frees something that is asked for where a task could go, and the rules might allow it.

        A fuller check waits until it is its turn: what a queue may lose depends on what else is taken.
        """
        wanted = any(
            part.cls.static_list[node] and any(amounts[row] > 0 for row, _ in part.asks)
            for node, amounts in piece.frees
            for part in self.need.parts
        )
        if not wanted and self.need.exact:
            return False
        if len(self.pieces) <= EXACT:
            return True
        amount = held(self.session, piece.tasks)
        key = piece.workload.leaf, tuple(a > 0 for a in amount)
        if key not in self._allowed:
            refusal = self._allowed[key] = self.rules.may_take(piece.workload, amount, core=True, owed=[])
            if refusal is not None:
                self.found.refusals.append((piece.workload.key, refusal))
        return self._allowed[key] is None

    def _core(self, best: list[Piece] | None) -> list[Piece]:
        """The pieces that are taken apart: all if they are few, else those of the set found and the first others."""
        if len(self.pieces) <= EXACT:
            return list(self.pieces)
        if best is None:
            return list(self.pieces[:AROUND])
        if len(best) >= AROUND:
            return []
        chosen = set(best)
        nodes = {n for p in best for n, _ in p.frees}
        others = [p for p in self.pieces if p not in chosen]
        chosen.update([p for p in others if any(n in nodes for n, _ in p.frees)][: (AROUND - len(best)) // 2])
        for piece in others:
            if len(chosen) >= AROUND:
                break
            chosen.add(piece)
        return [p for p in self.pieces if p in chosen]

    # -- greedy -----------------------------------------------------------------------------------------------------

    def _greedy(self, budget: Budget) -> list[Piece] | None:
        """The first of the greedy sets that pays, with what it does not need given back."""
        pieces = list(self.pieces)
        for _ in range(ATTEMPTS):
            if len(self.need.parts) == 1:
                chosen = Greedy(self.session, self.need, pieces, self.rules).run()
            else:
                chosen = prefix(self.need, pieces)
            if not chosen or not budget.spend():
                return None
            large = self.need.exact and len(chosen) > LARGE
            verdict = self._play(chosen, last=large)
            if isinstance(verdict, Played):
                return chosen if large else self._reprieve(chosen, budget)
            if not verdict.about:
                return None
            pieces = self._without(pieces, verdict)
        return None

    def _without(self, pieces: list[Piece], verdict: Refusal) -> list[Piece]:
        """Leave out what a set was refused for: a workload, or everything of a queue that is not full enough."""
        if verdict.shield != FULLNESS:
            return [p for p in pieces if p.workload.key != verdict.about]
        queues = self.session.queues
        queue = queues.index[verdict.about]
        return [p for p in pieces if queue not in queues.path[p.workload.leaf]]

    def _reprieve(self, pieces: list[Piece], budget: Budget) -> list[Piece]:
        """Give back, the dearest first, every victim without which the set pays as well."""
        kept = list(pieces)
        order = {p: n for n, p in enumerate(self.pieces)}
        for piece in sorted(pieces, key=order.__getitem__, reverse=True):
            fewer = [p for p in kept if p is not piece]
            if not fewer or not self.need.met(fewer):
                continue
            if not budget.spend():
                break
            if isinstance(self._play(fewer), Played):
                kept = fewer
        return kept

    # -- exact ------------------------------------------------------------------------------------------------------

    def _exact(self, pieces: list[Piece], best: list[Piece] | None, budget: Budget) -> list[Piece] | None:
        """The best set among all subsets, or ``best`` if none comes before it."""
        leaves = {p.workload.leaf for p in pieces}
        alone = leaves.pop() if len(leaves) == 1 else None
        limit = self._key(best, alone) if best is not None else None
        for key, subset in self._subsets(pieces, alone):
            if (limit is not None and key >= limit) or self._in_vain > MOST_IN_VAIN or self.found.tried > MOST_TRIED:
                break
            if not self.need.met(subset):
                continue
            if not budget.spend():
                return best
            known = frozenset(subset) in self._verdicts
            verdict = self._play(subset)
            if isinstance(verdict, Refusal):
                if not known:  # else it was asked about in another order
                    self._note_barred(subset, verdict)
                continue
            better = self._lower_inside(pieces, subset, budget)
            if better is None:
                return subset
            if best is None:
                best = better
        if best is not None:
            return self._lower_inside(pieces, best, budget) or best
        return best

    def _key(self, pieces: list[Piece], alone: int | None) -> Key:
        """Order of sets. Inside one queue the highest priority that is used comes before everything else."""
        key = key_of(self.settings, pieces)
        return key if alone is None else (max(priorities(pieces, alone), default=LEAST), *key)

    def _subsets(self, pieces: list[Piece], alone: int | None) -> Iterator[tuple[Key, list[Piece]]]:
        """All subsets in their order, without those that hold what the rules never allow together."""
        heap: list[tuple[Key, tuple[int, ...]]] = [(self._key([p], alone), (n,)) for n, p in enumerate(pieces)]
        heapify(heap)
        while heap:
            key, numbers = heappop(heap)
            subset = [pieces[n] for n in numbers]
            if self._never(subset):
                continue
            yield key, subset
            if self._never(subset):
                continue
            for number in range(numbers[-1] + 1, len(pieces)):
                larger = [*subset, pieces[number]]
                if consistent(larger):
                    heappush(heap, (self._key(larger, alone), (*numbers, number)))

    def _never(self, pieces: list[Piece]) -> bool:
        """Whether a part of a set was refused by rules that refuse every larger set as well."""
        if not self._barred:
            return False
        chosen = frozenset(pieces)
        return any(part <= chosen for part in self._barred)

    def _note_barred(self, pieces: list[Piece], verdict: Refusal) -> None:
        """Remember what a queue does not let go together: the more is taken from its side, the less it has to give."""
        barring = self.rules.barring(verdict, self.pieces)
        if barring >= 0:
            path = self.session.queues.path
            self._barred.append(frozenset(p for p in pieces if barring in path[p.workload.leaf]))

    def _lower_inside(self, pieces: list[Piece], chosen: list[Piece], budget: Budget) -> list[Piece] | None:
        """A set that differs from ``chosen`` inside one queue only and uses lower priorities there, if one pays."""
        for leaf in sorted({p.workload.leaf for p in chosen if not p.fresh}):
            own = [p for p in pieces if p.workload.leaf == leaf]
            outside = [p for p in chosen if p.workload.leaf != leaf]
            level = priorities(chosen, leaf)
            if not any(p.workload.priority < level[0] for p in own):
                continue
            for _, subset in self._subsets(own, leaf):
                lower = priorities(subset, leaf)
                if lower and lower[0] > level[0]:
                    break
                candidate = [*outside, *subset]
                if not uses_lower(lower, level) or not self.need.met(candidate):
                    continue
                if not budget.spend():
                    return None
                if isinstance(self._play(candidate), Played):
                    return self._lower_inside(pieces, candidate, budget) or candidate
        return None

    def _play(self, pieces: list[Piece], *, last: bool = False) -> Played | Refusal:
        """Play a set through; what was found out about it is kept. ``last``: it is carried out if it pays."""
        key = frozenset(pieces)
        verdict = self._verdicts.get(key)
        if verdict is None:
            self.found.tried += 1
            last = last and self.prepare is not None
            if last and self.prepare is not None:
                self.prepare(pieces)
            verdict = self.trials.play(self.contender, pieces, self.rules, keep=last)
            if last and isinstance(verdict, Played):
                self.found.played = verdict
            self._verdicts[key] = verdict
            if isinstance(verdict, Refusal):
                self._in_vain += verdict.shield in (NO_ROOM, NO_LANDING)
                self.found.refusals.append((", ".join(dict.fromkeys(p.workload.key for p in pieces)), verdict))
        return verdict
