"""A session as a problem of the planner: what may be moved, at which cost, and where everything may land."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import gcd
from typing import NamedTuple

import numpy as np

from tenure.engine.refusal import Refusal
from tenure.engine.room.classes import TaskClass
from tenure.engine.room.nodes import FREE_DEVICES
from tenure.engine.state.cost import MICRO, cost, interval_of
from tenure.engine.state.session import Session
from tenure.engine.state.workloads import RUNNING, SubgroupState, TaskState, WorkloadState
from tenure.model.values.duration import format_time
from tenure.rescheduler.memory import CAUSE, MoveMemory, moves_of
from tenure.rescheduler.problem.cooldown import resting
from tenure.rescheduler.problem.definition import Ints, Mask, MoveBound, MoveProblem, PendingMembers
from tenure.rescheduler.problem.devices import Devices, by_device
from tenure.rescheduler.problem.domains import gathered
from tenure.rescheduler.problem.utilization import NodeUtilization, with_unread_kept, with_utilization
from tenure.shields.delay import LEAST_PAUSE
from tenure.shields.opt_out import asked_to_stay, spared
from tenure.shields.plugins import EvictionPlugins
from tenure.shields.policy import disabled
from tenure.shields.preemptibility import belongs_to_node, preemptibility
from tenure.shields.short import below_core
from tenure.victims.recording.state import EvictionState

LARGEST_PRICE = 100_000_000
"""Prices beyond this are rounded to weighted resource-seconds: the solver keeps no more digits apart."""

Kind = tuple[TaskClass, bytes | None]
"""What tasks of one class of a problem have in common: what they ask for, and the nodes that their group's topology
leaves, if it requires any.
"""


@dataclass(frozen=True, slots=True, eq=False)
class ProblemView:
    """A problem, and what its numbers stand for.

    ``asks`` has, for each entry of `Problem.asks`, the tasks that wait (none for a node to be emptied). ``relaxed``
    says that parts of devices, or constraints between tasks, are not in the problem: its bound holds all the same,
    but a plan has to be tried on the session. ``devices`` are those of each shape, where they are told apart.
    ``prices`` are what the tasks cost in millionths of a weighted resource-second, and ``unit`` so many of these are
    one in ``problem.cost``.
    """

    problem: MoveProblem
    tasks: tuple[TaskState, ...]
    classes: tuple[TaskClass, ...]
    asks: tuple[tuple[TaskState, ...], ...]
    relaxed: bool
    devices: Devices = ()
    prices: tuple[int, ...] = ()
    unit: int = MICRO


class MovableWorkload(NamedTuple):
    """A workload of which something may be moved, as far as its own state decides about it.

    ``free`` are the running tasks that do not rest, ``beyond`` those of them that it has beyond its core; they alone
    may be moved where a task of the core rests (``surplus_only``): of a core, one moves alone or all do. A core rests
    as well while its workload holds a nomination for which others were evicted. ``sparing``: one of its tasks asked to
    be spared.
    """

    workload: WorkloadState
    free: tuple[TaskState, ...]
    beyond: tuple[TaskState, ...]
    surplus_only: bool
    sparing: bool


class MovableTasks:
    """The tasks that may be moved, for one pass of the action.

    What does not depend on who contends, and what tasks cost, is looked up once, until something moves (`forget`).
    ``helped`` are the workloads for which others have just been evicted, and until when they stay where they are: that
    moves would follow was not known when it was judged whether those evictions pay. ``until`` is when the first of the
    rules ends that held tasks back (µs since the epoch); None where none is known.
    """

    def __init__(self, state: EvictionState, memory: MoveMemory) -> None:
        self.state = state
        self.session = state.session
        now = self.session.now
        self.rests = {k: at for k, at in resting(self.session, moves_of(self.session, memory)).items() if at > now}
        self.helped = memory.helped_lately(self.session, LEAST_PAUSE)
        self.until = min((*self.rests.values(), *self.helped.values()), default=None)
        self.paid = frozenset[TaskState]()
        self._workloads: list[MovableWorkload] | None = None
        self._prices: dict[TaskState, int] = {}

    def forget(self) -> None:
        """Something moves: workloads are no longer what they were."""
        self._workloads = None
        self._prices = {}

    def tasks(
        self, contenders: Sequence[WorkloadState], drained: int | None = None, *, everybody: bool = False
    ) -> list[TaskState]:
        """Give all tasks that may be moved for all of these contenders, workload by workload.

        ``drained``: the node that is to be emptied; on what is there only budgets that name the cause have a say.
        ``everybody``: also what asked to be spared.
        """
        if self._workloads is None:
            self._workloads = list(self._look_up())
        found: list[TaskState] = []
        for one in self._workloads:
            if one.workload not in contenders:
                found += self._allowed(one, contenders, drained, everybody=everybody)
        return found

    def prices(self, tasks: Sequence[TaskState]) -> list[int]:
        """Give what moving each of some tasks costs, in millionths of a weighted resource-second."""
        known = self._prices
        for task in tasks:
            if task not in known:
                known[task] = cost(self.session, task)
        return [known[task] for task in tasks]

    def cheaper_later(self) -> bool:
        """Whether a move may cost less later than now: what makes checkpoints loses least just after one."""
        return any(interval_of(self.session, task.workload) for task in self.tasks(()))

    def _look_up(self) -> Iterator[MovableWorkload]:
        self.paid = self.state.settled()
        for key in sorted(self.session.workloads):
            workload = self.session.workloads[key]
            if not self._open(workload):
                continue
            running = [t for t in workload.tasks if t.phase is RUNNING and not t.fresh]
            still = {t for t in running if key in self.helped or t in self.paid or (key, t.name) in self.rests}
            free = tuple(t for t in running if t not in still)
            sparing, beyond = any(spared(self.session, t) for t in running), surplus(workload)
            own = tuple(t for t in free if t in beyond)
            yield MovableWorkload(workload, free, own, any(t not in beyond for t in still), sparing)

    def _open(self, workload: WorkloadState) -> bool:
        state = self.state
        return (
            workload.leaf >= 0
            and workload.occupied()
            and workload.key not in state.evicted
            and preemptibility(workload) is None
            and below_core(workload) is None
            and disabled(self.session.queues, workload.leaf) is None
        )

    def _allowed(
        self, one: MovableWorkload, contenders: Sequence[WorkloadState], drained: int | None, *, everybody: bool
    ) -> Sequence[TaskState]:
        """Give what may be moved of a workload; what asked to be spared is moved off a node that is to be emptied."""
        plugins: EvictionPlugins = self.state.plugins
        workload = one.workload
        forced = () if drained is None else [t for t in workload.tasks if t.node == drained]
        surplus_only = one.surplus_only
        if one.sparing and not (forced or everybody):
            self._note_end_of(asked_to_stay(self.session, workload))
            return ()
        for contender in contenders or (None,):
            refusal = plugins.filter(self.session, CAUSE, contender, workload, forced=forced)
            self._note_end_of(refusal)
            if refusal is not None and not refusal.core_only:
                return ()
            surplus_only |= refusal is not None
        return one.beyond if surplus_only else one.free

    def _note_end_of(self, refusal: Refusal | None) -> None:
        if refusal is not None and refusal.until is not None:
            self.note_end(refusal.until)

    def note_end(self, at: int) -> None:
        """Note that a rule ends that holds tasks back."""
        if at > self.session.now:
            self.until = at if self.until is None else min(self.until, at)


def why_still(movable: MovableTasks, task: TaskState, drained: int) -> str:
    """Say why a task stays on a node that is to be emptied."""
    workload, state = task.workload, movable.state
    until, owned = movable.rests.get((workload.key, task.name)), belongs_to_node(workload)
    if owned is not None:
        return owned.message
    told = {
        "another scheduler has bound it": workload.leaf < 0,
        "its workload has lost something else in this cycle": workload.key in state.evicted,
        "it does not run yet": task.phase is not RUNNING,
        f"it was moved lately, and rests until {format_time(until or 0)}": until is not None,
        "others were evicted for what its workload is promised, and it stays meanwhile": task in movable.paid,
        "others have just been evicted for its workload, and it stays meanwhile": workload.key in movable.helped,
    }
    return next((why for why, holds in told.items() if holds), None) or _shielded(movable, workload, drained)


def _shielded(movable: MovableTasks, workload: WorkloadState, drained: int) -> str:
    """Say which shield keeps a workload that runs from being moved off a node that is to be emptied."""
    state = movable.state
    refusal = preemptibility(workload) or disabled(state.session.queues, workload.leaf) or below_core(workload)
    forced = [t for t in workload.tasks if t.node == drained]
    refusal = refusal or state.plugins.filter(state.session, CAUSE, None, workload, forced=forced)
    return "another task of its core rests" if refusal is None else refusal.message


def held(movable: MovableTasks, contenders: Sequence[WorkloadState], *, everybody: bool) -> Counter[str]:
    """Count the running tasks that may not be moved for these contenders, by what holds them; see `MovableTasks`."""
    free, state = set(movable.tasks(contenders, everybody=everybody)), movable.state
    found: Counter[str] = Counter()
    for _, workload in sorted(state.session.workloads.items()):
        if workload.leaf < 0 or workload in contenders:
            continue
        for task in workload.tasks:
            if task.phase is RUNNING and task not in free:
                found[_holder(movable, task, contenders)] += 1
    return found


def _holder(movable: MovableTasks, task: TaskState, contenders: Sequence[WorkloadState]) -> str:
    """Give the name of what holds a task."""
    workload, state = task.workload, movable.state
    if workload.key in movable.helped or any((workload.key, t.name) in movable.rests for t in workload.tasks):
        return "settle"
    if task in movable.paid:
        return "nominated"
    refusal = preemptibility(workload) or disabled(state.session.queues, workload.leaf) or below_core(workload)
    for contender in contenders:
        refusal = refusal or state.plugins.filter(state.session, CAUSE, contender, workload)
    return "opt-out" if refusal is None else refusal.shield


def surplus(workload: WorkloadState) -> set[TaskState]:
    """Give the tasks that a running workload has beyond its core: the last ones in their order."""
    if workload.root.children:
        return set()
    active = [t for t in workload.tasks if t.active]
    return set(active[workload.root.minimum :])


def view(
    state: EvictionState,
    movable: Sequence[TaskState],
    contenders: Sequence[WorkloadState],
    emptied: Sequence[int] = (),
    cooled: Mapping[int, int] | None = None,
    *,
    apart: bool = True,
    exact: bool = False,
    prices: Sequence[int] | None = None,
) -> ProblemView:
    """Write a session as a problem.

    Parameters
    ----------
    state
        The session and its shields.
    movable
        Tasks that may be moved.
    contenders
        Workloads whose next steps are to be placed.
    emptied
        Nodes that all movable tasks have to leave.
    cooled
        Nodes that are hot, and the millicores by which they are to be cooled.
    apart
        Whether devices are told apart where some of them are in use by parts.
    exact
        Whether costs are told apart as finely as they differ, or rounded up to weighted resource-seconds.
    prices
        What the movable tasks cost, where that has been looked up.
    """
    session, nodes = state.session, state.session.nodes
    waiting = gathered(session, contenders)
    forced = {t for t in movable if t.node in emptied}
    own = [own_domain(session, t, t.node) for t in movable]
    kinds = [(t.cls, None if d is None else d.tobytes()) for t, d in zip(movable, own, strict=True)]
    domains = dict(zip(kinds, own, strict=True))
    asked: list[Kind] = [(t.cls, None) for _, (t, *_) in waiting.members]
    number = {kind: i for i, kind in enumerate(dict.fromkeys([*kinds, *asked]))}
    classes = [cls for cls, _ in number]
    parts = any(cls.milli is not None for cls in classes)
    rows = [r for r in range(nodes.rows) if not (parts and nodes.resources[r] == FREE_DEVICES)]
    ask = np.array([_takes(cls, rows, session) for cls in classes], np.int64).reshape(len(classes), len(rows))
    free = nodes.room[nodes.rows :][rows].copy()
    closed = (free < 0).any(axis=0)
    np.maximum(free, 0, out=free)
    allowed = np.array([cls.static for cls in classes], bool).reshape(len(classes), len(nodes)) & ~closed
    draining = np.array([n.drain for n in nodes.nodes], bool)
    draining[list(emptied)] = True
    allowed &= ~draining & nodes.ready  # a move ends where its pod starts again
    for kind, domain in domains.items():
        if domain is not None:
            allowed[number[kind]] &= domain
    asks = [
        PendingMembers(group=group, cls=number[same[0].cls, None], count=len(same)) for group, same in waiting.members
    ]
    places = list(waiting.domains)
    where = np.array([t.node for t in movable], np.int64)
    cls_of = np.array([number[kind] for kind in kinds], np.int64)
    for node in emptied:
        hole = free[:, node] + ask[cls_of[where == node]].sum(axis=0)
        asks.append(PendingMembers(group=len(places), cls=len(ask), count=1))
        places.append(np.zeros(len(nodes), np.int64))
        ask = np.vstack([ask, hole])
        allowed = np.vstack([allowed, np.arange(len(nodes)) == node])
    real = free
    prices = [cost(session, t) for t in movable] if prices is None else prices
    unit = unit_of(prices) if exact else MICRO
    free, ask, units = _reduced(free, ask, [np.bincount(cls_of, minlength=len(ask)), _asked(asks, len(ask))])
    problem = MoveProblem(
        free=free, ask=ask, allowed=allowed, shapes=tuple((c,) for c in range(len(ask))), cls=cls_of,
        shape=cls_of.copy(), node=where,
        cost=np.array([max(1, p // unit if exact else -(-p // unit)) for p in prices], np.int64),
        unit=units_of(movable), asks=tuple(asks),
        domain=np.array(places, np.int64).reshape(len(places), len(nodes)),
        families=tuple(waiting.families), bounds=tuple(_bounds(state, movable, contenders, forced=forced)),
        resources=tuple(nodes.resources[r] for r in rows), nodes=tuple(nodes.names), units=units, real=real,
    )  # fmt: skip
    utilization = NodeUtilization(session) if session.settings.rescheduler.hot_nodes.enabled else None
    if utilization is not None and not utilization.known:
        utilization = None
    if utilization is not None:
        problem, origin = with_utilization(problem, movable, utilization, cooled or {})
        classes = [classes[c] for c in origin if c < len(classes)]
    members = tuple(tuple(same) for _, same in waiting.members)
    relaxed = parts or any(t.terms is not None for t in movable) or any(t.terms is not None for m in members for t in m)
    told = by_device(session, problem, movable, classes) if parts and apart else None
    problem, devices = told or (problem, ())
    if utilization is not None:
        problem, devices = with_unread_kept(problem, movable, utilization, devices)
    return ProblemView(
        problem, tuple(movable), tuple(classes), members, relaxed, devices, tuple(prices), unit
    )  # fmt: skip


def unit_of(prices: Sequence[int]) -> int:
    """Give the largest unit in which all prices are whole numbers; a weighted resource-second if they get too large."""
    unit = gcd(*prices) or MICRO
    return unit if max(prices, default=0) // unit <= LARGEST_PRICE else MICRO


def own_domain(session: Session, task: TaskState, node: int) -> Mask | None:
    """Nodes under the topology that a task's groups require, given that it is on ``node``; None where none do.

    A task that moves stays with its group: the others would have to go along else. Alone it may stand under any value.
    """
    group: SubgroupState | None = task.group
    found: Mask | None = None
    while group is not None:
        required = group.topology.required if group.topology is not None else None
        if required is not None:
            numbers, _ = session.nodes.domains.of(required)
            mates = any(t is not task and (t.node >= 0 or t.nominated >= 0) for g in group.leaves() for t in g.tasks)
            mask = np.asarray(numbers == numbers[node] if mates else numbers >= 0, bool)
            found = mask if found is None else found & mask
        group = group.parent
    return found


def _takes(cls: TaskClass, rows: Sequence[int], session: Session) -> Ints:
    """What one task takes; of a part of a GPU that differs by node, the least, so that the bound holds."""
    takes = cls.ask.copy()
    if cls.milli is not None:
        parts = cls.milli[cls.milli > 0]
        takes[session.nodes.gpu_row] += int(parts.min()) * cls.devices if len(parts) else 0
    return takes[list(rows)]


def _asked(asks: Sequence[PendingMembers], classes: int) -> Ints:
    counts = np.zeros(classes, np.int64)
    for ask in asks:
        counts[ask.cls] += ask.count
    return counts


def _reduced(free: Ints, ask: Ints, counts: Sequence[Ints]) -> tuple[Ints, Ints, tuple[int, ...]]:
    """Divide each resource by what all asks have in common, and cut off room that no task could use.

    The solver reckons in floating point: small whole numbers keep it exact.
    """
    units = [max(1, gcd(*[int(a) for a in ask[:, row]])) if len(ask) else 1 for row in range(ask.shape[1])]
    scale = np.array(units, np.int64)
    small = ask // scale
    number = np.sum(counts, axis=0)
    most = (small * number[:, None]).sum(axis=0) + small.max(axis=0, initial=0)
    return np.minimum(free // scale[:, None], most[:, None]), small, tuple(units)


def units_of(movable: Sequence[TaskState]) -> Ints:
    """Number the cores: of each, one task moves alone or all do."""
    together: dict[WorkloadState, list[int]] = {}
    for place, task in enumerate(movable):
        together.setdefault(task.workload, []).append(place)
    cores = []
    for workload, places in together.items():
        if len(places) > 1:
            beyond = surplus(workload)
            cores.append([place for place in places if movable[place] not in beyond])
    found = np.full(len(movable), -1)
    for number, core in enumerate(sorted(core for core in cores if len(core) > 1)):
        found[core] = number
    return found


def _bounds(
    state: EvictionState,
    movable: Sequence[TaskState],
    contenders: Sequence[WorkloadState],
    *,
    forced: Collection[TaskState],
) -> list[MoveBound]:
    """Budgets that hold for these tasks, whichever contender they are moved for."""
    budgets = state.plugins.budgets
    rows = [
        row
        for contender in (contenders or (None,))
        for row in budgets.rows(state.session, CAUSE, contender, movable, forced=forced)
    ]
    return [
        MoveBound(name=r.rule, weights=r.weights, limit=r.bound, concurrent=r.concurrent, message=r.message)
        for r in rows
    ]
