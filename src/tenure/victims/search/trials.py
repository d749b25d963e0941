"""The sets that a search has tried: what each comes to, and what is learnt from it for those that are tried later."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from math import inf

from tenure.engine.refusal import Refusal
from tenure.engine.serving.reserved_start import RESERVED
from tenure.engine.serving.volume_bound import VolumeBound
from tenure.engine.state.workloads import WorkloadState
from tenure.victims.bounds.room_demand import RoomDemand
from tenure.victims.candidates.index import sorted_pieces
from tenure.victims.dry_run.dry_runs import DryRuns
from tenure.victims.dry_run.outcome import NO_LANDING, NO_ROOM, TAKEN_AGAIN, AcceptedSet, Enough
from tenure.victims.rules.causes import CauseRules
from tenure.victims.rules.pieces import Piece, needed_of
from tenure.victims.search.alike_pieces import AlikePieces
from tenure.victims.search.returning_victims import ReturningVictims

MOST_IN_VAIN = 32
"""Sets that may be played to the end without a place that the contender may have, before the search gives up."""

IN_VAIN = (NO_ROOM, NO_LANDING, RESERVED, TAKEN_AGAIN)
"""Refusals of sets that were played to the end without a place that the contender may have and keep."""


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

    ``played`` is what the set does. ``closed``: nothing was searched for, because nothing may be taken to begin with.
    ``cut``: nothing was found among as many sets as may be tried in vain, and there are others.
    """

    pieces: list[Piece] | None = None
    played: AcceptedSet | None = None
    tried: int = 0
    refusals: list[tuple[str, Refusal]] = field(default_factory=list)
    closed: bool = False
    cut: bool = False

    def join(self, other: SearchResult) -> None:
        """Add what another search for the same contender saw, which found nothing better."""
        self.tried += other.tried
        self.refusals += other.refusals
        self.cut = self.pieces is None and (self.cut or other.cut)


class SetTrials:
    """The trials of one search, noted in what it ``found``.

    ``many``: there are more pieces than are all taken apart, so that it matters who was in the way. ``with_spared``: of
    sets without anything that asked to be spared it is known that they do not pay.
    """

    def __init__(
        self, dry_runs: DryRuns, rules: CauseRules, need: RoomDemand, found: SearchResult, most_in_vain: int
    ) -> None:
        self.dry_runs = dry_runs
        self.rules = rules
        self.need = need
        self.found = found
        self.most_in_vain = most_in_vain
        self.many = self.with_spared = False
        self.returned: set[WorkloadState] = set()
        self._returning = ReturningVictims(rules.session, rules.contender)
        self._without_effect = 0
        self._verdicts: dict[frozenset[Piece], AcceptedSet | Refusal] = {}
        self.alike = AlikePieces(rules.session)
        self._bound = VolumeBound(rules.session.nodes)
        self._in_vain: dict[Hashable, Refusal] = {}

    def play(self, pieces: list[Piece], *, enough: Enough | None = None, brief: bool = False) -> AcceptedSet | Refusal:
        """Play a set through; what was found out about it is kept. See `DryRuns.play`."""
        key = frozenset(pieces)
        verdict = self._verdicts.get(key)
        if verdict is None:
            if self.rules.in_turn is None:  # the rules are asked piece by piece: always in one order
                pieces = sorted_pieces(pieces)
            self.found.tried += 1
            verdict = self.in_vain(pieces)
            if verdict is None:
                verdict = self.dry_runs.play(self.rules, pieces, enough=enough, brief=brief)
                if isinstance(verdict, Refusal):
                    verdict = self._learn(pieces, verdict)
            if isinstance(verdict, Refusal):
                self._without_effect += verdict.shield in IN_VAIN
                self.refuse(pieces, verdict)
            self._verdicts[key] = verdict
        return verdict

    def in_vain(self, pieces: Sequence[Piece]) -> Refusal | None:
        """Give why a set is in vain, where one that is alike was."""
        return self._in_vain.get(self.alike.kind_of(pieces)) if self._in_vain else None

    def _learn(self, pieces: list[Piece], refusal: Refusal) -> Refusal:
        """Learn from a refusal for other sets; gives it as one about the first who had its place back."""
        if refusal.shield == NO_ROOM and (back := self.dry_runs.back):
            self._returning.learn(pieces, back)
            self.returned.update(back)
            return refusal._replace(about=back[0].key)
        if refusal.shield in IN_VAIN:
            self._in_vain[self.alike.kind_of(pieces)] = refusal
        return refusal

    def refuse(self, pieces: Sequence[Piece], refusal: Refusal) -> None:
        """Note why a set was refused."""
        self.found.refusals.append((", ".join(dict.fromkeys(p.workload.key for p in pieces)), refusal))

    def outcome(self, pieces: Sequence[Piece]) -> AcceptedSet:
        """Give what a set that pays does."""
        verdict = self._verdicts[frozenset(pieces)]
        assert isinstance(verdict, AcceptedSet), verdict
        return verdict

    def follows(self, pieces: Sequence[Piece]) -> list[int]:
        """Give the costs of the follow-ups of a set that pays, as far as they had to be known."""
        verdict = self._verdicts.get(frozenset(pieces))
        if not isinstance(verdict, AcceptedSet):
            return []
        known = verdict.follow_ups
        return [f.cost for f in (self.dry_runs.follow_ups(self.rules, verdict) if known is None else known)]

    def returns(self, piece: Piece) -> bool:
        """Whether it had its place back in a set that was tried, or would return as another did."""
        return piece.workload in self.returned or self._returning(piece)

    def may_do(self, subset: Sequence[Piece]) -> bool:
        """Whether it frees enough, and what moves may find room, by a look that costs little."""
        return self.need.met(subset) and self.may_land(subset)

    def may_land(self, pieces: Sequence[Piece]) -> bool:
        """Whether there may be room for pieces that move as well; where there is none, none is for some of them."""
        if self.rules.cause != "consolidate":
            return True
        return not self._bound.shortage([*dict.fromkeys(t for p in pieces for t in p.tasks)], self.need.fixed)

    def gives_up(self, most: float = inf) -> bool:
        """Whether as many sets were tried in vain as may be, or ``most`` of any kind."""
        return self._without_effect > self.most_in_vain or self.found.tried > most


def first_of(trials: SetTrials, turns: Iterable[list[Piece]], budget: SearchBudget) -> list[Piece] | None:
    """Give the first set that pays, but who does not let go or is not needed; the last are given back first."""
    for pieces in turns:
        kept = pieces
        while kept and not (trials.gives_up() or trials.in_vain(kept)) and trials.may_do(kept) and budget.spend():
            verdict = trials.play(kept)
            if isinstance(verdict, AcceptedSet):
                return needed(trials, kept, budget, reversed(kept))
            rest = [p for p in kept if p.workload.key != verdict.about]
            kept = rest if len(rest) < len(kept) else []
    return None


def needed(trials: SetTrials, pieces: list[Piece], budget: SearchBudget, order: Iterable[Piece]) -> list[Piece]:
    """Give back, in ``order``, every piece without which a set pays as well."""

    def pays(fewer: list[Piece]) -> bool:
        return trials.need.met(fewer) and budget.spend() and isinstance(trials.play(fewer), AcceptedSet)

    return needed_of(pieces, pays, order)
