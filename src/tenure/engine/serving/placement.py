"""Places the tasks of a next step: all of them or none.

Tasks are placed one by one, each on the node that scores best for it given those before; where a step cannot be
completed it is rolled back. What all of its tasks need together is compared with what is there before anything is
tried, so that a step that cannot fit usually costs one vector operation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import chain
from operator import add
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from tenure.engine.room import kernels
from tenure.engine.room.classes import Footprint, TaskClass
from tenure.engine.room.nodes import NOW, THEN
from tenure.engine.room.score import PREFERENCE, UNFIT, WAITS, Scorer
from tenure.engine.state.evictions import nominate_back
from tenure.engine.state.session import Session
from tenure.engine.state.workloads import START, Demand, SubgroupState, TaskState, WorkloadState
from tenure.model.selectors import Topology

Mask = NDArray[np.bool_]

FEW = 16
"""Nodes up to which it takes less time to ask each whether others keep a task off it than to look at all."""


class RemainingCapacity(Protocol):
    """The capacity that remains beside a reservation for another workload."""

    def has_room(self, task: TaskState) -> Mask:
        """Nodes on which one task fits."""

    def has_room_at(self, task: TaskState, node: int) -> bool:
        """Whether one task fits this node."""

    def take(self, task: TaskState) -> bool:
        """Take what a task that was just placed holds, if it is there."""


OwnPlace = Literal["any", "first", "never"]
"""How a task that was evicted looks at the place that it still holds: as at any other, first of all, or never."""


class Placer:
    """Places steps on a session's free and terminating room; with ``remaining`` only on what is left there as well.

    ``own`` says how evicted tasks look at the place, node and devices, that they hold.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self.nodes = session.nodes
        self.scorer = session.scorer
        self.remaining: RemainingCapacity | None = None
        self.own: OwnPlace = "any"

    def place(self, workload: WorkloadState, step: Demand, allowed: Mask | None = None) -> bool:
        """Place all tasks of a step, bound where all of them can be, else all nominated. False: nothing was done.

        ``allowed``: only these nodes.
        """
        topology = workload.root.topology is not None or workload.root.children
        if len(step.tasks) == 1 and not topology:
            return self._one(step.tasks[0], allowed)
        session = self.session
        if not enough(self.scorer, step, allowed) and not has_choice(workload.root):
            return False
        with session.scenario() as scenario:
            if not self._together(workload, step, allowed):
                return False
            self._all_nominated_if_any(step.tasks)
            scenario.keep()
        return True

    def _together(self, workload: WorkloadState, step: Demand, allowed: Mask | None) -> bool:
        """Place the tasks of a step one by one, those that begin a group under the group's topology."""
        unit = workload.root if step.kind == START else _begun(step)
        if unit is None or not (unit.topology or unit.children):
            if self.own == "first" and allowed is None and self.remaining is None and self._stay_together(step.tasks):
                return True
            return all(self._one(task, self._domain_of(task.group, allowed)) for task in narrow_first(step.tasks))
        before = _placed_below(unit)
        allowed = allowed if unit.parent is None else self._domain_of(unit.parent, allowed)
        if not self._group(unit, step.tasks, allowed):
            return False
        now = _placed_below(unit)
        if len(now) - len(before) != len(step.tasks) or any(t not in now for t in step.tasks):
            self.session.journal.set(step, "tasks", [t for t in workload.tasks if t in now and t not in before])
        return True

    def _stay_together(self, tasks: Sequence[TaskState]) -> bool:
        """Promise evicted tasks the places that they still hold, if all are free otherwise; False: nothing was done.

        One after the other they would find the same.
        """
        if any(t.leaving < 0 or t.terms is not None or self._domain_of(t.group, None) is not None for t in tasks):
            return False
        nodes = self.nodes
        asked: dict[int, list[int]] = {}
        parts: dict[tuple[int, int], int] = {}
        for task in tasks:
            node, cls = task.leaving, task.cls
            if not cls.static_list[node]:
                return False
            takes = cls.takes(node, nodes).tolist()
            asked[node] = [*map(add, asked[node], takes)] if node in asked else takes
            for device in task.leaving_devices:
                parts[node, device] = parts.get((node, device), 0) + cls.milli_on(node)
        for node, takes in asked.items():
            if any(
                amount and have < amount for amount, have in zip(takes, nodes.room[nodes.rows :, node], strict=True)
            ):
                return False
        free = {node: nodes.free_devices(node, bindable=False) for node, _ in parts}
        if any(free[node][device] < milli for (node, device), milli in parts.items()):
            return False
        nominate_back(self.session, tasks)
        return True

    def _all_nominated_if_any(self, tasks: list[TaskState]) -> None:
        """Where part of a core has to wait, the whole core is nominated (spec: gangs)."""
        if any(t.nominated >= 0 for t in tasks):
            for task in tasks:
                if task.node >= 0:
                    node, devices = task.node, task.devices
                    self.session.withdraw(task)
                    self.session.nominate(task, node, devices)

    # -- one task -------------------------------------------------------------------------------------------------

    def _one(self, task: TaskState, allowed: Mask | None) -> bool:
        if task.leaving >= 0 and self.own != "any":
            if self.own == "first" and self.stay(task, allowed):
                return True
            if self.own == "never" and not self._other_devices(task):
                allowed = np.ones(len(self.nodes), bool) if allowed is None else allowed.copy()
                allowed[task.leaving] = False
        node, bindable = self.find(task, allowed)
        if node >= 0 and self.remaining is not None and not self.remaining.has_room_at(task, node):
            room = self.remaining.has_room(task)
            node, bindable = self.find(task, room if allowed is None else allowed & room)
        if node < 0:
            return False
        self.put(task, node, bindable=bindable)
        return self.remaining is None or self.remaining.take(task)

    def stay(self, task: TaskState, allowed: Mask | None = None) -> bool:
        """Promise an evicted task the place that it still holds, if that is free otherwise."""
        node, devices = task.leaving, task.leaving_devices
        if (allowed is not None and not allowed[node]) or not self.fits_later(task, node):
            return False
        free, milli = self.nodes.free_devices(node, bindable=False) if devices else [], task.cls.milli_on(node)
        if any(free[d] < milli for d in devices) or (
            self.remaining is not None and not self.remaining.has_room_at(task, node)
        ):
            return False
        self.session.nominate(task, node, devices)
        if self.remaining is None or self.remaining.take(task):
            return True
        self.session.withdraw(task)
        return False

    def _other_devices(self, task: TaskState) -> bool:
        """Whether an evicted task of a part of a GPU finds other devices than its own on its node."""
        cls, node = task.cls, task.leaving
        if cls.milli is None:
            return False
        return len(self.devices(cls, node, bindable=False, but=task.leaving_devices)) == cls.devices

    def find(self, task: TaskState, allowed: Mask | None = None) -> tuple[int, bool]:
        """Give the best node for a task and whether it can be bound there now; -1 if none fits."""
        cls, scorer = task.cls, self.scorer
        node = scorer.best(cls) if allowed is None else scorer.best_of(cls, allowed)
        if node < 0:
            return -1, False  # what looks at other tasks makes no room
        if task.terms is not None and self.session.terms.admission.restricts(task.terms, node):
            return self._find_among_others(task, allowed)
        return node, scorer.bindable(cls, node)

    def _find_among_others(self, task: TaskState, allowed: Mask | None) -> tuple[int, bool]:
        """A task with constraints that look at other tasks."""
        assert task.terms is not None
        terms, scorer, cls = self.session.terms.admission, self.scorer, task.cls
        scorer.catch_up(cls)
        assert cls.key is not None
        few = np.flatnonzero(cls.key > UNFIT if allowed is None else (cls.key > UNFIT) & allowed)
        if len(few) <= FEW and all(terms.keeps_off(task.terms, node, THEN) for node in few.tolist()):
            return -1, False
        now, then = terms.masks(task.terms)
        fits = scorer.fits(cls, slice(None))[0]
        either = then | (now & fits)  # what it has to be near may be there now, and not then
        if allowed is not None:
            either = either & allowed
        preference = terms.preference(task.terms)
        loss = np.where(now | ~fits, 0.0, WAITS) if not now.all() else 0.0
        keys = np.where(either, cls.key - loss, UNFIT)
        if preference is not None:
            keys = keys + preference * PREFERENCE
        node = int(keys.argmax()) if len(keys) else -1
        if node < 0 or keys[node] == UNFIT:
            return -1, False
        return node, bool(now[node]) and scorer.bindable(cls, node)

    def fits_at(self, task: TaskState, node: int) -> bool:
        """Whether a pending task can be bound to this one node now."""
        fits = self.scorer.fit_at(task.cls, node) == kernels.BINDS
        if not fits or task.terms is None:
            return fits
        return self.session.terms.admission.admits(task.terms, node, NOW)

    def fits_later(self, task: TaskState, node: int) -> bool:
        """Whether a pending task fits this one node once what terminates has left."""
        fits = self.scorer.fit_at(task.cls, node) != kernels.UNFIT
        if not fits or task.terms is None:
            return fits
        return self.session.terms.admission.admits(task.terms, node, THEN)

    def put(self, task: TaskState, node: int, *, bindable: bool) -> None:
        """Bind or nominate a task on a node that fits it, on the devices that suit best there."""
        but = task.leaving_devices if self.own == "never" and task.leaving == node else ()
        some = task.cls.whole or task.cls.devices
        now = bindable and not but  # what it holds itself makes no room for it elsewhere before it has left
        devices = self.devices(task.cls, node, bindable=now, but=but) if some else ()
        if bindable and task.leaving < 0:
            self.session.bind(task, node, devices)
        else:
            self.session.nominate(task, node, devices)

    def devices(self, cls: TaskClass, node: int, *, bindable: bool, but: Sequence[int] = ()) -> tuple[int, ...]:
        """Choose the devices of a node for one task, none of those in ``but``."""
        free = self.nodes.free_devices(node, bindable=bindable)
        for device in but:
            free[device] = 0
        if cls.whole:
            return kernels.whole_devices(free, cls.whole)
        assert cls.milli is not None
        if self.scorer.single == "fragmentation" and cls.devices == 1:
            return self.session.fragmentation.devices(cls, node, free)
        later = self.nodes.free_devices(node, bindable=False)
        return kernels.choose_devices(free, later, int(cls.milli[node]), cls.devices, packed=self.scorer.packed)

    # -- topology -------------------------------------------------------------------------------------------------

    def domains(self, step: Demand) -> list[Mask]:
        """Give the sets of nodes on one of which all tasks of a step have to stand; none if any nodes will do."""
        groups = {task.group for task in step.tasks}
        group = groups.pop() if len(groups) == 1 else step.tasks[0].workload.root
        mask = self._domain_of(group, None)
        if mask is None or len(step.tasks) == 1:
            return [] if mask is None else [mask]
        while group.topology is None or group.topology.required is None:
            assert group.parent is not None
            group = group.parent
        ids, _ = self.nodes.domains.of(group.topology.required)
        return [mask & (ids == number) for number in np.unique(ids[mask])]

    def _domain_of(self, group: SubgroupState | None, allowed: Mask | None) -> Mask | None:
        """Nodes that the topology of a group and those around it leaves, given where their other tasks are."""
        while group is not None:
            required = group.topology.required if group.topology else None
            if required is not None:
                placed = [n for t in _tasks_below(group) if (n := t.node if t.node >= 0 else t.nominated) >= 0]
                ids, _ = self.nodes.domains.of(required)
                domains = {int(ids[n]) for n in placed} - {-1}
                mask = np.isin(ids, sorted(domains)) if domains else ids >= 0
                allowed = mask if allowed is None else allowed & mask
            group = group.parent
        return allowed

    def _group(self, group: SubgroupState, tasks: list[TaskState], allowed: Mask | None) -> bool:
        """Place those of the tasks that are below a group under its topology, in the first domain in which they fit."""
        topology = group.topology or Topology()
        if topology.required is not None:  # others of it may have a place already
            allowed = self._domain_of(group, allowed)
        below = set(_tasks_below(group))
        chosen = [t for t in tasks if t in below]
        for mask in self._domains(topology, chosen, allowed):
            with self.session.scenario() as scenario:
                if self._members(group, chosen, mask):
                    scenario.keep()
                    return True
        return False

    def _members(self, group: SubgroupState, chosen: list[TaskState], mask: Mask | None) -> bool:
        if not group.children:
            return all(self._one(t, mask) for t in narrow_first(chosen))
        left = []
        found, picked = 0, set(chosen)
        for child in group.children:
            if picked.isdisjoint(_tasks_below(child)):
                left.append(child)
                found += child.satisfied()
            else:
                found += self._group(child, chosen, mask)
        return found >= group.minimum or self._instead(left, group.minimum - found, mask)

    def _instead(self, groups: list[SubgroupState], missing: int, mask: Mask | None) -> bool:
        """Subgroups that were not chosen for the core are tried in place of those that did not fit."""
        for group in groups:
            core = [] if group.satisfied() else group.core()
            if core and self._may_have(core) and self._group(group, core, mask):
                missing -= 1
                if not missing:
                    return True
        return False

    def _may_have(self, core: list[TaskState]) -> bool:
        amount = Demand(START, core, None).amount
        workload = core[0].workload
        placeable = all(t.cls.placeable for t in core)
        return placeable and self.session.queues.admits(workload.leaf, amount, fixed=workload.fixed)

    def _domains(self, topology: Topology, chosen: list[TaskState], allowed: Mask | None) -> list[Mask | None]:
        """Sets of nodes to try, in order: the preferred level's within the required one's, then the required alone."""
        outer = [allowed] if topology.required is None else self._values(topology.required, chosen, allowed)
        if topology.preferred is None:
            return outer
        inner = list(chain.from_iterable(self._values(topology.preferred, chosen, mask) for mask in outer))
        return [*inner, *outer]

    def _values(self, label: str, chosen: list[TaskState], allowed: Mask | None) -> list[Mask | None]:
        """One set of nodes for each value of a label with room enough, the fullest first (the emptiest, for spread)."""
        ids, values = self.nodes.domains.of(label)
        nodes, classes = self.nodes, Counter(t.cls.id for t in chosen)
        by_id = {t.cls.id: t.cls for t in chosen}
        row = nodes.gpu_row if any(t.cls.whole or t.cls.devices for t in chosen) else max(nodes.cpu_row, 0)
        found = []
        for number in range(len(values)):
            mask = ids == number
            if allowed is not None:
                mask &= allowed
            if all(self.scorer.capacity(by_id[c], mask) >= n for c, n in classes.items()):
                free = int(nodes.room[nodes.rows + row][mask].sum())
                found.append((free if self.scorer.packed else -free, number, mask))
        return [mask for _, _, mask in sorted(found, key=lambda f: f[:2])]


def enough(scorer: Scorer, step: Demand, allowed: Mask | None = None) -> bool:
    """Whether there is room for the tasks of each class, and of each footprint: if not, the step cannot be placed.

    Tasks of other classes are not counted, but those of the same footprint are: they want the same room.
    """
    classes = step.classes
    if len(classes) > 1 and not all(scorer.capacity(cls, allowed) >= n for cls, n in _by_footprint(classes).items()):
        return False
    return all(scorer.capacity(cls, allowed) >= n for cls, n in classes.items())


def narrow_first(tasks: Sequence[TaskState]) -> Sequence[TaskState]:
    """Give tasks in the order in which they are placed: among those of a footprint those first that fewer nodes admit.

    So a task that may go anywhere does not take the room of one that may not, and a gang is not refused for that.
    """
    if all(t.cls is tasks[0].cls for t in tasks):
        return tasks
    alike: dict[Footprint, list[TaskState]] = {}
    for task in tasks:
        alike.setdefault(task.cls.footprint, []).append(task)
    turns = {footprint: iter(sorted(of, key=_admitted)) for footprint, of in alike.items()}
    return [next(turns[task.cls.footprint]) for task in tasks]


def _admitted(task: TaskState) -> int:
    return task.cls.admitted


def _by_footprint(classes: Counter[TaskClass]) -> dict[TaskClass, int]:
    """Count tasks of classes that a wider one covers as if they were of that, which may go wherever they may."""
    found: dict[TaskClass, int] = {}
    for cls, number in classes.items():
        wider = cls.wider() or cls
        found[wider] = found.get(wider, 0) + number
    return found


def may_move(session: Session) -> bool:
    """Whether what runs has other places: on one node only parts of GPUs have."""
    return len(session.nodes) > 1 or any(cls.milli is not None for cls in session.classes.classes)


def has_choice(group: SubgroupState) -> bool:
    """Whether other subgroups may do instead of those that were chosen for the core."""
    return any(has_choice(c) for c in group.children) or 0 < group.minimum < len(group.children)


def fixed_of(step: Demand) -> tuple[TaskState, ...]:
    """Give the tasks of a step, if no other subgroups may do instead of those that it names; else none."""
    choice = (step.kind == START or len(step.tasks) > 1) and has_choice(step.tasks[0].workload.root)
    return () if choice else tuple(step.tasks)


def _begun(step: Demand) -> SubgroupState | None:
    """Give the group of which nothing is placed yet and which a step of several tasks begins; None for other steps."""
    group: SubgroupState | None = step.tasks[0].group
    if len(step.tasks) > 1:
        while group is not None and group.parent is not None and not set(step.tasks) <= set(_tasks_below(group)):
            group = group.parent
    return None if group is None or group.parent is None or _placed_below(group) else group


def _placed_below(group: SubgroupState) -> set[TaskState]:
    return {t for t in _tasks_below(group) if t.node >= 0 or t.nominated >= 0}


def _tasks_below(group: SubgroupState) -> list[TaskState]:
    return [*group.tasks, *chain.from_iterable(_tasks_below(c) for c in group.children)]
