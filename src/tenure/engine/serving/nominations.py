"""Nominations: what is promised together, when a promise has waited too long, and who may take its room.

Source: the specification's section on the cycle, "Nominations are kept".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from operator import add, sub
from typing import NamedTuple

from tenure.engine.serving.order import QueueShares, queue_key
from tenure.engine.serving.placement import Placer
from tenure.engine.state.notices import notice_of
from tenure.engine.state.queues import Amount
from tenure.engine.state.session import Session
from tenure.engine.state.workloads import Demand, SubgroupState, TaskState, WorkloadState

BY_QUEUE = 6
"""Rules between sibling queues that tell more than age and name."""


Rank = tuple[object, ...]

ContenderKind = tuple[int, int, int, int, bool]
"""Leaf, shape and kind of the step, priority, and whether it is not preemptible."""


class TaskNomination(NamedTuple):
    """The nomination of one task."""

    task: TaskState
    node: int
    devices: tuple[int, ...]
    at: int


def nominated_tasks(workload: WorkloadState) -> list[TaskState]:
    """Give the tasks of a workload that hold a nomination."""
    return [t for t in workload.tasks if t.nominated >= 0]


def bound_together(workload: WorkloadState) -> list[list[TaskState]]:
    """Give the nominated tasks in the groups that are bound all or none: a core, a new subgroup; else each alone."""
    if not workload.occupied():
        return [nominated_tasks(workload)]
    groups: dict[int, list[TaskState]] = {}
    for task in nominated_tasks(workload):
        unit = _starting(task.group)
        groups.setdefault(id(task) if unit is None else id(unit), []).append(task)
    return list(groups.values())


def _starting(group: SubgroupState) -> SubgroupState | None:
    """Give the highest group around this one that does not run yet; the workload itself does."""
    found = None
    while group.parent is not None:
        if not group.satisfied(nominated=False) and not any(t.active for g in group.leaves() for t in g.tasks):
            found = group
        group = group.parent
    return found


def is_whole(workload: WorkloadState) -> bool:
    """Whether what is nominated would let the workload run: part of a core is promised nothing.

    Nor are the parts of two plans, which need not fit together: where some nominations could not be written, those of
    an earlier plan stand beside those of the last.
    """
    times = {task.nominated_at for task in nominated_tasks(workload)}
    return workload.occupied() or any(_promised_at(workload.root, at) for at in times)


def _promised_at(group: SubgroupState, at: int) -> bool:
    """Whether the nominations of one time are enough for a group."""
    if group.children:
        return sum(_promised_at(child, at) for child in group.children) >= group.minimum
    others = sum(task.nominated >= 0 and task.nominated_at != at for task in group.tasks)
    return group.running - others >= group.minimum


def overdue(session: Session, tasks: list[TaskState]) -> bool:
    """Whether nominations that are bound together have waited longer than they may.

    The timeout runs from the last of them, or from the last notice that still has to end, and the longest grace period
    of what still has to leave comes on top.
    """
    latest = max(t.nominated_at for t in tasks)
    if session.noticed:
        there = (t for task in tasks for t in session.on_node[task.nominated] if t.notice is not None)
        latest = max([latest, *(t.notice.deadline for t in there if t.notice is not None)])
    grace = max(session.longest_grace(t) for t in tasks)
    return session.now > latest + session.settings.nomination_timeout + grace


def serve_nominations(
    session: Session, placer: Placer
) -> Iterator[tuple[WorkloadState, list[TaskState], list[TaskState]]]:
    """Bind nominated tasks whose room is there now: a core as a whole, everything else one by one.

    Gives each workload that holds nominations, in order, with what of it was bound and what lost its nomination,
    because that had waited too long or would not let the workload run. What it asks for next is not worked out yet.
    """
    held = {t.workload for t in session.nominated}
    for workload in sorted(held, key=lambda w: (-w.priority, w.created_at, w.key)):
        bound: list[TaskState] = []
        lost: list[TaskState] = []
        for group in bound_together(workload):
            whole = is_whole(workload)
            if whole and bind_group(session, placer, group):
                bound += group
            elif not whole or overdue(session, group):
                withdraw(session, group)
                lost += group
        yield workload, bound, lost


def bind_group(session: Session, placer: Placer, tasks: Sequence[TaskState]) -> bool:
    """Bind nominated tasks that are bound together, if there is room for all of them now; else they stay nominated."""
    if session.queues.under_notice and any(is_crowded(session, task) for task in tasks):
        return False
    with session.scenario() as together:
        for task in tasks:
            node, devices = task.nominated, task.nominated_devices
            session.withdraw(task)
            found = _room_now(placer, task, node, devices)
            if found is None:
                return False
            session.bind(task, node, found)
        together.keep()
    return True


def is_crowded(session: Session, task: TaskState) -> bool:
    """Whether its queue has room for it, where it is placed, only once others have gone that were told to."""
    amount = task.cls.amount_at(max(task.node, task.nominated), session.nodes)
    return session.queues.crowded(task.workload.leaf, amount)


def _room_now(placer: Placer, task: TaskState, node: int, devices: tuple[int, ...]) -> tuple[int, ...] | None:
    """Give the devices on which a task can be bound to a node now: those of its promise, else others; None for none."""
    nodes, cls = placer.nodes, task.cls
    if task.leaving >= 0 or not placer.fits_at(task, node):
        return None
    free, milli = nodes.free_devices(node, bindable=True) if devices else [], cls.milli_on(node)
    if all(free[d] >= milli for d in devices):
        return devices
    others = placer.devices(cls, node, bindable=True)
    return others if len(others) == len(devices) else None


def withdraw(session: Session, tasks: Iterable[TaskState]) -> list[TaskNomination]:
    """Give nominations up, and say what they were."""
    promises = []
    for task in tasks:
        promises.append(TaskNomination(task, task.nominated, task.nominated_devices, task.nominated_at))
        session.withdraw(task)
    return promises


def renew(session: Session, placer: Placer, promises: list[TaskNomination]) -> bool:
    """Promise the same room again if it is still there; False: nothing was done."""
    with session.scenario() as scenario:
        for task, node, devices, at in promises:
            free = session.nodes.free_devices(node, bindable=False) if devices else []
            milli = task.cls.milli_on(node)
            if not placer.fits_later(task, node) or any(free[d] < milli for d in devices):
                return False
            session.nominate(task, node, devices)
            session.journal.set(task, "nominated_at", at)
        scenario.keep()
    return True


def beatable(workload: WorkloadState) -> list[TaskState]:
    """Give the nominated tasks whose room a workload that ranks ahead may take.

    Where the workload runs and its core needs them, they are moves or replacements, which no workload beats.
    """
    return [] if workload.occupied() and not workload.root.satisfied(nominated=False) else nominated_tasks(workload)


def kind_of(workload: WorkloadState, step: Demand) -> ContenderKind:
    """Give what workloads that wait have in common that fare alike; for steps that have a shape."""
    return workload.leaf, id(step.shape), step.kind, workload.priority, workload.fixed


class BeatableNominations:
    """The nominations that were there when a pass began, and that may be beaten in it; each at most once."""

    def __init__(self, session: Session, placer: Placer, shares: QueueShares) -> None:
        self.session = session
        self.placer = placer
        self.shares = shares
        held = [w for w in {t.workload for t in session.nominated} if w.leaf >= 0 and beatable(w)]
        self.workloads = sorted(held, key=lambda w: (w.priority, -w.created_at, w.key))
        self._passed: dict[int, dict[Amount, None]] = {}
        self._in_vain: set[ContenderKind] = set()
        self._promised: dict[WorkloadState, int] = {}
        self._last: dict[tuple[int, int], tuple[int, int, Rank | None]] = {}
        self._ranks: dict[tuple[int, WorkloadState], tuple[Amount, Rank]] = {}
        self._victims = {(e.workload, e.beneficiary) for e in session.evictions} if held else set()

    def beaten_by(self, contender: WorkloadState, step: Demand) -> list[TaskState]:
        """Place a step on room that is nominated to workloads behind it; gives those that lost it, if that helps.

        Nominations are taken from the back, and are given back where the contender does not need the room. To be
        asked about all that find no room, in order. Where one could not take any, those cannot that stand alike and
        come later, as long as nothing is placed.
        """
        alike = kind_of(contender, step)
        lost = [] if alike in self._in_vain else self._beaten_by(contender, step)
        if lost:
            self._passed.clear()  # the pass begins anew
            self._last.clear()
            self._in_vain.clear()
            return lost
        self._passed.setdefault(contender.leaf, {})[step.amount] = None
        if step.shape is not None and all(self._may_take(contender, rival) for rival in self.workloads):
            self._in_vain.add(alike)
        return lost

    def note_placed(self) -> None:
        """Note that something was placed: others may rank ahead of a nomination now."""
        self._in_vain.clear()

    def _beaten_by(self, contender: WorkloadState, step: Demand) -> list[TaskState]:
        with self.session.scenario() as scenario:
            lost = self._make_room(contender, step)
            if lost:
                scenario.keep()
        return self._settled(lost)

    def _make_room(self, contender: WorkloadState, step: Demand) -> list[list[TaskNomination]]:
        """Withdraw nominations behind a contender until its step is placed; gives them, or none where it is not."""
        session = self.session
        lost: list[list[TaskNomination]] = []
        own: dict[int, Rank] = {}
        for rival in self.workloads:
            if not self._may_take(contender, rival) or not self._is_ahead(contender, step, rival, own):
                continue
            promises = withdraw(session, beatable(rival))
            if promises:
                lost.append(promises)
            if session.queues.admits(contender.leaf, step.amount, fixed=contender.fixed) and self.placer.place(
                contender, step
            ):
                return lost
        return []

    def _may_take(self, contender: WorkloadState, rival: WorkloadState) -> bool:
        """Whether it is another workload, which was not evicted for the nomination, nor since that was promised."""
        if rival is contender or (contender.key, rival.key) in self._victims:
            return False
        return contender.last_evicted_at is None or contender.last_evicted_at < self._since(rival)

    def _since(self, rival: WorkloadState) -> int:
        """When nominations were promised, at the earliest: what leaves for them may have been under notice before."""
        since = self._promised.get(rival)
        if since is None:
            session, tasks = self.session, nominated_tasks(rival)
            leaving = {t.workload for task in tasks for t in session.on_node[task.nominated] if t in session.leaving}
            notice = max((notice_of(session, w) for w in leaving), default=0)
            since = self._promised[rival] = min((t.nominated_at for t in tasks), default=0) - notice
        return since

    def _is_ahead(self, contender: WorkloadState, step: Demand, rival: WorkloadState, own: dict[int, Rank]) -> bool:
        """Whether a contender ranks ahead by queue or priority of one whose nomination were not there.

        Its turn comes after that of those who wait before it in its leaf, though they got nothing: else the room would
        go to a workload to which the play-through did not give it. ``own``: by queue, how it ranks there.
        """
        if contender.leaf == rival.leaf:
            return contender.priority > rival.priority
        mine, theirs = self.session.queues.meeting(contender.leaf, rival.leaf)
        rank = own.get(mine)
        if rank is None:
            rank = own[mine] = self._last_rank(contender.leaf, step, mine)
        return rank < self._rank(rival, theirs)

    def _last_rank(self, leaf: int, step: Demand, queue: int) -> Rank:
        """How a queue ranks with a step of a leaf below it: as with the last of all that had their turn there before.

        Of these is known how the queue ranked, as long as it holds what it did; only what came since is looked at.
        """
        passed, version = self._passed.get(leaf, {}), self.session.queues.versions[queue]
        known = self._last.get((leaf, queue))
        seen, last = known[1:] if known is not None and known[0] == version else (0, None)
        for amount in islice(passed, seen, None):
            rank = queue_key(self.session, self.shares, queue, amount)[:BY_QUEUE]
            last = rank if last is None or rank > last else last
        self._last[leaf, queue] = version, len(passed), last
        own = queue_key(self.session, self.shares, queue, step.amount)[:BY_QUEUE]
        return own if last is None or own > last else last

    def _rank(self, rival: WorkloadState, queue: int) -> Rank:
        """How a queue would rank with a workload below it that is nominated, if it were pending instead."""
        session, allocated = self.session, self.session.queues.allocated[queue]
        known = self._ranks.get((queue, rival))
        if known is None or known[0] is not allocated:
            tasks, nodes = beatable(rival), session.nodes
            without, amount = allocated, (0,) * len(allocated)
            for task in tasks:
                amount = tuple(map(add, amount, task.cls.amount))
                without = tuple(map(sub, without, task.cls.amount_at(task.nominated, nodes)))
            key = queue_key(session, self.shares, queue, amount, without)[:BY_QUEUE]
            known = self._ranks[queue, rival] = allocated, key
        return known[1]

    def _settled(self, lost: list[list[TaskNomination]]) -> list[TaskState]:
        gone = [promises for promises in reversed(lost) if not renew(self.session, self.placer, promises)]
        for promises in gone:
            self.workloads.remove(promises[0].task.workload)
        return [p.task for promises in gone for p in promises]
