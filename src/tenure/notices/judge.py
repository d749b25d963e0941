"""Whether what was announced still pays: played through once more, as if it had not been announced."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from tenure.engine.serving.allocation import serve
from tenure.engine.state.evictions import evict
from tenure.engine.state.workloads import SUCCEEDED, TaskState, WorkloadState
from tenure.model.modes import mode_of
from tenure.notices.contended import ContenderNotices, covering, parts_of
from tenure.notices.groups import NoticeGroup
from tenure.quota.arming import delays
from tenure.quota.usage import TerminatingUsage, excess_of
from tenure.shields.policy import disabled
from tenure.shields.preemptibility import preemptibility
from tenure.victims.recording.record import Price, prices
from tenure.victims.rules.pieces import Piece, pieces_of


class NoticeJudge:
    """The judge of notices, one group after the other, on a session on which all were lifted.

    ``price`` is what evicting them costs; ``contended`` judges those that were given for a contender.
    """

    def __init__(self, contended: ContenderNotices) -> None:
        self.contended = contended
        self.state = contended.state
        self.session = contended.session
        self.shares = contended.shares
        self.price: Price = {}

    def paying(self, group: NoticeGroup) -> list[TaskState]:
        """Give the tasks whose eviction still pays; they are evicted, and what they make room for is placed."""
        settings = self.session.settings
        if mode_of(settings, group.cause) != "enforce" or group.cause not in settings.actions:
            return []
        if group.cause == "stale-gang":
            return self._stale(group)
        if group.cause == "quota":
            return self._over_max(group) or self._begun(group)
        contender, needed = group.contender, list[Piece]()
        if contender is not None and contender.step is not None and contender.entry is not None and group.held:
            pieces = self.contended.pieces(group)
            self.price |= prices(self.state, pieces, group.cause, contender)
            needed = self.contended.needed(group, pieces)
        goes = [t for p in needed for t in p.tasks]
        return goes if goes and not group.half_moved else [*goes, *self._begun(group, goes)]

    @cached_property
    def leaving(self) -> TerminatingUsage:
        """What terminates, as things were when this was first asked."""
        return TerminatingUsage(self.session)

    def _begun(self, group: NoticeGroup, needed: Sequence[TaskState] = ()) -> list[TaskState]:
        """Give, besides what is ``needed``, what is left of moves that have begun, and of cores that stay broken.

        A core goes as a whole. Where its evictions were cut short, and the contender can do without the rest, what is
        left would hold its room and do nothing until it is stale, and what replaces the others would go with it. What
        was moved first may have its place where the others run on.
        """
        session, found, others = self.session, list[TaskState](), set(needed)
        gone = {(e.workload, e.cause, e.beneficiary, e.at) for e in session.evictions}
        for victim, own in group.by_workload().items():
            tasks = [t for t in own if t not in others]
            told = {(victim.key, group.cause, group.beneficiary, group.notices[task].at) for task in tasks}
            whole = not told & gone or victim.root.satisfied() or self._recovers(victim)
            if (group.half_moved or not whole) and preemptibility(victim) is None:
                found += self._evict(group, covering(parts_of(session, group, victim, core=True), tasks), victim)
        return found

    def _recovers(self, victim: WorkloadState) -> bool:
        """Whether what a core has lost finds places if nothing more of it goes."""
        with self.session.scenario():
            serve(self.session, self.state.placer, self.shares)
            return bool(victim.root.satisfied())

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
