"""Settles what was announced, at the start of each cycle, before anything else is decided.

All notices are judged anew, each beside what the others were promised, and those together that do not pay so. What no
longer pays is withdrawn: the victim runs on, and the contender is planned like all others that wait. What pays is
evicted as soon as the victim has saved its work, has said that it may go, or has no time left; until then its
contender's nominations hold, and so do those of others to which what it leaves was promised: for them it goes as well.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from tenure.engine.plan import PlanStep
from tenure.engine.refusal import Refusal
from tenure.engine.serving.allocation import held_back
from tenure.engine.serving.nominations import nominated_tasks
from tenure.engine.serving.placement import Placer
from tenure.engine.state.cost import MICRO
from tenure.engine.state.notices import announce, expire, over, stand
from tenure.engine.state.session import Session
from tenure.engine.state.workloads import TERMINATING, TaskState, WorkloadState
from tenure.model.modes import enabled_for, mode_of
from tenure.model.settings import Cause
from tenure.model.values.readable import weighted_hours
from tenure.notices.groups import NoticeGroup, groups_of, lift
from tenure.notices.judge import NoticeJudge
from tenure.shields.delay import delay
from tenure.shields.policy import disabled, fence
from tenure.shields.preemptibility import preemptibility
from tenure.victims.bounds.room_demand import RoomDemand
from tenure.victims.dry_run.outcome import NO_ROOM, AcceptedSet
from tenure.victims.recording.record import Price, prices, write_placed
from tenure.victims.recording.state import EvictionState
from tenure.victims.rules.causes import ConsolidateRules
from tenure.victims.rules.pieces import pieces_of

TAKING: Final[frozenset[Cause]] = frozenset(("reclaim", "preempt"))
"""Causes that take for a contender what another may have instead."""


def settle_notices(
    session: Session, placer: Placer, begin: Callable[[], EvictionState], nominated: Callable[[], set[str]]
) -> dict[str, str]:
    """Withdraw notices that no longer pay, and evict those whose time is over.

    Parameters
    ----------
    session, placer
        As they are at the start of the cycle.
    begin
        Starts the cycle's evictions; called when no task is under notice, so that budgets see what runs as running.
    nominated
        Gives who could be requeued as things stand.

    Returns
    -------
    dict
        Workloads that went for requeue, with those that they gave way to.
    """
    return _Settling(session, placer, begin, nominated).run()


class _Settling:
    """One cycle's work."""

    def __init__(
        self, session: Session, placer: Placer, begin: Callable[[], EvictionState], nominated: Callable[[], set[str]]
    ) -> None:
        self.session = session
        self.placer = placer
        self.begin = begin
        self.nominated = nominated
        self.price: Price = {}
        self.requeued: dict[str, str] = {}
        self.state: EvictionState

    def run(self) -> dict[str, str]:
        """Judge, withdraw, evict."""
        groups = groups_of(self.session)
        paying = self._judged(groups)
        changed = [g for g in groups if len(paying[g]) < len(g.notices)]
        kept = [g for g in groups if g not in changed]
        self._lift_for_good(changed, kept, paying)
        for group in changed:
            self._withdraw(group, paying[group])
        for group in (*kept, *(g for g in changed if g.notices)):
            self._go_on(group)
        return self.requeued

    def _judged(self, groups: list[NoticeGroup]) -> dict[NoticeGroup, list[TaskState]]:
        """Give the tasks of each group that still have to go; nothing is changed.

        What others were promised holds: so each group is judged beside them, and those together that do not pay so.
        """
        session, moves = self.session, [g for g in groups if g.cause == "reschedule"]
        others = [g for g in groups if g.cause != "reschedule"]
        with session.scenario():
            lift(session, self.placer, others)
            self.state = self.begin()
            if any(g.cause == "requeue" for g in others):
                overdue = self.nominated()
                self.nominated = lambda: overdue
        with self.state.plugins.budgets.ledger.tentatively():
            found = {g: self._moving(g) for g in moves}
            found |= {g: g.tasks for g in others if self._pays_alone(g)}
            for group in [g for g in others if g not in found and self._hold_promises(g)]:
                groups += (handed := self._handed_over(group))
                goes_on = group.held or all(self._as_promised(group, ts) for ts in group.by_workload().values())
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
            lift(self.session, self.placer, groups)
            for workload in self._gone_since(groups) if wait else ():
                self.session.waiting.drop(workload)
            judge = NoticeJudge(self.state, self.nominated)
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
            lost = lift(self.session, self.placer, [group])
            may_go = all(self._movable(victim, tasks, group) for victim, tasks in victims.items())
            may_go = may_go and not self._is_beaten(group)
        return may_go and any(t.workload not in victims for t in lost)

    def _handed_over(self, group: NoticeGroup) -> list[NoticeGroup]:
        """Let what its contender needs no more go for one that was promised its room, where that pays for it."""
        needed, found = set(self._together([group])[group]), list[NoticeGroup]()
        for tasks in group.by_workload().values():
            others = self._as_promised(group, tasks) if needed.isdisjoint(tasks) else []
            if pays := next(filter(self._pays_alone, others), None):
                found.append(pays)
                group.notices = {t: notice for t, notice in group.notices.items() if t not in pays.notices}
        return found

    def _as_promised(self, group: NoticeGroup, tasks: list[TaskState]) -> list[NoticeGroup]:
        """Give tasks of a victim as told for others that were promised their room, and may take from it at all.

        Nothing goes for what moves itself: it is a victim, and was promised the room as it had to leave another.
        """
        session, victim, places, found = self.session, tasks[0].workload, set(map(_place, tasks)), list[NoticeGroup]()
        awaited = (t for t in session.nominated if t.nominated in places and t.leaving < 0)
        for heir in sorted({t.workload for t in awaited} - {group.contender, victim}, key=lambda w: w.key):
            inside = heir.leaf == victim.leaf
            cause: Cause = "preempt" if inside else "reclaim"
            if heir.priority > victim.priority if inside else fence(session.queues, heir.leaf, victim.leaf) is None:
                notices = {t: replace(group.notices[t], cause=cause, beneficiary=heir.key) for t in tasks}
                found.append(NoticeGroup(cause, heir, heir.key, notices, held=True))
        return found

    def _is_beaten(self, group: NoticeGroup) -> bool:
        """Whether others come before a contender that still waits, once all that was told for it has gone."""
        contender, judge = group.contender, NoticeJudge(self.state, self.nominated)
        if contender is None or contender.step is None or contender.entry is None:
            return False
        verdict = judge.play(group, judge.pieces(group))
        return isinstance(verdict, Refusal) and verdict.shield == NO_ROOM

    def _gone_since(self, groups: list[NoticeGroup]) -> list[WorkloadState]:
        """Give those who wait that were evicted since notice was given: what was promised then is kept from them."""
        session, contenders = self.session, {g.contender for g in groups}
        since = min((n.at for g in groups for n in g.notices.values() if n.at is not None), default=session.now)
        waiting = session.waiting.all()
        return [w for w in waiting if (w.last_evicted_at or 0) > since and w not in contenders]

    # -- moves of the rescheduler -------------------------------------------------------------------------------------

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

    # -- withdrawing --------------------------------------------------------------------------------------------------

    def _lift_for_good(
        self, changed: list[NoticeGroup], kept: list[NoticeGroup], paying: dict[NoticeGroup, list[TaskState]]
    ) -> None:
        """Undo what changes; a group whose promises do not survive that changes as well, and joins ``changed``.

        So does one whose victim would run on with a part of its core, the rest of which was told for another.
        """
        session, state = self.session, self.state
        for group in changed:  # which grows
            contender = group.contender
            nominations = [] if contender is None else nominated_tasks(contender)
            if contender is None:
                going_on = [t for t in group.notices if t not in paying[group]]
                lost = lift(session, state.placer, (), going_on, for_good=True)
            else:
                lost = lift(session, state.placer, [group], for_good=True)
            state.plan.give_up([(t.workload.key, t.index) for t in (*nominations, *lost)])
            stays = {t.workload for t in group.notices if t not in paying[group]}
            halved = {w for w in stays if not w.root.satisfied(nominated=False)}
            again = (g for g in kept if any(t.workload is g.contender or t in g.notices for t in lost)
                     or not halved.isdisjoint(g.by_workload()))  # fmt: skip
            for other in list(again):
                kept.remove(other)
                changed.append(other)
                paying[other] = [] if other.cause == "reschedule" else other.tasks

    def _withdraw(self, group: NoticeGroup, paying: list[TaskState]) -> None:
        """Keep under notice what still pays once the rest of its group runs on."""
        state, notices = self.state, dict(group.notices)
        stays = paying if group.contender is None else self._again(group, paying)
        for task, notice in notices.items():
            if task not in stays:
                del group.notices[task]
                state.lapsed[task] = notice
                state.plan.steps.append(self._withdrawn(task, group))
        for workload in dict.fromkeys(t.workload for t in notices):
            if workload.occupied() and self.session.settings.backfill == "easy":
                state.endings.add(workload)

    def _again(self, group: NoticeGroup, paying: list[TaskState]) -> list[TaskState]:
        """Evict once more those of a group that still have to go, and promise what they make room for."""
        if not paying:
            return []
        notices = {t: group.notices[t] for t in paying}
        smaller = NoticeGroup(
            group.cause, group.contender, group.beneficiary, notices, held=True, awaited=group.awaited
        )
        judge = NoticeJudge(self.state, self.nominated)
        stays = judge.paying(smaller)
        self.price |= judge.price
        for task in stays:
            announce(self.session, task, notices[task])
        write_placed(self.state, judge.placed)
        return stays

    def _withdrawn(self, task: TaskState, group: NoticeGroup) -> PlanStep:
        node, whose = task.node, f" for {group.beneficiary}" if group.beneficiary is not None else ""
        text = f"{task.workload.key} runs on: its eviction by {group.cause}{whose} no longer pays"
        return PlanStep("withdraw", task.workload.key, task.name, self.session.nodes.names[node], task.index, node,
                    task.devices, self.state.cycle, group.cause, group.beneficiary, reason=text)  # fmt: skip

    # -- going on -----------------------------------------------------------------------------------------------------

    def _go_on(self, group: NoticeGroup) -> None:
        """Evict those whose time is over; the others stay under notice."""
        served = dict[WorkloadState, None]()
        for tasks in group.noticed_together():
            workload = tasks[0].workload
            why = over(self.session, workload, tasks)
            if why:
                done = group.cause in TAKING and not group.held  # its contender is promised nothing any more
                going = next(iter(self._as_promised(group, tasks) if done else ()), group)
                self._evict(going, workload, tasks, why)
                served |= {} if going.contender is None else {going.contender: None}
            else:
                self._wait(group, tasks)
        for contender in served:
            self._renew(contender)

    def _wait(self, group: NoticeGroup, tasks: list[TaskState]) -> None:
        state, workload = self.state, tasks[0].workload
        lost = {t: self.price[t][1] for t in tasks}
        state.plugins.budgets.charge(state.session, group.cause, group.contender, lost, tasks)
        if tasks[0].notice != group.notices[tasks[0]]:
            text = self._reason(group, workload, tasks, "it was promised the room that another needs no more")
            for task in tasks:
                state.session.journal.set(task, "notice", group.notices[task])
                state.plan.steps.append(self._evicted(group, task, text)._replace(action="notice"))
        state.evicted.add(workload.key)
        state.wake_at(group.notices[tasks[0]].deadline)

    def _evict(self, group: NoticeGroup, workload: WorkloadState, tasks: list[TaskState], why: str) -> None:
        session, state, text = self.session, self.state, self._reason(group, workload, tasks, why)
        for task in tasks:
            expire(session, task)
            state.plan.steps.append(self._evicted(group, task, text))
        lost = {t: self.price[t][1] for t in tasks}
        state.plugins.budgets.charge(session, group.cause, group.contender, lost)
        state.evicted.add(workload.key)
        if not workload.occupied() and not any(t.notice for t in workload.tasks):
            workload.started_at = None
            workload.evictions = state.before[workload].evictions + 1
        workload.last_evicted_at = session.now
        if group.cause == "requeue" and group.beneficiary is not None:
            self.requeued[workload.key] = group.beneficiary

    def _reason(self, group: NoticeGroup, workload: WorkloadState, tasks: list[TaskState], why: str) -> str:
        whose = f" to {group.beneficiary}" if group.beneficiary is not None else ""

        def reason(cost: float) -> str:
            return f"{workload.key} gives way{whose} ({group.cause}): {why}; the eviction costs {weighted_hours(cost)}"

        return self.state.reason(reason, sum(self.price[t][0] for t in tasks) / MICRO)

    def _evicted(self, group: NoticeGroup, task: TaskState, reason: str) -> PlanStep:
        session, names, notice = self.session, self.session.nodes.names, group.notices[task]
        node, devices = (task.node, task.devices) if task.phase is TERMINATING else (task.leaving, task.leaving_devices)
        price, lost, until = self.price[task]
        return PlanStep(
            "evict", task.workload.key, task.name, names[node], task.index, node, devices, self.state.cycle,
            group.cause, group.beneficiary, price / MICRO, reason,
            names[task.nominated] if task.nominated >= 0 else None, None, session.leaves_at(task), lost, until,
            notice.deadline, -1 if notice.at is None else notice.at,
        )  # fmt: skip

    def _renew(self, contender: WorkloadState) -> None:
        """The time that a nomination may wait runs from the eviction, and not from the notice."""
        for task in nominated_tasks(contender):
            task.nominated_at = self.session.now
        write_placed(self.state, nominated_tasks(contender))


def _place(task: TaskState) -> int:
    """Where a task runs that is under notice."""
    return task.node if task.phase is TERMINATING else task.leaving


def close(session: Session, state: EvictionState | None) -> None:
    """At the end of a cycle: what was only told that it has to go keeps its times, and contends for nothing.

    A notice that was withdrawn and given again as it was is no step of the plan.
    """
    workloads = sorted({t.workload for t in session.noticed}, key=lambda w: w.key)
    lapsed = state.lapsed.items() if state is not None else ()
    known = {("notice", t.workload.key, t.index) for t, notice in lapsed if t.notice == notice}
    if state is not None and known:
        steps = state.plan.steps
        steps[:] = [s for s in steps if (s.action, s.workload, s.task_index) not in known]
    gone = {s.workload for s in state.plan.steps if s.action == "evict"} if state is not None else set()
    for workload in workloads:
        before = state.before.get(workload) if state is not None else None
        if before is not None:
            workload.started_at = before.started_at
            if workload.key not in gone:
                workload.last_evicted_at, workload.not_before = before.last_evicted_at, before.not_before
                workload.evictions = before.evictions
        for task in workload.tasks:
            if task.notice is not None:
                stand(session, task)
        session.refresh(workload)
