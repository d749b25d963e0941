"""Which contender may take a candidate's place (spec: expected runtime and requeue, "The action")."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar

from tenure.engine.refusal import Refusal
from tenure.engine.requeued import Nominated
from tenure.engine.serving.order import queue_key
from tenure.engine.state.queues import Amount
from tenure.engine.state.session import Session
from tenure.engine.state.workloads import WorkloadState
from tenure.fairness.current import CurrentShares
from tenure.fairness.reclaiming import Owed, ReclaimRules
from tenure.model.settings import Cause
from tenure.model.values.duration import format_time
from tenure.requeue.candidates import asks_again, asks_anew, gently, in_order, options_of
from tenure.shields.policy import disabled, fence
from tenure.shields.preemptibility import preemptibility
from tenure.victims.rules.causes import CauseRules, overdue
from tenure.victims.rules.pieces import Piece

COOLDOWN, DESERVING = "cooldown", "more-deserving"


class RequeueRules(CauseRules):
    """The rules for one contender and one set: it has to be more deserving than every candidate that goes for it."""

    cause: ClassVar[Cause] = "requeue"

    def __init__(
        self, session: Session, shares: CurrentShares, contender: WorkloadState, pieces: Sequence[Piece] = ()
    ) -> None:
        assert contender.step is not None
        super().__init__(session, contender)
        self.shares = shares
        self.amount: Amount = contender.step.amount
        self.floor = ReclaimRules(session, shares, contender)
        self.asks = {piece.workload: asks_again(piece) for piece in pieces}

    def concerns(self, victim: WorkloadState) -> bool:
        """Only candidates are asked about."""
        return victim is not self.contender

    def eligible(self, victim: WorkloadState) -> Refusal | None:
        """Refuse what a shield holds whatever else goes, and in one leaf what is not less deserving."""
        queues = self.session.queues
        refusal = self._cooling(victim) or preemptibility(victim) or disabled(queues, victim.leaf)
        if refusal is not None:
            return refusal
        if victim.leaf != self.contender.leaf:
            return fence(queues, self.contender.leaf, victim.leaf)
        return _less_urgent(self.session, self.contender, victim)

    def _cooling(self, victim: WorkloadState) -> Refusal | None:
        """Refuse what was requeued lately."""
        until = victim.not_before
        if until is None or self.session.now >= until:
            return None
        text = f"{victim.key} was requeued lately, and is not requeued again before {format_time(until)}"
        return Refusal(COOLDOWN, text, until)

    def _asks(self, victim: WorkloadState) -> Amount:
        """Give what a candidate of the set asks for once it is gone."""
        return self.asks[victim]

    def may_take(
        self, victim: WorkloadState, held: Amount, *, core: bool, owed: list[Owed] | None = None
    ) -> Refusal | None:
        """Refuse what would leave a queue on the victim's side with less than it is guaranteed."""
        if victim.leaf == self.contender.leaf:
            return None
        return self.floor.floor(victim.leaf, held, core=core, owed=owed)

    def exchange(self, victims: Sequence[WorkloadState]) -> Refusal | None:
        """Refuse a set if one of its candidates is as deserving as the contender once the whole set is evicted."""
        return next((r for v in victims if (r := self._less_deserving(v)) is not None), None)

    def _less_deserving(self, victim: WorkloadState) -> Refusal | None:
        if victim.leaf == self.contender.leaf:
            return None
        mine, theirs = self.floor.meeting(victim.leaf)
        own = queue_key(self.session, self.shares, mine, self.amount)
        if own < queue_key(self.session, self.shares, theirs, self._asks(victim)):
            return None
        names = [self.session.queues.queues[q].name for q in (mine, theirs)]
        text = f"with {victim.key} gone, queue {names[0]} would not be ahead of queue {names[1]}"
        return Refusal(DESERVING, text, about=victim.key)

    def repaid(self, owed: Sequence[Owed]) -> bool:
        """Whether guarantees that a core carried its queue below are served again."""
        return self.floor.repaid(owed)

    def why(self, victim: WorkloadState) -> str:
        """Say in what the contender is more deserving."""
        queues = self.session.queues.queues
        if victim.leaf == self.contender.leaf:
            if victim.priority == self.contender.priority:
                return f"workloads of queue {queues[victim.leaf].name} take turns"
            return (
                f"its priority {victim.priority} in queue {queues[victim.leaf].name} is below {self.contender.priority}"
            )
        mine, theirs = self.floor.meeting(victim.leaf)
        return f"without it, queue {queues[mine].name} is ahead of queue {queues[theirs].name}"


class OverdueRules(RequeueRules):
    """The rules of requeue in a scenario, for one contender: what is overdue now may go, every cooldown being over."""

    def concerns(self, victim: WorkloadState) -> bool:
        """Whether it is overdue as things are."""
        return victim is not self.contender and overdue(self.session, victim)

    def in_turn(self, pieces: Iterable[Piece]) -> Iterator[list[Piece]]:
        """Give sets as requeue tries them: each candidate alone, gently first, then growing beginnings of the order."""
        session, own = self.session, dict[WorkloadState, list[Piece]]()
        for piece in pieces:
            own.setdefault(piece.workload, []).append(piece)
        late = [Nominated(w.key, (), None, session.now - (w.started_at or 0), w.expected) for w in own]
        options = [options_of(own[c.workload]) for c in in_order(session, self.shares, late)]
        yield from (option for each in options for option in each)
        for size in range(2, min(len(options), session.settings.requeue.max_candidates) + 1):
            yield [piece for each in options[:size] for piece in gently(each)]
            yield [piece for each in options[:size] for piece in each[-1]]

    def _cooling(self, victim: WorkloadState) -> Refusal | None:  # noqa: ARG002  no cooldown counts
        return None

    def _asks(self, victim: WorkloadState) -> Amount:
        return asks_anew(victim, victim.tasks)


def _less_urgent(session: Session, contender: WorkloadState, victim: WorkloadState) -> Refusal | None:
    """Refuse a contender of the victim's own leaf that has no higher priority, or, where equals take turns, a lower."""
    mine, theirs = contender.priority, victim.priority
    equals = session.settings.requeue.contenders == "any"
    if mine > theirs or (equals and mine == theirs):
        return None
    return Refusal(DESERVING, f"{contender.key} has priority {mine}, {victim.key} in the same queue {theirs}")
