"""Settles what was announced, at the start of each cycle, before anything else is decided.

All notices are judged anew, each beside what the others were promised, and those together that do not pay so. What no
longer pays is withdrawn: the victim runs on, and the contender is planned like all others that wait. What pays is
evicted as soon as the victim has saved its work, has said that it may go, or has no time left; until then its
contender's nominations hold, and so do those of others to which what it leaves was promised: for them it goes as well.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet

from tenure.engine.plan import PlanStep
from tenure.engine.serving.nominations import nominated_tasks
from tenure.engine.serving.placement import Placer
from tenure.engine.state.cost import MICRO
from tenure.engine.state.notices import announce, expire, over, stand
from tenure.engine.state.session import Session
from tenure.engine.state.workloads import TERMINATING, TaskState, WorkloadState
from tenure.model.values.readable import weighted_hours
from tenure.notices.contended import ContenderNotices
from tenure.notices.group_judge import TAKING, GroupJudge, as_promised
from tenure.notices.groups import NoticeGroup, groups_of, lift
from tenure.notices.judge import NoticeJudge
from tenure.victims.recording.record import Price, write_placed
from tenure.victims.recording.state import EvictionState


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
    groups = groups_of(session)
    with session.scenario():
        lift(session, placer, [g for g in groups if g.cause != "reschedule"])
        state = begin()
        overdue = nominated() if any(g.cause == "requeue" for g in groups) else set[str]()
    return _Settling(state, overdue).run(groups)


class _Settling:
    """One cycle's work."""

    def __init__(self, state: EvictionState, nominated: AbstractSet[str]) -> None:
        self.state = state
        self.session = state.session
        self.nominated = nominated
        self.price: Price = {}
        self.requeued: dict[str, str] = {}

    def run(self, groups: list[NoticeGroup]) -> dict[str, str]:
        """Judge, withdraw, evict."""
        judge = GroupJudge(self.state, self.nominated)
        paying = judge.paying(groups)
        self.price |= judge.price
        changed = [g for g in groups if len(paying[g]) < len(g.notices)]
        kept = [g for g in groups if g not in changed]
        self._lift_for_good(changed, kept, paying)
        for group in changed:
            self._withdraw(group, paying[group])
        for group in (*kept, *(g for g in changed if g.notices)):
            self._go_on(group)
        return self.requeued

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
        judge = NoticeJudge(ContenderNotices(self.state, self.nominated))
        stays = judge.paying(smaller)
        self.price |= judge.price
        for task in stays:
            announce(self.session, task, notices[task])
        write_placed(self.state, judge.contended.placed)
        return stays

    # -- going on -----------------------------------------------------------------------------------------------------

    def _go_on(self, group: NoticeGroup) -> None:
        """Evict those whose time is over; the others stay under notice."""
        served = dict[WorkloadState, None]()
        for tasks in group.noticed_together():
            workload = tasks[0].workload
            why = over(self.session, workload, tasks)
            if why:
                done = group.cause in TAKING and not group.held  # its contender is promised nothing any more
                going = next(iter(as_promised(self.session, group, tasks) if done else ()), group)
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


def close(session: Session, state: EvictionState | None) -> None:
    """At the end of a cycle: what was only told that it has to go keeps its times, and contends for nothing."""
    workloads = sorted({t.workload for t in session.noticed}, key=lambda w: w.key)
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
