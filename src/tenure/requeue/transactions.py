"""Tries candidates: evicted in thought, the ordinary order played through, kept only if somebody more deserving runs.

Each candidate alone comes first, in order; then growing sets, of which whoever is not needed is given back. What is
committed is written into the plan with the time before which the workload is not requeued again.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tenure.engine.order import QueueOrder
from tenure.engine.plan import Refused
from tenure.engine.refusal import Refusal
from tenure.engine.requeued import Requeueing
from tenure.engine.workloads import WorkloadState
from tenure.fairness.current import CurrentShares
from tenure.requeue.candidates import Candidate
from tenure.requeue.classes import ContenderClass, gather
from tenure.requeue.commit import Commits
from tenure.requeue.prospects import Deserving, Mask, Room
from tenure.requeue.rules import Requeue
from tenure.shields.delay import delay
from tenure.victims.pieces import Piece
from tenure.victims.room import Need
from tenure.victims.serving import held_back
from tenure.victims.state import Evicting
from tenure.victims.trial import Played, Trials


class Transactions:
    """One cycle's attempts."""

    def __init__(
        self, state: Evicting, shares: CurrentShares, candidates: Sequence[Candidate], outcome: Requeueing
    ) -> None:
        self.state = state
        self.session = state.session
        self.shares = shares
        self.outcome = outcome
        self.left = list(candidates)
        self.trials = Trials(state.session, state.placer, shares, state.plugins)
        self.commits = Commits(state, self.trials, outcome)
        self.considered: set[str] = set()
        self.exhausted = False
        self._waiting: list[WorkloadState] | None = None
        self._refusals: dict[tuple[str, str], Refusal] = {}
        self._checked: dict[WorkloadState, object] = {}

    def run(self) -> None:
        """Try all candidates while somebody contends."""
        before = -1
        while self.left and before != len(self.left) and not self.exhausted:
            before = len(self.left)
            if not self._look():
                break
            self._alone()
            self.left = [c for c in self.left if not c.done]
            if before == len(self.left):
                self._together()
                self.left = [c for c in self.left if not c.done]
        self.outcome.rolled_back = len(self.considered - self.outcome.not_before.keys())
        self.state.refuse(
            [Refused(v, "requeue", c, r.shield, r.until, r.message) for (c, v), r in sorted(self._refusals.items())]
        )
        for refusal in self._refusals.values():
            self.state.wake_at(refusal.until)
        if self.exhausted:
            self.state.plan.warnings.append("search-exhausted: search.maxScenarios was reached by requeue")

    # -- bounds -------------------------------------------------------------------------------------------------------

    def _look(self) -> bool:
        """Work out anew who waits and which candidates could serve whom; False if nobody waits."""
        waiting = self._in_order()
        if not waiting:
            return False
        self.contenders = gather(self.session, [w for w in waiting if self._may_contend(w)])
        self.classes = [c for c in self.contenders.classes if not self._cannot_be_helped(c)]
        self.room = Room(self.session, self.left)
        self.deserving = Deserving(self.session, self.shares, self.contenders)
        for number, candidate in enumerate(self.left):
            candidate.number = number
        self._by_room: dict[tuple[int, bool], Mask] = {}
        self._could = self._prospects()
        return True

    def _in_order(self) -> list[WorkloadState]:
        """All that wait, in the order in which they would be served; worked out once, for those that then waited."""
        if self._waiting is not None:
            return [w for w in self._waiting if w.entry is not None]
        order = QueueOrder(self.session, self.shares, lambda _, __: False)
        found = []
        while (workload := order.next()) is not None:
            found.append(workload)
            order.pass_over(workload)
        self._waiting = found
        return found

    def _may_contend(self, workload: WorkloadState) -> bool:
        """Whether something may be evicted for a workload by now."""
        if workload.key in self.state.evicted:
            return False
        refusal = delay(self.session, workload)
        if refusal is not None:
            self.state.wake_at(refusal.until)
        return refusal is None

    def _cannot_be_helped(self, cls: ContenderClass) -> bool:
        """Whether an eviction is of no use: larger than the cluster, or held back by what is not preemptible."""
        first = cls.members[0]
        amount = self.contenders.amounts[cls.shape]
        if first.fixed and self.session.queues.beyond_guaranteed(cls.leaf, amount) is not None:
            return True
        return not self.contenders.needs[cls.shape].ever()

    def _prospects(self) -> Mask:
        """Candidates that pass the bounds against some contender, each alone."""
        could = np.zeros(len(self.left), bool)
        simple = np.array([c.is_simple for c in self.left], bool)
        outranked = np.zeros((len(self.contenders.needs), len(self.left)), bool)
        for number, candidate in enumerate(self.left):
            if simple[number] and (shapes := self.deserving.shapes(candidate)):
                outranked[list(shapes), number] = True
        for cls in self.classes:
            could |= self._mask(cls) & (outranked[cls.shape] | ~simple)
        return could

    def _mask(self, cls: ContenderClass) -> Mask:
        """Candidates without which, by room and by maxima, a class of contenders could be served."""
        queues = self.session.queues
        over = queues.over_max(cls.leaf, self.contenders.amounts[cls.shape])
        key = cls.shape, over is None
        found = self._by_room.get(key)
        if found is None:
            found = self._by_room[key] = self.room.enough(self.contenders.needs[cls.shape], useful=over is None)
        if over is None:
            return found
        below = [over[0] in queues.path[c.workload.leaf] for c in self.left]
        return np.logical_and(found, below)

    # -- one by one ---------------------------------------------------------------------------------------------------

    def _alone(self) -> None:
        number = self.commits.number
        for candidate, could in zip(self.left, self._could.tolist(), strict=True):
            if number != self.commits.number and not self._contended():
                return
            number = self.commits.number
            self.considered.add(candidate.workload.key)
            if not could or self.exhausted:
                continue
            classes = [c for c in self.classes if c.members and self._mask(c)[candidate.number]]
            if candidate.is_simple:
                classes = [c for c in classes if self.deserving.against(c, candidate)]
            if classes:
                self._try_alone(candidate, classes)

    def _contended(self) -> bool:
        """Whether anybody waits but those that were evicted in this cycle."""
        return any(w.key not in self.state.evicted for w in self.session.waiting.all())

    def _try_alone(self, candidate: Candidate, classes: Sequence[ContenderClass]) -> None:
        """Requeue one candidate for the first contender for whom that pays, as gently as possible."""
        for pieces in candidate.options(self.session):
            for cls in classes:
                contender = self._ready(cls)
                if contender is None or not self._allowed(contender, candidate, pieces):
                    continue
                if not self._try(contender, pieces):
                    continue
                self._commit(cls, contender, [candidate], self._fewer(contender, pieces))
                return

    def _ready(self, cls: ContenderClass) -> WorkloadState | None:
        """Give the first of a class that still cannot be served as things are; who can be is served."""
        while (contender := cls.first()) is not None:
            if contender.step is None or contender.entry is None:
                cls.members.pop(0)
            elif self._checked.get(contender) == self.commits.number:
                return contender
            elif self._fits_as_it_is(contender):
                cls.members.pop(0)
            else:
                self._checked[contender] = self.commits.number
                return contender
        return None

    def _fits_as_it_is(self, contender: WorkloadState) -> bool:
        """Whether a contender gets its place without any eviction by now."""
        session, step = self.session, contender.step
        assert step is not None
        if held_back(session, contender, step) or not Need(session, step).met(()):
            return False
        rules = Requeue(session, self.shares, contender)
        keep = session.settings.backfill != "easy"
        played = self.trials.play(contender, (), rules, keep=keep)
        if isinstance(played, Played) and keep:
            self.commits.place(played, contender)
        return isinstance(played, Played)

    def _allowed(self, contender: WorkloadState, candidate: Candidate, pieces: Sequence[Piece]) -> bool:
        """Whether rules and shields let a contender take these pieces; why not is kept."""
        rules = Requeue(self.session, self.shares, contender)
        victim = candidate.workload
        if victim is contender:
            return False
        refusal = rules.eligible(victim) or self.state.plugins.filter(self.session, "requeue", contender, victim)
        if refusal is None or (refusal.core_only and not any(p.whole or p.group for p in pieces)):
            return True
        self._refusals.setdefault((contender.key, victim.key), refusal)
        return False

    def _try(self, contender: WorkloadState, pieces: Sequence[Piece]) -> bool:
        """Whether a set pays; False as well once the search is out of steps."""
        if not self.state.budget.spend():
            self.exhausted = True
            return False
        return isinstance(self.commits.play(contender, pieces, keep=False), Played)

    def _fewer(self, contender: WorkloadState, pieces: Sequence[Piece]) -> list[Piece]:
        """Give back, the last first, every piece without which a set pays as well."""
        kept = list(pieces)
        for piece in reversed(pieces):
            fewer = [p for p in kept if p is not piece]
            if fewer and self._try(contender, fewer):
                kept = fewer
        return kept

    def _commit(
        self, cls: ContenderClass, contender: WorkloadState, candidates: Sequence[Candidate], pieces: Sequence[Piece]
    ) -> None:
        gone = {p.workload for p in pieces}
        for candidate in candidates:
            candidate.done = candidate.workload in gone
        self.commits.commit(contender, pieces, [c for c in candidates if c.done])
        cls.members.pop(0)

    # -- several together ---------------------------------------------------------------------------------------------

    def _together(self) -> None:
        """Growing sets for those whom no single candidate could help."""
        most = self.session.settings.requeue.max_candidates
        if most < 2 or len(self.left) < 2:  # noqa: PLR2004  a set of one was tried before
            return
        possible: dict[int, bool] = {}
        helps: dict[int, Mask] = {}
        for cls in self.classes:
            need, held = self.contenders.needs[cls.shape], self._held_back(cls)
            if cls.shape not in possible:
                possible[cls.shape] = self.room.most(need, most)
                helps[cls.shape] = self.room.helps(need)
            while possible[cls.shape] and not self.exhausted and (contender := self._ready(cls)) is not None:
                mask = np.ones(len(self.left), bool) if held else helps[cls.shape]
                if not self._try_together(cls, contender, mask, most):
                    break
                return  # room is another one now: look anew, single candidates first

    def _held_back(self, cls: ContenderClass) -> bool:
        return self.session.queues.over_max(cls.leaf, self.contenders.amounts[cls.shape]) is not None

    def _try_together(self, cls: ContenderClass, contender: WorkloadState, mask: Mask, most: int) -> bool:
        """Requeue the smallest beginning of the order that will do for a contender."""
        need = self.contenders.needs[cls.shape]
        chosen: list[Candidate] = []
        gives: list[tuple[list[Piece], list[Piece]]] = []
        for number in np.flatnonzero(mask).tolist():
            pieces = self._gives(cls, contender, self.left[number])
            if pieces is not None:
                chosen.append(self.left[number])
                gives.append(pieces)
                if len(chosen) == most:
                    break
        if not need.met([p for _, whole in gives for p in whole]):
            return False
        for size in range(2, len(chosen) + 1):
            gentle, whole = ([p for pieces in gives[:size] for p in pieces[which]] for which in (0, 1))
            for attempt in (gentle, whole) if gentle != whole else (whole,):
                paying = self._paying(contender, need, attempt)
                if paying is not None:
                    self._commit(cls, contender, chosen[:size], self._reprieved(contender, chosen[:size], paying))
                    return True
        return False

    def _paying(self, contender: WorkloadState, need: Need, pieces: Sequence[Piece]) -> list[Piece] | None:
        """Give what of a set pays, without those who would win their place back or are as deserving; or None."""
        kept = list(pieces)
        while kept and need.met(kept) and not self.exhausted:
            if not self.state.budget.spend():
                self.exhausted = True
                return None
            verdict = self.commits.play(contender, kept, keep=False)
            if isinstance(verdict, Played):
                return kept
            fewer = [p for p in kept if p.workload.key != verdict.about]
            if len(fewer) == len(kept):
                return None
            kept = fewer
        return None

    def _gives(
        self, cls: ContenderClass, contender: WorkloadState, candidate: Candidate
    ) -> tuple[list[Piece], list[Piece]] | None:
        """What a candidate would give to a contender: gently, and at most; None if nothing."""
        if candidate.done or (candidate.is_simple and not self.deserving.against(cls, candidate)):
            return None
        options = [o for o in candidate.options(self.session) if self._allowed(contender, candidate, o)]
        if not options:
            return None
        surplus = [p for o in options if len(o) == 1 and not o[0].whole and not o[0].group for p in o]
        return surplus or options[-1], options[-1]

    def _reprieved(
        self, contender: WorkloadState, candidates: Sequence[Candidate], pieces: Sequence[Piece]
    ) -> list[Piece]:
        """Give back every candidate that is not needed, the last first, then every task of surplus."""
        kept = list(pieces)
        for candidate in reversed(candidates):
            fewer = [p for p in kept if p.workload is not candidate.workload]
            if fewer and len(fewer) < len(kept) and self._try(contender, fewer):
                kept = fewer
        for candidate in candidates:
            own = [p for p in kept if p.workload is candidate.workload]
            others = [p for p in kept if p.workload is not candidate.workload]
            for option in candidate.options(self.session) if own and own[0].whole else []:
                gentler = [*others, *option]
                allowed = not option[0].whole and self._allowed(contender, candidate, option)
                if allowed and self._try(contender, gentler):
                    kept = gentler
                    break
        return self._fewer(contender, kept) if any(not p.whole for p in kept) else kept
