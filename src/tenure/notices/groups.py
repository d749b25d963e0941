"""What is under notice together, and taking it back in thought or for good."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import add
from typing import cast

from tenure.engine.serving.nominations import TaskNomination, bound_together, nominated_tasks, renew, withdraw
from tenure.engine.serving.placement import Placer
from tenure.engine.state.notices import recall
from tenure.engine.state.session import Session
from tenure.engine.state.workloads import PENDING, TERMINATING, TaskState, WorkloadState
from tenure.model.settings import Cause
from tenure.model.workload import Notice


@dataclass(slots=True, eq=False)
class NoticeGroup:
    """Tasks that were told of their eviction by one cause, for one contender; without a beneficiary, of one workload.

    ``notices`` are what they were told, by task, in the tasks' order. ``held``: the contender holds a nomination.
    ``awaited`` by tasks that moved since, and are to land on their nodes.
    """

    cause: Cause
    contender: WorkloadState | None
    beneficiary: str | None
    notices: dict[TaskState, Notice]
    held: bool = False
    landings: dict[TaskState, TaskNomination] = field(default_factory=dict)
    awaited: Sequence[TaskState] = ()

    @property
    def tasks(self) -> list[TaskState]:
        """All of them."""
        return list(self.notices)

    @property
    def half_moved(self) -> bool:
        """Whether something that moved already has no place where they run on."""
        return any(t.phase is PENDING and t.nominated < 0 for t in self.awaited)

    def by_workload(self) -> dict[WorkloadState, list[TaskState]]:
        """Tasks by workload."""
        found: dict[WorkloadState, list[TaskState]] = {}
        for task in self.notices:
            found.setdefault(task.workload, []).append(task)
        return found

    def noticed_together(self) -> list[list[TaskState]]:
        """Give the tasks of each workload that were told the same at the same time; a core always was."""
        found: dict[tuple[str, Notice], list[TaskState]] = {}
        for task, notice in self.notices.items():
            found.setdefault((task.workload.key, notice), []).append(task)
        return list(found.values())


def groups_of(session: Session) -> list[NoticeGroup]:
    """Give all groups, those first that were told first."""
    found: dict[tuple[str, str, str], NoticeGroup] = {}
    for task in sorted(session.noticed, key=lambda t: (t.workload.key, t.index)):
        notice = task.notice
        assert notice is not None
        whose = notice.beneficiary
        key = notice.cause, whose or "", "" if whose is not None else task.workload.key
        group = found.get(key)
        if group is None:
            contender = session.workloads.get(whose or "")
            held = contender is not None and bool(nominated_tasks(contender))
            group = found[key] = NoticeGroup(cast("Cause", notice.cause), contender, whose, {}, held)
        group.notices[task] = notice
        if task.nominated >= 0:
            group.landings[task] = TaskNomination(task, task.nominated, task.nominated_devices, task.nominated_at)
    moved = {(e.workload, e.task): e.at for e in session.evictions if e.to_node is not None}
    for group in found.values():
        group.awaited = _awaited(session, group, moved)
    return [g for _, g in sorted(found.items(), key=lambda item: (_told(item[1]), item[0]))]


def _told(group: NoticeGroup) -> tuple[int, int]:
    return (
        min(n.deadline if n.at is None else n.at for n in group.notices.values()),
        min(n.deadline for n in group.notices.values()),
    )


def _awaited(session: Session, group: NoticeGroup, moved: Mapping[tuple[str, str], int]) -> list[TaskState]:
    """Give what is to land where a group stands of what ``moved``: when (µs since the epoch), by workload and task."""
    since = min((n.at for n in group.notices.values() if n.at is not None), default=session.now)
    here = {max(t.node, t.leaving) for t in group.notices}
    landing = (t for node in here for t in session.on_node[node] if t.nominated == node and t not in group.notices)
    return [t for t in landing if moved.get((t.workload.key, t.name), -1) >= since]


def lift(
    session: Session,
    placer: Placer,
    groups: Iterable[NoticeGroup],
    tasks: Sequence[TaskState] = (),
    *,
    for_good: bool = False,
) -> list[TaskState]:
    """Undo notices: victims run on, their contenders have no nominations, and what was promised to others on their
    nodes is promised again where there still is room. Gives the tasks of others that lost their nomination.

    ``tasks``: of some victims alone, without a contender. ``for_good``: what was promised because a queue was relieved
    of them is not promised again where its maximum forbids that now; in thought they are only judged, and may go.
    """
    chosen = list(groups)
    victims = [*(t for g in chosen for t in g.notices if t.notice is not None), *tasks]
    own = {t for g in chosen if g.contender is not None for t in nominated_tasks(g.contender) if t not in g.notices}
    nodes = {t.node if t.phase is TERMINATING else t.leaving for t in victims}
    there = {t.workload for node in nodes for t in session.on_node[node] if t.nominated >= 0}
    limited = {q for t in victims for q in session.queues.path[t.workload.leaf] if session.queues.limited[q]}
    asked = session.workloads.values() if limited and for_good else ()
    crowd = {w for w in asked if _shares(session, w, limited)}
    there |= crowd
    others = sorted(there - {t.workload for t in victims}, key=lambda w: (-w.priority, w.created_at, w.key))
    together = [g for w in others for g in bound_together(w) if not own & set(g)]
    together = [g for g in together if g[0].workload in crowd or any(t.nominated in nodes for t in g)]
    withdraw(session, sorted(own, key=lambda t: (t.workload.key, t.index)))
    going = set(victims)
    growth = [t for w in dict.fromkeys(t.workload for t in victims) for t in nominated_tasks(w) if t not in going | own]
    withdraw(session, growth)
    lost = [withdraw(session, group) for group in together]
    for task in victims:
        recall(session, task)
    gone = [
        p.task for promises in lost if not _promise_again(session, placer, promises, for_good) for p in promises
    ] + growth
    touched = {t.workload for t in (*own, *victims)} | {p.task.workload for promises in lost for p in promises}
    for workload in sorted(touched, key=lambda w: w.key):
        session.refresh(workload)
    return gone


def _shares(session: Session, workload: WorkloadState, queues: set[int]) -> bool:
    """Whether a workload holds a nomination, and stands below one of these queues."""
    if workload.leaf < 0 or not queues.intersection(session.queues.path[workload.leaf]):
        return False
    return any(t.nominated >= 0 for t in workload.tasks)


def _promise_again(session: Session, placer: Placer, promises: list[TaskNomination], for_good: bool) -> bool:
    """Promise the same room again if it is still there, and, for good, no maximum forbids it now."""
    first = promises[0]
    amount = first.task.cls.amount_at(first.node, session.nodes)
    for promise in promises[1:]:
        amount = tuple(map(add, amount, promise.task.cls.amount_at(promise.node, session.nodes)))
    if for_good and session.queues.over_max(first.task.workload.leaf, amount) is not None:
        return False
    return renew(session, placer, promises)
