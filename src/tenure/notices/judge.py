"""Whether what was announced still pays: played through once more, as if it had not been announced."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

from tenure.engine.refusal import Refusal
from tenure.engine.serving.allocation import serve
from tenure.engine.state.evictions import evict
from tenure.engine.state.workloads import SUCCEEDED, TaskState, WorkloadState
from tenure.model.modes import mode_of
from tenure.notices.groups import NoticeGroup
from tenure.quota.arming import delays
from tenure.quota.usage import TerminatingUsage, excess_of
from tenure.requeue.rules import RequeueRules
from tenure.shields.delay import delay
from tenure.shields.policy import disabled
from tenure.shields.preemptibility import preemptibility
from tenure.victims.bounds.room_demand import RoomDemand
from tenure.victims.dry_run.outcome import AcceptedSet
from tenure.victims.recording.record import Price, prices
from tenure.victims.recording.state import EvictionState
from tenure.victims.rules.causes import CauseRules, ConsolidateRules, PreemptRules, ReclaimEligibility
from tenure.victims.rules.pieces import Piece, pieces_of, singles_of


class NoticeJudge:
    """The judge of notices, one group after the other, on a session on which all were lifted.

    ``price`` is what evicting them costs, ``placed`` what found a place by that.

    Parameters
    ----------
    state
        The cycle's evictions.
    nominated
        Gives who could be requeued as things stand, when asked.
    """

    def __init__(self, state: EvictionState, nominated: Callable[[], set[str]]) -> None:
        self.state = state
        self.session = state.session
        self._nominated = nominated
        self.settings = state.session.settings
        self.shares = state.fairness.now()
        self.price: Price = {}
        self.placed: list[TaskState] = []

    def paying(self, group: NoticeGroup) -> list[TaskState]:
        """Give the tasks whose eviction still pays; they are evicted, and what they make room for is placed."""
        if mode_of(self.settings, group.cause) != "enforce" or group.cause not in self.settings.actions:
            return []
        if group.cause == "stale-gang":
            return self._stale(group)
        if group.cause == "quota":
            return self._over_max(group) or self._begun(group)
        contender, needed = group.contender, list[TaskState]()
        if contender is not None and contender.step is not None and contender.entry is not None and group.held:
            needed = [t for p in self.contended(group, self.pieces(group)) for t in p.tasks]
        return needed or self._begun(group)

    @cached_property
    def nominated(self) -> set[str]:
        """Who could be requeued."""
        return self._nominated()

    @cached_property
    def leaving(self) -> TerminatingUsage:
        """What terminates, as things were when this was first asked."""
        return TerminatingUsage(self.session)

    # -- for a contender ----------------------------------------------------------------------------------------------

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
                parts = covering(self._pieces_of(group, victim, core=refusal is None), tasks)
                self.price |= prices(self.state, parts, group.cause, group.contender)
                found += parts
        return sorted(found, key=lambda p: p.rank)

    def _pieces_of(self, group: NoticeGroup, victim: WorkloadState, *, core: bool) -> list[Piece]:
        """Give what may go of a victim: what moves, task by task."""
        parts = singles_of if group.cause == "consolidate" else pieces_of
        return parts(self.session, victim, frozenset(), core=core)

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

    def contended(self, group: NoticeGroup, pieces: list[Piece]) -> list[Piece]:
        """Give the pieces without which the contender would not get its places; they stay evicted for it."""
        contender, kept, left = group.contender, list[Piece](), list(pieces)
        assert contender is not None
        if delay(self.session, contender) is not None:
            return []
        while left and contender.step is not None and contender.entry is not None:
            if self._rules(group, left).contender_may() is not None:
                break
            chosen = self._needed(group, contender, left)
            played = None if chosen is None else self.play(group, chosen)
            if chosen is None or not isinstance(played, AcceptedSet):
                break
            self.state.dry_runs(self.shares).carry_out(contender, played)
            self.placed += played.placed
            kept += chosen
            left = [p for p in left if p not in chosen]
        return kept

    def _needed(self, group: NoticeGroup, contender: WorkloadState, pieces: list[Piece]) -> list[Piece] | None:
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

    def _begun(self, group: NoticeGroup) -> list[TaskState]:
        """Give what is left of moves that have begun, and of cores of which the rest went and that stay broken.

        A core goes as a whole. Where its evictions were cut short, and the contender can do without the rest, what is
        left would hold its room and do nothing until it is stale, and what replaces the others would go with it. What
        was moved first may have its place where the others run on.
        """
        session, found = self.session, list[TaskState]()
        gone = {(e.workload, e.cause, e.beneficiary, e.at) for e in session.evictions}
        for victim, tasks in group.by_workload().items():
            told = {(victim.key, group.cause, group.beneficiary, group.notices[task].at) for task in tasks}
            whole = not told & gone or victim.root.satisfied() or self._recovers(victim)
            if (group.half_moved or not whole) and preemptibility(victim) is None:
                found += self._evict(group, covering(self._pieces_of(group, victim, core=True), tasks), victim)
        return found

    def _recovers(self, victim: WorkloadState) -> bool:
        """Whether what a core has lost finds places if nothing more of it goes."""
        with self.session.scenario():
            serve(self.session, self.state.placer, self.shares)
            return bool(victim.root.satisfied())

    # -- for nobody ---------------------------------------------------------------------------------------------------

    def _stale(self, group: NoticeGroup) -> list[TaskState]:
        (workload,) = group.by_workload()
        if workload.root.satisfied() or any(t.phase is SUCCEEDED for t in workload.tasks):
            return []
        pieces = pieces_of(self.session, workload, frozenset(), core=True)
        return self._evict(group, covering(pieces, group.tasks), workload)

    def _over_max(self, group: NoticeGroup) -> list[TaskState]:
        """Give what still has to go because a queue uses more than its max, without breaking a guarantee."""
        (workload,) = group.by_workload()
        session = self.session
        refusal = preemptibility(workload) or disabled(session.queues, workload.leaf)
        refusal = refusal or self.state.plugins.filter(session, "quota", None, workload)
        if refusal is not None and not refusal.core_only:
            return []
        found = []
        pieces = pieces_of(session, workload, frozenset(), core=refusal is None)
        for piece in sorted(covering(pieces, group.tasks), key=lambda p: p.rank):
            if self._is_over(workload, piece):
                found += self._evict(group, [piece], workload)
        return found

    def _is_over(self, workload: WorkloadState, piece: Piece) -> bool:
        session, queues = self.session, self.session.queues
        settings = session.settings.quota_preemption
        if not settings.enabled:
            return False
        armed = delays(queues.queues, settings)
        amount = piece.amount
        path = queues.path[workload.leaf]
        if queues.carried_below_guaranteed(workload.leaf, amount):
            return False
        for number in path:
            if not armed[queues.queues[number].name]:
                continue
            more_by_row = excess_of(session, self.leaving, number)
            helps = [(amount[row], more) for row, more in more_by_row.items() if amount[row]]
            if helps and (settings.overshoot == "minimal" or all(a <= more for a, more in helps)):
                return True
        return False

    def _evict(self, group: NoticeGroup, parts: Sequence[Piece], workload: WorkloadState) -> list[TaskState]:
        self.price |= prices(self.state, parts, group.cause, None)
        tasks = [t for p in parts for t in p.tasks]
        if not tasks or self.state.plugins.validate(self.session, group.cause, None, tasks) is not None:
            return []
        for task in tasks:
            evict(self.session, task)
        self.session.refresh(workload)
        return tasks


def covering(pieces: Sequence[Piece], tasks: Sequence[TaskState]) -> list[Piece]:
    """Give pieces of one workload that are, together, these tasks; none if there are no such."""
    left, found = set(tasks), list[Piece]()
    for piece in sorted(pieces, key=lambda p: -len(p.tasks)):
        if left.issuperset(piece.tasks):
            found.append(piece)
            left.difference_update(piece.tasks)
    return [] if left else found
