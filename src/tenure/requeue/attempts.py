"""One attempt: may a contender take these pieces, and does it pay. Counts steps, and remembers where they ran out."""

from __future__ import annotations

from collections.abc import Sequence

from tenure.engine.memo import Memo
from tenure.engine.plan import Refused
from tenure.engine.refusal import Refusal
from tenure.engine.requeued import RequeueOutcome
from tenure.engine.serving.allocation import held_back
from tenure.engine.state.workloads import WorkloadState
from tenure.fairness.current import CurrentShares
from tenure.requeue.candidates import PlacedThisCycle, RequeueCandidate
from tenure.requeue.commit import RequeueCommits
from tenure.requeue.memory import SearchPosition
from tenure.requeue.pending_index import ContenderClass
from tenure.requeue.put_off import PutOffContenders
from tenure.requeue.rules import RequeueRules
from tenure.shields.opt_out import asked_to_stay, may_go
from tenure.victims.bounds.room_demand import RoomDemand
from tenure.victims.dry_run.outcome import AcceptedSet
from tenure.victims.recording.state import EvictionState
from tenure.victims.rules.pieces import Piece, needed_of

MOST_IN_VAIN = 1 << 12
"""Attempts in a cycle that help no contender before the search goes on in the next. Where several leaves contend, a
play-through counts as often as workloads wait, since it may have to pass over all of them; else once."""

ASKED = 16
"""So many refusals by a rule or a shield cost as much as one play-through."""


class RequeueAttempts:
    """The attempts of requeue, with what single candidates and sets share; ``cut`` is where the steps ran out.

    ``options`` gives what a candidate can give as things are, the gentlest first.
    """

    def __init__(self, state: EvictionState, shares: CurrentShares, outcome: RequeueOutcome) -> None:
        self.state = state
        self.session = state.session
        self.shares = shares
        self.dry_runs = state.dry_runs(shares)
        self.commits = RequeueCommits(state, self.dry_runs, outcome)
        self.cut: SearchPosition | None = None
        self._refusals: dict[tuple[str, str], Refusal] = {}
        self.put_off = PutOffContenders(state, outcome)
        self._asked = 0
        self._without_effect = 0
        self._placed = Memo[None, PlacedThisCycle](
            lambda _: PlacedThisCycle(state.fresh(), state.settled()), lambda _: self.commits.number
        )
        self.options = Memo[RequeueCandidate, list[list[Piece]]](
            lambda candidate: candidate.options(self.session, self._placed(None)),
            lambda _: self.commits.number,
            lambda one, other: [[p.tasks for p in o] for o in one] == [[p.tasks for p in o] for o in other],
        )

    def ready(self, cls: ContenderClass) -> WorkloadState | None:
        """Give the first of a class that cannot be served as things are; workloads before it that can be are served."""
        while (contender := cls.first()) is not None:
            waits = contender.step is not None and contender.entry is not None
            if waits and contender.key not in self.state.evicted and not self._fits_as_it_is(contender):
                return contender
            cls.pass_first()
        return None

    def _fits_as_it_is(self, contender: WorkloadState) -> bool:
        """Whether a contender gets its place without any eviction by now."""
        session, step = self.session, contender.step
        assert step is not None
        if held_back(session, contender, step) or not RoomDemand(session, step).met(()):
            return False
        rules = RequeueRules(session, self.shares, contender)
        played = self.dry_runs.play(rules, ())
        if isinstance(played, AcceptedSet) and session.settings.backfill != "easy":
            self.dry_runs.carry_out(contender, played)
            self.commits.place(played)
        return isinstance(played, AcceptedSet)

    def allowed(
        self, contender: WorkloadState, candidate: RequeueCandidate, pieces: Sequence[Piece], *, part: bool = False
    ) -> bool:
        """Whether rules, shields and patience let a contender take these pieces; why not is kept.

        ``part``: it would take others as well, see `PutOffContenders.is_worth_it`.
        """
        if self.open_to(contender, candidate, pieces) and self.put_off.is_worth_it(contender, pieces, part=part):
            return True
        self._asked += 1
        if self._asked % ASKED == 0:
            self.state.budget.spend()
        return False

    def open_to(self, contender: WorkloadState, candidate: RequeueCandidate, pieces: Sequence[Piece]) -> bool:
        """Whether rules and shields let a contender take these pieces; why not is kept."""
        rules = RequeueRules(self.session, self.shares, contender)
        victim = candidate.workload
        if victim is contender:
            return False
        refusal = rules.eligible(victim) or self.state.plugins.filter(self.session, "requeue", contender, victim)
        if refusal is not None and refusal.core_only and not any(p.whole or p.group for p in pieces):
            refusal = None
        if refusal is None and any(p.spared for p in pieces) and not may_go("requeue", contender):
            refusal = asked_to_stay(self.session, victim)
        if refusal is not None:
            self._refusals.setdefault((contender.key, victim.key), refusal)
        return refusal is None

    def spend(self, position: SearchPosition) -> bool:
        """Take a step; False, and ``position`` noted as what comes next, if there is none left."""
        if self.cut is None and (self._without_effect >= MOST_IN_VAIN or not self.state.budget.spend()):
            self.cut = position
        return self.cut is None

    def verdict(self, contender: WorkloadState, pieces: Sequence[Piece]) -> AcceptedSet | Refusal:
        """Play a set through."""
        found = self.dry_runs.play(RequeueRules(self.session, self.shares, contender, pieces), pieces)
        self._note(found)
        return found

    def pays(self, contender: WorkloadState, pieces: Sequence[Piece]) -> bool:
        """Whether a part of what pays does so too; that is always checked, so that no eviction is made in vain."""
        self.state.budget.spend()
        return isinstance(self.verdict(contender, pieces), AcceptedSet)

    def fewer(self, contender: WorkloadState, pieces: Sequence[Piece]) -> list[Piece]:
        """Give back, the last first, every piece without which a set pays as well."""
        return needed_of(pieces, lambda fewer: self.pays(contender, fewer))

    def commit(
        self,
        cls: ContenderClass,
        contender: WorkloadState,
        candidates: Sequence[RequeueCandidate],
        pieces: Sequence[Piece],
    ) -> bool:
        """Carry a set out for the first of a class, if it pays, and the wait is worth it."""
        if not self.put_off.is_worth_it(contender, pieces):
            return False
        gone = {p.workload for p in pieces}
        going = [c for c in candidates if c.workload in gone]
        refusal = self.commits.commit(contender, pieces, going)
        self._note(refusal)
        if refusal is None:
            for candidate in going:
                candidate.done = True
            cls.pass_first()
        return refusal is None

    def _note(self, verdict: AcceptedSet | Refusal | None) -> None:
        """Count what was played through to its end in vain: it took the longer, the more wait."""
        if isinstance(verdict, Refusal) and not verdict.about:
            entries = [len(e) for e in self.session.waiting.entries.values() if e]
            self._without_effect += sum(entries) if len(entries) > 1 else 1

    def report(self) -> None:
        """Write into the plan which candidates were refused and why, and that steps ran out."""
        self.state.refuse(
            [Refused(v, "requeue", c, r.shield, r.until, r.message) for (c, v), r in sorted(self._refusals.items())]
        )
        for refusal in self._refusals.values():
            self.state.wake_at(refusal.until)
        self.put_off.report()
        if self.cut is not None:
            text = "search-exhausted: requeue has come to its bounds, and goes on in the next cycle where it stopped"
            self.state.plan.warnings.append(text)
