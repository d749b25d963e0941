"""Several candidates together, for a contender that no single one could help: growing beginnings of their order."""

from __future__ import annotations

from collections.abc import Sequence

from tenure.engine.state.workloads import WorkloadState
from tenure.requeue.attempts import RequeueAttempts
from tenure.requeue.candidates import RequeueCandidate, gently
from tenure.requeue.memory import SearchPosition
from tenure.requeue.pending_index import ContenderClass
from tenure.requeue.prefilter import CandidatePrefilter
from tenure.victims.bounds.room_demand import RoomDemand
from tenure.victims.dry_run.outcome import AcceptedSet
from tenure.victims.rules.pieces import Piece, needed_of

Gives = tuple[list[Piece], list[Piece]]
"""What a candidate gives gently, and at most."""


class MultiVictimSearch:
    """The search for sets of at most ``most`` candidates, as things were when the ``prefilter`` was made.

    ``everybody``: among them are those that asked to be spared.
    """

    def __init__(self, attempts: RequeueAttempts, prefilter: CandidatePrefilter, *, everybody: bool) -> None:
        self.attempts = attempts
        self.prefilter = prefilter
        self.everybody = everybody
        self.most = prefilter.most

    def run(self, cls: ContenderClass, start: SearchPosition | None) -> None:
        """Requeue the first set that pays for the first of a class; ``start``: where to go on with it."""
        candidates = self.prefilter.together(cls) if self.most > 1 else []
        contender = self.attempts.ready(cls) if candidates else None
        if contender is not None:
            self._try(cls, contender, candidates, start)

    def _try(
        self,
        cls: ContenderClass,
        contender: WorkloadState,
        candidates: Sequence[RequeueCandidate],
        start: SearchPosition | None,
    ) -> None:
        """Requeue the smallest beginning of the order that will do for a contender."""
        need = self.prefilter.need(cls.alike.shape)
        chosen, gives = self._choose(contender, candidates)
        if not need.met([p for _, whole in gives for p in whole]):
            self._put_off(contender, candidates, chosen, need)
            return
        attempts = [(2 * size + which, size, which) for size in range(2, len(chosen) + 1) for which in (0, 1)]
        for number, size, which in attempts:
            if start is not None and number < start.size:
                continue
            pieces = [p for pair in gives[:size] for p in pair[which]]
            if which and pieces == [p for pair in gives[:size] for p in pair[0]]:
                continue
            spared = start.spared if start is not None and number == start.size else ()
            position = SearchPosition(contender.key, size=number, spared=spared, everybody=self.everybody)
            paying = self._paying(contender, need, pieces, position)
            if paying is not None:
                self.attempts.commit(cls, contender, chosen[:size], self._reprieved(contender, chosen[:size], paying))
                return
            if self.attempts.cut is not None:
                return
        self._put_off(contender, candidates, chosen, need)

    def _put_off(
        self,
        contender: WorkloadState,
        candidates: Sequence[RequeueCandidate],
        chosen: Sequence[RequeueCandidate],
        need: RoomDemand,
    ) -> None:
        """Where that is read, note when a set pays of which some are too dear as yet; those ``chosen`` are not."""
        attempts = self.attempts
        pieces: list[Piece] = []
        giving = 0
        for candidate in candidates if attempts.state.detailed else ():
            options = [] if candidate.done else attempts.options(candidate)
            open_to = [o for o in options if attempts.open_to(contender, candidate, o)]
            if open_to:
                pieces += open_to[-1]
                giving += 1
            if need.met(pieces):
                if not {p.workload for p in pieces} <= {c.workload for c in chosen}:
                    attempts.put_off.is_worth_it(contender, needed_of(pieces, need.met))
                return
            if giving == self.most:
                return

    def _choose(
        self, contender: WorkloadState, candidates: Sequence[RequeueCandidate]
    ) -> tuple[list[RequeueCandidate], list[Gives]]:
        """Take the first candidates that give something to a contender."""
        chosen: list[RequeueCandidate] = []
        found: list[Gives] = []
        for candidate in candidates:
            gives = None if candidate.done else self._gives(contender, candidate)
            if gives is not None:
                chosen.append(candidate)
                found.append(gives)
                if len(chosen) == self.most:
                    break
        return chosen, found

    def _gives(self, contender: WorkloadState, candidate: RequeueCandidate) -> Gives | None:
        options = [
            o for o in self.attempts.options(candidate) if self.attempts.allowed(contender, candidate, o, part=True)
        ]
        return (gently(options), options[-1]) if options else None

    def _paying(
        self, contender: WorkloadState, need: RoomDemand, pieces: Sequence[Piece], position: SearchPosition
    ) -> list[Piece] | None:
        """Give what of a set pays, without candidates that would win their place back or are as deserving; or None."""
        kept = [p for p in pieces if p.workload.key not in position.spared]
        while kept and need.met(kept) and self.attempts.spend(position):
            verdict = self.attempts.verdict(contender, kept)
            if isinstance(verdict, AcceptedSet):
                return kept
            rest = [p for p in kept if p.workload.key != verdict.about]
            if len(rest) == len(kept):
                return None
            kept = rest
            position = position._replace(spared=(*position.spared, verdict.about))
        return None

    def _reprieved(
        self, contender: WorkloadState, candidates: Sequence[RequeueCandidate], pieces: Sequence[Piece]
    ) -> list[Piece]:
        """Give back every candidate that is not needed, the last first, then every task of surplus."""
        kept = self._spared(contender, candidates, pieces)
        for candidate in candidates:
            own = [p for p in kept if p.workload is candidate.workload]
            others = [p for p in kept if p.workload is not candidate.workload]
            for option in self.attempts.options(candidate) if own and own[0].whole else []:
                gentler = [*others, *option]
                allowed = not option[0].whole and self.attempts.allowed(contender, candidate, option)
                if allowed and self.attempts.pays(contender, gentler):
                    kept = gentler
                    break
        if any(not p.whole for p in kept):
            kept = self.attempts.fewer(contender, kept)
        return self._spared(contender, candidates, kept)

    def _spared(
        self, contender: WorkloadState, candidates: Sequence[RequeueCandidate], pieces: Sequence[Piece]
    ) -> list[Piece]:
        """Give candidates back until none can be: one that is given back late may have kept another from running on."""
        kept, before = list(pieces), -1
        while before != len(kept):
            before = len(kept)
            for candidate in reversed(candidates):
                rest = [p for p in kept if p.workload is not candidate.workload]
                if rest and len(rest) < len(kept) and self.attempts.pays(contender, rest):
                    kept = rest
        return kept
