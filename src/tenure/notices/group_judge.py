"""Which notices still pay: each group is judged beside what the others were promised, and nothing is changed."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Final

from tenure.engine.refusal import Refusal
from tenure.engine.serving.allocation import held_back
from tenure.engine.state.session import Session
from tenure.engine.state.workloads import TERMINATING, TaskState, WorkloadState
from tenure.model.modes import enabled_for, mode_of
from tenure.model.settings import Cause
from tenure.notices.contended import ContenderNotices
from tenure.notices.groups import NoticeGroup, lift
from tenure.notices.judge import NoticeJudge
from tenure.shields.delay import delay
from tenure.shields.policy import disabled, fence
from tenure.shields.preemptibility import preemptibility
from tenure.victims.bounds.room_demand import RoomDemand
from tenure.victims.dry_run.outcome import NO_ROOM, AcceptedSet
from tenure.victims.recording.record import Price, prices
from tenure.victims.recording.state import EvictionState
from tenure.victims.rules.causes import ConsolidateRules
from tenure.victims.rules.pieces import pieces_of

TAKING: Final[frozenset[Cause]] = frozenset(("reclaim", "preempt"))
"""Causes that take for a contender what another may have instead."""


class GroupJudge:
    """The judge of all groups of one cycle; those that are ``nominated`` could be requeued as things stand.

    ``price`` is what evicting them costs.
    """

    def __init__(self, state: EvictionState, nominated: AbstractSet[str]) -> None:
        self.state = state
        self.session = state.session
        self.nominated = nominated
        self.price: Price = {}

    def paying(self, groups: list[NoticeGroup]) -> dict[NoticeGroup, list[TaskState]]:
        """Give the tasks of each group that still have to go; nothing is changed of the session.

        They may pay as they were planned, one after the other. Else what others were promised holds: each group is
        judged beside them, and those together that do not pay so. What goes on for another than it was told for becomes
        a group of its own, which joins ``groups``.
        """
        others = [g for g in groups if g.cause != "reschedule"]
        with self.state.plugins.budgets.ledger.tentatively():
            found = {g: self._moving(g) for g in groups if g.cause == "reschedule"}
            if all(set(tasks) == set(g.notices) for g, tasks in self._together(others).items()):
                return found | {g: g.tasks for g in others}
            found |= {g: g.tasks for g in others if self._pays_alone(g)}
            for group in [g for g in others if g not in found and self._hold_promises(g)]:
                groups += (handed := self._handed_over(group))
                goes_on = group.held or all(as_promised(self.session, group, ts) for ts in group.by_workload().values())
                found |= {g: g.tasks for g in (*handed, *([group] if goes_on else []))}
            return found | self._together([g for g in others if g not in found])

    def _pays_alone(self, group: NoticeGroup) -> bool:
        """Whether a group pays by itself, those that were evicted since notice was given waiting, or asking as well."""

        def pays(*, wait: bool) -> bool:
            return set(self._together([group], wait=wait)[group]) == set(group.notices)

        return pays(wait=True) or (bool(self._gone_since([group])) and pays(wait=False))

    def _together(self, groups: list[NoticeGroup], *, wait: bool = True) -> dict[NoticeGroup, list[TaskState]]:
        """Judge some groups as if there were none of their notices."""
        found: dict[NoticeGroup, list[TaskState]] = {}
        with self.session.scenario():
            lift(self.session, self.state.placer, groups)
            for workload in self._gone_since(groups) if wait else ():
                self.session.waiting.drop(workload)
            judge = NoticeJudge(ContenderNotices(self.state, self.nominated))
            pending = groups
            while pending:  # what one group leaves may be what another needs: until nothing more is found to pay
                before = len(found)
                found |= {g: tasks for g in pending if (tasks := judge.paying(g))}
                pending = [g for g in pending if g not in found]
                if before == len(found):
                    break
            self.price |= judge.price
        return found | {g: [] for g in pending}

    def _hold_promises(self, group: NoticeGroup) -> bool:
        """Whether others were promised what a group leaves, while its contender has a place, or is promised one.

        What was promised with that place is kept as it is, though the contender itself might need less by now; but not
        where something would go of which nothing is promised, or where others would get the contender's room.
        """
        contender, enabled = group.contender, enabled_for(self.session.settings, "") & TAKING
        if contender is None or group.cause not in enabled or not (group.held or contender.occupied()):
            return False
        victims, places = group.by_workload(), {t.nominated for t in self.session.nominated if t not in group.notices}
        if not all(any(_place(task) in places for task in tasks) for tasks in victims.values()):
            return False
        with self.session.scenario():
            lost = lift(self.session, self.state.placer, [group])
            may_go = all(self._movable(victim, tasks, group) for victim, tasks in victims.items())
            may_go = may_go and not self._is_beaten(group)
        return may_go and any(t.workload not in victims for t in lost)

    def _handed_over(self, group: NoticeGroup) -> list[NoticeGroup]:
        """Let what its contender needs no more go for one that was promised its room, where that pays for it."""
        needed, found = set(self._together([group])[group]), list[NoticeGroup]()
        for tasks in group.by_workload().values():
            others = as_promised(self.session, group, tasks) if needed.isdisjoint(tasks) else []
            if pays := next(filter(self._pays_alone, others), None):
                found.append(pays)
                group.notices = {t: notice for t, notice in group.notices.items() if t not in pays.notices}
        return found

    def _is_beaten(self, group: NoticeGroup) -> bool:
        """Whether others come before a contender that still waits, once all that was told for it has gone."""
        contender, contended = group.contender, ContenderNotices(self.state, self.nominated)
        if contender is None or contender.step is None or contender.entry is None:
            return False
        verdict = contended.play(group, contended.pieces(group))
        return isinstance(verdict, Refusal) and verdict.shield == NO_ROOM

    def _gone_since(self, groups: list[NoticeGroup]) -> list[WorkloadState]:
        """Give those who wait that were evicted with the notice or since: what was promised is kept from them."""
        session, contenders = self.session, {g.contender for g in groups}
        since = min((n.at for g in groups for n in g.notices.values() if n.at is not None), default=session.now)
        waiting = session.waiting.all()
        return [w for w in waiting if (w.last_evicted_at or 0) >= since and w not in contenders]

    def _moving(self, group: NoticeGroup) -> list[TaskState]:
        """Give all tasks of a group that is moved, if its beneficiary still needs that, or their nodes are emptied.

        They have their places to land, so they go as they were planned, or not at all.
        """
        session, settings = self.session, self.session.settings
        if mode_of(settings, group.cause) != "enforce" or group.cause not in settings.actions:
            return []
        if len(group.landings) < len(group.notices):
            return []
        places = list(map(_place, group.notices))
        with session.scenario():
            lift(session, self.state.placer, [group])
            pays = all(self._movable(w, tasks, group) for w, tasks in group.by_workload().items())
            if group.beneficiary is None:
                pays = pays and all(session.nodes.nodes[node].drain for node in places)
            else:
                pays = pays and (self._needs_room(group.contender) or group.half_moved)
        return group.tasks if pays else []

    def _movable(self, workload: WorkloadState, tasks: list[TaskState], group: NoticeGroup) -> bool:
        session, plugins = self.session, self.state.plugins
        refusal = preemptibility(workload) or disabled(session.queues, workload.leaf)
        refusal = refusal or plugins.filter(session, group.cause, group.contender, workload)
        pieces = pieces_of(session, workload, frozenset(), core=True)
        self.price |= {t: p for t, p in prices(self.state, pieces, group.cause, group.contender).items() if t in tasks}
        core = any(p.whole and set(p.tasks) <= set(tasks) for p in pieces)
        return refusal is None or (refusal.core_only and not core)

    def _needs_room(self, contender: WorkloadState | None) -> bool:
        """Whether a contender waits that does not fit as it is, and may be given room."""
        if contender is None or contender.step is None or contender.entry is None:
            return False
        if held_back(self.session, contender, contender.step) or delay(self.session, contender) is not None:
            return False
        if not RoomDemand(self.session, contender.step).met(()):
            return True
        dry_runs = self.state.dry_runs(self.state.fairness.now())
        return not isinstance(dry_runs.play(ConsolidateRules(self.session, contender), ()), AcceptedSet)


def as_promised(session: Session, group: NoticeGroup, tasks: list[TaskState]) -> list[NoticeGroup]:
    """Give tasks of a victim as told for others that were promised their room, and may take from it at all.

    Nothing goes for what moves itself, or waits as it was evicted: that is a victim, and was promised room that was
    left over. It may contend anew.
    """
    victim, places, found = tasks[0].workload, set(map(_place, tasks)), list[NoticeGroup]()
    awaited = (t for t in session.nominated if t.nominated in places and t.leaving < 0)
    heirs = {t.workload for t in awaited if t.workload.last_evicted_at is None} - {group.contender, victim}
    for heir in sorted(heirs, key=lambda w: w.key):
        inside = heir.leaf == victim.leaf
        cause: Cause = "preempt" if inside else "reclaim"
        if heir.priority > victim.priority if inside else fence(session.queues, heir.leaf, victim.leaf) is None:
            notices = {t: replace(group.notices[t], cause=cause, beneficiary=heir.key) for t in tasks}
            found.append(NoticeGroup(cause, heir, heir.key, notices, held=True))
    return found


def _place(task: TaskState) -> int:
    """Where a task runs that is under notice."""
    return task.node if task.phase is TERMINATING else task.leaving
