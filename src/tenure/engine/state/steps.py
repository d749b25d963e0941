"""What a workload asks for next: its core, a replacement for a task it lost, or one more of its surplus."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from tenure.engine.state.workloads import (
    GROW,
    PENDING,
    REPLACE,
    START,
    Demand,
    Shape,
    SubgroupState,
    TaskState,
    WorkloadState,
)


class Steps:
    """The maker of demands; demands of one shape share its `Shape`."""

    def __init__(self) -> None:
        self._shapes: dict[object, Shape] = {}

    @property
    def size(self) -> int:
        """How many shapes are kept."""
        return len(self._shapes)

    def next(self, workload: WorkloadState) -> Demand | None:
        """Give the next step, None if there is nothing that could be placed."""
        root = workload.root
        if not root.children and len(workload.tasks) == 1:
            return self._single(workload)
        if not root.satisfied():
            return self._replacement(workload) if workload.occupied() else self._start(workload)
        if any(t.nominated >= 0 for t in workload.tasks) and not self._runs(workload):
            return None  # nothing of it is bound before its core is
        return self._growth(workload)

    def whole(self, workload: WorkloadState) -> Demand:
        """Give the step of a workload whose core is all its tasks, as if none of them were placed."""
        return Demand(START, workload.tasks, self._shape(workload, workload.tasks, START))

    def _runs(self, workload: WorkloadState) -> bool:
        """Whether its core was bound, or has succeeded."""
        return workload.occupied() or workload.root.satisfied(nominated=False)

    def _single(self, workload: WorkloadState) -> Demand | None:
        task = workload.tasks[0]
        if task.phase is not PENDING or task.nominated >= 0 or workload.root.minimum > 1:
            return None
        return Demand(START, [task], self._shape(workload, [task], START))

    def _start(self, workload: WorkloadState) -> Demand | None:
        core = workload.root.core()
        return Demand(START, core, self._shape(workload, core, START)) if core else None

    def _replacement(self, workload: WorkloadState) -> Demand | None:
        """One of the tasks that are missing; all or nothing is a rule for starts (spec: gangs)."""
        for leaf in _lacking(workload.root):
            if (task := next((t for t in leaf.tasks if _waits(t)), None)) is not None:
                return Demand(REPLACE, [task], self._shape(workload, [task], REPLACE))
        return None

    def _growth(self, workload: WorkloadState) -> Demand | None:
        for task in workload.tasks:
            if not _waits(task):
                continue
            unit = _optional(task.group)
            if unit is None:
                tasks: list[TaskState] | None = [task]
            elif unit.children or unit.running == 0:
                tasks = unit.core()
            else:
                tasks = [task]
            if tasks:
                return Demand(GROW, tasks, self._shape(workload, tasks, GROW))
        return None

    def _shape(self, workload: WorkloadState, tasks: list[TaskState], kind: int) -> Shape | None:
        """Steps of tasks with the same classes and profiles in the same order fit or fail alike."""
        topology = workload.root.topology
        if workload.root.children or (topology is not None and kind != START):
            return None
        looking = [t.terms for t in tasks if t.terms is not None]
        if looking and any(terms.profile is None for terms in looking):
            return None
        if len(tasks) == 1:
            key: object = (tasks[0].cls.id, topology, looking[0].profile if looking else None)
        elif looking:
            each = ((t.cls.id, None if t.terms is None else t.terms.profile) for t in tasks)
            key = (tuple((one, len(list(run))) for one, run in groupby(each)), topology)
        else:
            key = (tuple((c, len(list(run))) for c, run in groupby(t.cls.id for t in tasks)), topology)
        shape = self._shapes.get(key)
        if shape is None:
            steady = not looking or (len(tasks) == 1 and looking[0].only_kept_off)
            shape = self._shapes[key] = Shape(tasks, steady=steady)
        return shape


def _lacking(group: SubgroupState) -> Iterator[SubgroupState]:
    """Give the leaves that lack tasks, but for those of a group that needs none of them."""
    if group.satisfied():
        return
    if not group.children:
        yield group
    for child in group.children:
        yield from _lacking(child)


def _waits(task: TaskState) -> bool:
    return task.phase is PENDING and task.nominated < 0 and task.cls.placeable


def _optional(group: SubgroupState) -> SubgroupState | None:
    """Give the highest group around this one that is not satisfied: it is placed as a unit."""
    found = None
    while group.parent is not None:
        if not group.satisfied():
            found = group
        group = group.parent
    return found
