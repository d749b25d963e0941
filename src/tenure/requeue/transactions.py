"""The trial of candidates for requeue: an eviction is kept only if a more deserving workload then runs.

Each candidate alone comes first, in order; then growing sets, of which a candidate that is not needed runs on. Those
that asked to be spared have their turns after all others, alone and then in sets with them. What is committed is
written into the plan with the time before which the workload is not requeued again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tenure.engine.refusal import Refusal
from tenure.engine.requeued import RequeueOutcome
from tenure.engine.state.waiting import anything_waits
from tenure.engine.state.workloads import WorkloadState
from tenure.fairness.current import CurrentShares
from tenure.requeue.attempts import RequeueAttempts
from tenure.requeue.candidates import RequeueCandidate
from tenure.requeue.memory import SearchPosition
from tenure.requeue.multi_victim_search import MultiVictimSearch
from tenure.requeue.pending_index import ContenderClass, PendingIndex, gather
from tenure.requeue.prefilter import CandidateMatch, CandidatePrefilter
from tenure.victims.recording.state import EvictionState
from tenure.victims.rules.pieces import Piece


class SetTurn(NamedTuple):
    """The turn of a class of contenders to look for a set of candidates."""

    cls: ContenderClass
    sets: MultiVictimSearch


Turn = CandidateMatch | SetTurn


class RequeueTransactions:
    """The attempts of requeue in one cycle."""

    def __init__(
        self,
        state: EvictionState,
        pending_index: PendingIndex,
        shares: CurrentShares,
        candidates: Sequence[RequeueCandidate],
        outcome: RequeueOutcome,
    ) -> None:
        self.state = state
        self.pending_index = pending_index
        self.session = state.session
        self.shares = shares
        self.outcome = outcome
        self.left = list(candidates)
        self.attempts = RequeueAttempts(state, shares, outcome)
        self.considered: set[str] = set()

    def run(self, position: SearchPosition | None) -> SearchPosition | None:
        """Try all candidates while workloads contend; give where the search was cut off, if it was.

        The search goes on at ``position``, and comes to what was tried before it last.
        """
        attempts, before = self.attempts, -1
        if self.state.evicted:
            attempts.commits.serve_rest()
        while self.left and before != attempts.commits.number and anything_waits(self.session.waiting):
            before = attempts.commits.number
            self._round(position)
            position = None
            self.left = [c for c in self.left if not c.done]
            if attempts.cut is not None:
                break
        self.outcome.rolled_back = len(self.considered - self.outcome.not_before.keys())
        attempts.report()
        return attempts.cut

    def _round(self, position: SearchPosition | None) -> None:
        """Give all their turns, from ``position`` on and round to it.

        What is known of sets holds until something is committed.
        """
        turns = self._turns()
        found = _place_of(position, turns)
        at, position = (0, None) if found is None else (found, position)
        attempts, number, unseen = self.attempts, self.attempts.commits.number, None
        for place in (*range(at, len(turns)), *range(at)):
            turn, changed = turns[place], number != attempts.commits.number
            start = position if place == at else None
            if isinstance(turn, CandidateMatch):
                if changed and not self._contended():
                    unseen = None if at else turn.candidate
                    break
                self._alone(turn, start)
            elif not changed:
                turn.sets.run(turn.cls, start)
            if attempts.cut is not None:
                break
        seen = self.left if unseen is None else self.left[: self.left.index(unseen)]
        self.considered.update(c.workload.key for c in seen)

    def _turns(self) -> list[Turn]:
        """Give the turns in order: candidates alone, then contenders for sets; then those with what is to be spared."""
        barred, until = self.pending_index.barred(self.state.evicted | self.state.given_up)
        self.state.wake_at(until)
        contenders = gather(self.session, self.pending_index, barred)
        others = [c for c in self.left if not c.spared]
        turns: list[Turn] = []
        for candidates in (others, self.left) if len(others) < len(self.left) else (others,):
            everybody = candidates is self.left
            prefilter = CandidatePrefilter(self.session, self.shares, candidates, contenders)
            sets = MultiVictimSearch(self.attempts, prefilter, everybody=everybody)
            turns += [match for match in prefilter.alone() if match.candidate.spared or not everybody]
            turns += [SetTurn(cls, sets) for cls in prefilter.classes]
        return turns

    def _contended(self) -> bool:
        """Whether workloads wait that may contend in this cycle."""
        entries, out = self.session.waiting.entries.values(), self.state.evicted | self.state.given_up
        return any(e[-1].entry is e and e[-1].key not in out for those in entries for e in those)

    def _alone(self, single: CandidateMatch, start: SearchPosition | None) -> None:
        """Requeue one candidate for the first contender for which that pays, as gently as possible."""
        attempts, candidate = self.attempts, single.candidate
        for number, pieces in enumerate(attempts.options(candidate)):
            if start is not None and number < start.size:
                continue
            classes = single.classes
            if start is not None and number == start.size:
                classes = classes[_first_with(start.contender, classes) :]
            for cls in classes:
                contender = attempts.ready(cls)
                if contender is None or not attempts.allowed(contender, candidate, pieces):
                    continue
                if not attempts.spend(SearchPosition(contender.key, candidate.workload.key, number)):
                    return
                if self._try(cls, contender, candidate, pieces):
                    return

    def _try(
        self, cls: ContenderClass, contender: WorkloadState, candidate: RequeueCandidate, pieces: Sequence[Piece]
    ) -> bool:
        """Requeue what is needed of some pieces of a candidate, if that pays."""
        if len(pieces) > 1:
            if isinstance(self.attempts.verdict(contender, pieces), Refusal):
                return False
            pieces = self.attempts.fewer(contender, pieces)
        return self.attempts.commit(cls, contender, [candidate], pieces)


def _place_of(position: SearchPosition | None, turns: Sequence[Turn]) -> int | None:
    """Give whose turn it was, None if that is not there any more."""
    for place, turn in enumerate(turns if position is not None else ()):
        assert position is not None
        if isinstance(turn, CandidateMatch):
            if turn.candidate.workload.key == position.candidate:
                return place
        elif not position.candidate and turn.cls.has(position.contender) and turn.sets.everybody == position.everybody:
            return place
    return None


def _first_with(contender: str, classes: Sequence[ContenderClass]) -> int:
    """Give the class in which a contender waits; the first, if it waits no more."""
    return next((n for n, cls in enumerate(classes) if cls.has(contender)), 0)
