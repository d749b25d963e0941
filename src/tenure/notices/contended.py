"""Whether what was announced for a contender still pays: played through once more, as if it had not been announced."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from tenure.engine.refusal import Refusal
from tenure.engine.state.session import Session
from tenure.engine.state.workloads import TaskState, WorkloadState
from tenure.notices.groups import NoticeGroup
from tenure.requeue.rules import RequeueRules
from tenure.shields.delay import delay
from tenure.victims.bounds.room_demand import RoomDemand
from tenure.victims.dry_run.outcome import AcceptedSet
from tenure.victims.recording.state import EvictionState
from tenure.victims.rules.causes import CauseRules, ConsolidateRules, PreemptRules, ReclaimEligibility
from tenure.victims.rules.pieces import Piece, pieces_of, singles_of


class ContenderNotices:
    """The notices that were given for contenders, one group after the other, on a session on which all were lifted.

    ``placed`` is what found a place by what they leave.

    Parameters
    ----------
    state
        The cycle's evictions.
    nominated
        Who could be requeued as things stand.
    """

    def __init__(self, state: EvictionState, nominated: AbstractSet[str]) -> None:
        self.state = state
        self.session = state.session
        self.nominated = nominated
        self.shares = state.fairness.now()
        self.placed: list[TaskState] = []

    def pieces(self, group: NoticeGroup) -> list[Piece]:
        """Give what may still be taken of what was announced."""
        found: list[Piece] = []
        rules = self._rules(group, ())
        for victim, tasks in group.by_workload().items():
            if victim is group.contender or not rules.concerns(victim):
                continue
            refusal = rules.eligible(victim) or self.state.plugins.filter(
                self.session, group.cause, group.contender, victim
            )
            if group.cause == "requeue" and victim.key not in self.nominated:
                continue
            if refusal is None or refusal.core_only:
                found += covering(parts_of(self.session, group, victim, core=refusal is None), tasks)
        return sorted(found, key=lambda p: p.rank)

    def _rules(self, group: NoticeGroup, pieces: Sequence[Piece]) -> CauseRules:
        contender = group.contender
        assert contender is not None
        if group.cause == "reclaim":
            return ReclaimEligibility(self.session, self.shares, contender)
        if group.cause == "preempt":
            return PreemptRules(self.session, contender)
        if group.cause == "consolidate":
            return ConsolidateRules(self.session, contender)
        return RequeueRules(self.session, self.shares, contender, pieces)

    def needed(self, group: NoticeGroup, pieces: list[Piece]) -> list[Piece]:
        """Give the pieces without which the contender would not get its places; they stay evicted for it."""
        contender, kept, left = group.contender, list[Piece](), list(pieces)
        assert contender is not None
        if delay(self.session, contender) is not None:
            return []
        while left and contender.step is not None and contender.entry is not None:
            if self._rules(group, left).contender_may() is not None:
                break
            chosen = self._needed_next(group, contender, left)
            played = None if chosen is None else self.play(group, chosen)
            if chosen is None or not isinstance(played, AcceptedSet):
                break
            self.state.dry_runs(self.shares).carry_out(contender, played)
            self.placed += played.placed
            kept += chosen
            left = [p for p in left if p not in chosen]
        return kept

    def _needed_next(self, group: NoticeGroup, contender: WorkloadState, pieces: list[Piece]) -> list[Piece] | None:
        """Give the pieces that the contender's next step needs, none if it fits as it is; None if they do not do."""
        assert contender.step is not None
        need, chosen = RoomDemand(self.session, contender.step), pieces
        if need.met(()) and isinstance(self.play(group, []), AcceptedSet):
            return []
        while True:
            if not chosen or not need.met(chosen):
                return None
            verdict = self.play(group, chosen)
            if isinstance(verdict, AcceptedSet):
                break
            fewer = [p for p in chosen if p.workload.key != verdict.about]
            if len(fewer) == len(chosen):
                return None
            chosen = fewer
        for piece in reversed(chosen):
            fewer = [p for p in chosen if p is not piece]
            if fewer and need.met(fewer) and isinstance(self.play(group, fewer), AcceptedSet):
                chosen = fewer
        return chosen

    def play(self, group: NoticeGroup, pieces: Sequence[Piece]) -> AcceptedSet | Refusal:
        """Play a set through for a group's contender."""
        assert group.contender is not None
        rules = self._rules(group, pieces)
        return self.state.dry_runs(self.shares).play(rules, pieces)


def parts_of(session: Session, group: NoticeGroup, victim: WorkloadState, *, core: bool) -> list[Piece]:
    """Give what may go of a victim: what moves, task by task."""
    parts = singles_of if group.cause == "consolidate" else pieces_of
    return parts(session, victim, frozenset(), core=core)


def covering(pieces: Sequence[Piece], tasks: Sequence[TaskState]) -> list[Piece]:
    """Give pieces of one workload that are, together, these tasks; none if there are no such."""
    left, found = set(tasks), list[Piece]()
    for piece in sorted(pieces, key=lambda p: -len(p.tasks)):
        if left.issuperset(piece.tasks):
            found.append(piece)
            left.difference_update(piece.tasks)
    return [] if left else found
