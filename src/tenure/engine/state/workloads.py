"""Workloads and tasks as the engine keeps them while it decides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from operator import add, attrgetter
from typing import Final

from tenure.engine.room.classes import TaskClass
from tenure.engine.state.queues import Amount
from tenure.engine.terms.task_terms import TaskTerms
from tenure.model.selectors import Topology
from tenure.model.workload import Notice, Phase, SubGroup, Task, Workload, remembered

PENDING, GATED, BOUND, RUNNING = Phase.PENDING, Phase.GATED, Phase.BOUND, Phase.RUNNING
TERMINATING, SUCCEEDED, FAILED = Phase.TERMINATING, Phase.SUCCEEDED, Phase.FAILED

REPLACE, START, GROW = 0, 1, 2
"""Kinds of a next step, in the order in which a leaf serves them within one priority."""

_CLASS: Final = attrgetter("cls")


class TaskState:
    """A task while it is being decided about. ``node`` and ``nominated`` are numbers of nodes, -1 for none.

    ``phase`` is the phase in this session: a placed task is `Phase.BOUND` as soon as it is decided. ``fresh`` says
    that this happened in the present cycle. A task that was evicted is pending again, and still holds its devices on
    the node ``leaving`` until it has left there. One under ``notice`` still runs in the cluster, and is here as if it
    terminated at its deadline.
    """

    __slots__ = (
        "cls", "devices", "fresh", "group", "index", "leaving", "leaving_devices", "model", "node", "nominated",
        "nominated_at", "nominated_devices", "notice", "phase", "stuck", "terminating_since", "terms", "workload",
    )  # fmt: skip

    saved = (
        "devices", "fresh", "leaving", "leaving_devices", "node", "nominated", "nominated_at", "nominated_devices",
        "phase", "stuck", "terminating_since",
    )  # fmt: skip

    def __init__(self, model: Task, index: int, workload: WorkloadState, cls: TaskClass) -> None:
        self.model = model
        self.index = index
        self.workload = workload
        self.cls = cls
        self.terms: TaskTerms | None = None
        self.phase = PENDING if model.phase is not GATED else GATED
        self.node = -1
        self.devices: tuple[int, ...] = ()
        self.nominated = -1
        self.nominated_devices: tuple[int, ...] = ()
        self.nominated_at = 0
        self.leaving = -1
        self.leaving_devices: tuple[int, ...] = ()
        self.terminating_since = 0
        self.fresh = False
        self.stuck = False
        self.notice: Notice | None = None
        self.group: SubgroupState

    @property
    def active(self) -> bool:
        """Whether it is bound, runs, or has succeeded."""
        return self.phase is RUNNING or self.phase is BOUND or self.phase is SUCCEEDED

    @property
    def asks(self) -> bool:
        """Whether it counts for its queue while it is pending: no queue waits for what is never placed."""
        return self.workload.leaf >= 0 and self.cls.placeable

    @property
    def name(self) -> str:
        """Name of the task."""
        return self.model.name


class SubgroupState:
    """A node of the tree of subgroups, the workload itself being its root.

    ``minimum`` counts tasks of a leaf, or subgroups of an inner node.
    """

    __slots__ = ("children", "minimum", "name", "parent", "tasks", "topology")

    def __init__(self, name: str, topology: Topology | None, parent: SubgroupState | None) -> None:
        self.name = name
        self.topology = topology
        self.parent = parent
        self.children: list[SubgroupState] = []
        self.tasks: list[TaskState] = []
        self.minimum = 0

    def leaves(self) -> Iterator[SubgroupState]:
        """All leaves below, in order."""
        if not self.children:
            yield self
        for child in self.children:
            yield from child.leaves()

    @property
    def running(self) -> int:
        """Number of its own tasks that are active or nominated."""
        found = 0
        for task in self.tasks:  # a generator would cost more than the loop
            phase = task.phase
            if phase is RUNNING or phase is BOUND or phase is SUCCEEDED or task.nominated >= 0:
                found += 1
        return found

    @property
    def rigid(self) -> bool:
        """Whether what runs of it can only go as a whole: there are no subgroups, and no surplus."""
        return not self.children and sum(t.active for t in self.tasks) <= self.minimum

    @property
    def size(self) -> int:
        """Number of tasks of which it is satisfied at the least."""
        if not self.children:
            return self.minimum
        return sum(sorted(c.size for c in self.children)[: self.minimum])

    def satisfied(self, *, nominated: bool = True) -> bool:
        """Whether enough of it is active, or, unless ``nominated`` is false, nominated."""
        if not self.children:
            return (self.running if nominated else sum(t.active for t in self.tasks)) >= self.minimum
        return sum(c.satisfied(nominated=nominated) for c in self.children) >= self.minimum

    def core(self) -> list[TaskState] | None:
        """Tasks to place so that it is satisfied, or None if there are not enough that could be placed."""
        if self.children:
            return self._core_of_children()
        missing = self.minimum - self.running
        if missing <= 0:
            return []
        waiting = [t for t in self.tasks if t.nominated < 0 and (t.phase is PENDING or t.phase is GATED)][:missing]
        if len(waiting) < missing or any(t.phase is GATED for t in waiting):
            return None
        return waiting

    def _core_of_children(self) -> list[TaskState] | None:
        chosen: list[TaskState] = []
        found = 0
        for child in self.children:
            core = child.core() if found < self.minimum else None
            if core is not None:
                chosen += core
                found += 1
        return chosen if found >= self.minimum else None


class Demand:
    """The next request of a pending workload: ``tasks`` all or nothing, ``amount`` in all.

    ``shape`` identifies steps that fit or fail alike; None where that cannot be said.
    """

    __slots__ = ("_classes", "_counted", "amount", "kind", "shape", "tasks")

    def __init__(self, kind: int, tasks: list[TaskState], shape: Shape | None) -> None:
        self.kind = kind
        self.tasks = tasks
        self.shape = shape
        self._classes: Counter[TaskClass] | None = None
        self._counted = tasks
        if shape is not None:
            self.amount = shape.amount
        elif len(tasks) == 1:
            self.amount = tasks[0].cls.amount
        else:
            self.amount = _amount_of(self.classes)

    @property
    def classes(self) -> Counter[TaskClass]:
        """How many of its tasks there are of each class; those of one without a shape are counted once."""
        if self.shape is not None:
            return self.shape.classes
        if self._classes is None or self._counted is not self.tasks:
            self._classes, self._counted = _count_classes(self.tasks), self.tasks
        return self._classes


class Shape:
    """The shape of a demand: demands of one shape fit or fail alike.

    ``largest`` lists row and amount of the most that one task of them takes from a node, ``classes`` how many tasks
    there are of each class, ``amount`` is theirs in all; ``failed`` is the epoch of room in which they last failed.
    ``steady``: what failed fails for as long as room only shrinks. Else it may fit beside others that were placed
    since, or these send a gang elsewhere, where it fits.
    """

    __slots__ = ("amount", "classes", "failed", "failed_beside", "largest", "steady")

    def __init__(self, tasks: list[TaskState], *, steady: bool = True) -> None:
        self.steady = steady
        self.classes = _count_classes(tasks)
        self.amount = _amount_of(self.classes)
        most: dict[int, int] = {}
        for cls in self.classes:
            for row, amount in cls.asks:
                most[row] = max(most.get(row, 0), amount)
        self.largest = sorted(most.items())
        self.failed = -1
        self.failed_beside = -1

    def fail(self, epoch: int) -> None:
        """Note that a step of this shape was tried in an epoch of room, and found no place."""
        if self.steady:
            self.failed = epoch

    def exceeds(self, room: list[int]) -> bool:
        """Whether one task takes more of a row than the most that there is."""
        for row, amount in self.largest:  # noqa: SIM110  a generator would cost more than the loop
            if amount > room[row]:
                return True
        return False


def _count_classes(tasks: list[TaskState]) -> Counter[TaskClass]:
    return Counter(map(_CLASS, tasks))


def _amount_of(classes: Counter[TaskClass]) -> Amount:
    """Give what tasks count for their queue, together."""
    amount: Amount | None = None
    for cls, number in classes.items():
        mine = cls.amount if number == 1 else tuple([number * value for value in cls.amount])
        amount = mine if amount is None else tuple(map(add, amount, mine))
    assert amount is not None
    return amount


class WorkloadState:
    """A workload while it is being decided about.

    ``leaf`` is the number of its queue (-1: pods of another scheduler). ``entry`` is its place in the leaf's order
    of those that wait, None while it does not wait; ``queued_at`` is the time by which it stands there. Before
    ``not_before`` it is not requeued again. Times are in µs since the epoch. ``expected`` is the expected
    runtime that applies, None where none is set or ``unclear`` says why it is not known. ``saved_at`` is the last
    checkpoint that became known since it was taken in. ``evictions``: see `times_evicted`. ``sparing``: it, or a task
    of it, asks to be spared, or did.
    """

    __slots__ = (
        "created_at", "entry", "evictions", "expected", "fixed", "key", "last_evicted_at", "leaf", "model", "moved",
        "not_before", "priority", "queued_at", "root", "saved_at", "sparing", "stale_since", "started_at", "step",
        "tasks", "unclear",
    )  # fmt: skip

    def __init__(self, model: Workload, leaf: int) -> None:
        self.model = model
        self.key = model.key
        self.leaf = leaf
        self.priority = model.priority
        self.created_at = self.queued_at = model.created_at
        self.not_before: int | None = None
        self.fixed = not model.is_preemptible
        self.sparing = model.asks_to_be_spared
        self.started_at = model.started_at
        self.last_evicted_at = model.last_evicted_at
        self.evictions = model.evictions
        self.stale_since = model.stale_since
        self.saved_at: int | None = None
        self.expected: int | None = None
        self.unclear = ""
        self.entry: tuple[object, ...] | None = None
        self.step: Demand | None = None
        self.moved = False
        self.tasks: list[TaskState] = []
        self.root = SubgroupState("", model.topology, None)

    def group_tasks(self) -> None:
        """Lay the tasks out over the tree of subgroups."""
        model, root = self.model, self.root
        if model.sub_groups:
            by_name: dict[str, SubgroupState] = {}
            for child in model.sub_groups:
                root.children.append(_grow(child, root, by_name))
            root.minimum = len(root.children) if model.min_sub_group is None else model.min_sub_group
            for task in self.tasks:
                task.group = by_name.get(task.model.sub_group or "", root)
                task.group.tasks.append(task)
            for group in by_name.values():
                if not group.children and group.minimum < 0:
                    group.minimum = len(group.tasks)
        else:
            root.tasks = self.tasks
            root.minimum = model.core
            for task in self.tasks:
                task.group = root

    def end_at(self) -> int | None:
        """When it is expected to end, in µs since the epoch; None if that is not known."""
        if self.started_at is None or not self.expected:
            return None
        return self.started_at + self.expected

    def times_evicted(self, now: int, span: int) -> int:
        """Give how often it lost all that it ran to an eviction, as far as that is remembered; see `remembered`."""
        return remembered(self.evictions, self.last_evicted_at, now, span)

    def active_tasks(self) -> int:
        """Number of tasks that are bound, run or have succeeded."""
        return sum(t.active for t in self.tasks)

    def placed(self) -> list[TaskState]:
        """Give its tasks that are bound or run."""
        return [t for t in self.tasks if t.node >= 0 and t.active]

    def occupied(self) -> bool:
        """Whether any of its tasks is bound or runs."""
        for task in self.tasks:  # noqa: SIM110  a generator would cost more than the loop
            if task.phase is RUNNING or task.phase is BOUND:
                return True
        return False


def _grow(model: SubGroup, parent: SubgroupState, by_name: dict[str, SubgroupState]) -> SubgroupState:
    group = by_name[model.name] = SubgroupState(model.name, model.topology, parent)
    if model.sub_groups:
        for child in model.sub_groups:
            group.children.append(_grow(child, group, by_name))
        group.minimum = len(group.children) if model.min_sub_group is None else model.min_sub_group
    else:
        group.minimum = -1 if model.min_member is None else model.min_member
    return group
