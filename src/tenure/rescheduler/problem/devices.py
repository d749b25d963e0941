"""Parts of GPUs in a problem: each device a resource of its own, each choice of devices a shape of a class.

With that a plan is as exact with parts of GPUs as without. The number of shapes grows fast, so it is done where a
cluster is small enough; elsewhere GPUs stay one resource, which keeps bounds valid.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np

from tenure.engine.room.classes import TaskClass
from tenure.engine.state.session import Session
from tenure.engine.state.workloads import TaskState
from tenure.model.values.resources import GPU, MILLI
from tenure.rescheduler.problem.definition import Ints, Mask, MoveProblem

MOST_PLACES = 20_000
"""With more pairs of a shape and a node, GPUs stay one resource."""

Devices = tuple[tuple[int, ...], ...]


@dataclass(slots=True)
class _Shapes:
    """Shapes so far: of which class, on which devices, how much of each, and where."""

    classes: list[int] = field(default_factory=list)
    devices: list[tuple[int, ...]] = field(default_factory=list)
    parts: list[Ints] = field(default_factory=list)
    allowed: list[Mask] = field(default_factory=list)

    def add(self, cls: int, devices: tuple[int, ...], part: Ints, allowed: Mask) -> None:
        """Add one."""
        self.classes.append(cls)
        self.devices.append(devices)
        self.parts.append(part)
        self.allowed.append(allowed)


def by_device(
    session: Session, problem: MoveProblem, tasks: Sequence[TaskState], classes: Sequence[TaskClass]
) -> tuple[MoveProblem, Devices] | None:
    """Tell devices apart.

    Parameters
    ----------
    session
        The session.
    problem
        A problem in which every class has one shape.
    tasks
        The tasks of ``problem``, by number.
    classes
        What the first classes of ``problem`` stand for; any after them are holes that a node is to be left with.

    Returns
    -------
    The problem and, for each of its shapes, the devices. None where there would be too many shapes.
    """
    nodes = session.nodes
    free = np.maximum([nodes.free_devices(n, bindable=False) for n in range(len(nodes))], 0).T
    count = len(free)
    found = _Shapes()
    has_gpus = GPU in problem.resources
    gpus = problem.ask[:, problem.resources.index(GPU)] if has_gpus else np.zeros(len(problem.ask), np.int64)
    for cls in range(len(problem.shapes)):
        allowed = problem.allowed[problem.shapes[cls][0]]
        if cls < len(classes):
            _add_class(found, cls, classes[cls], allowed, nodes.device_count, count)
        else:
            found.add(cls, (), _hole(free, tasks, allowed, whole=bool(gpus[problem.shapes[cls][0]])), allowed)
        if len(found.classes) * len(nodes) > MOST_PLACES:
            return None
    number = {
        (cls, devices, int(part.max(initial=0))): shape
        for shape, (cls, devices, part) in enumerate(zip(found.classes, found.devices, found.parts, strict=True))
    }
    shape = [number.get(_key(task, int(cls))) for task, cls in zip(tasks, problem.cls, strict=True)]
    if None in shape:
        return None  # it is not known which devices a task holds
    origin = [problem.shapes[cls][0] for cls in found.classes]
    by_class: list[list[int]] = [[] for _ in problem.shapes]
    for index, cls in enumerate(found.classes):
        by_class[cls].append(index)
    names = tuple(f"device {d}" for d in range(count))
    exact = replace(
        problem,
        free=np.vstack([problem.free, free]),
        ask=np.column_stack([problem.ask[origin], np.array(found.parts, np.int64).reshape(len(origin), count)]),
        allowed=np.array(found.allowed, bool).reshape(len(origin), problem.size),
        shapes=tuple(map(tuple, by_class)),
        shape=np.array(shape, np.int64),
        in_place=False,
        resources=(*problem.resources, *names),
        units=(*problem.units, *(1 for _ in names)),
        real=None if problem.real is None else np.vstack([problem.real, free]),
    )
    return exact, tuple(found.devices)


def _add_class(found: _Shapes, cls: int, kind: TaskClass, allowed: Mask, there: Ints, count: int) -> None:
    """Every choice of devices; where the part differs by node, for each part on the nodes where it is that."""
    number = kind.whole or kind.devices
    if not number:
        found.add(cls, (), np.zeros(count, np.int64), allowed)
        return
    parts = np.full(len(allowed), MILLI, np.int64) if kind.milli is None else kind.milli
    for milli in np.unique(parts[parts > 0]).tolist():
        for devices in combinations(range(count), number):
            part: Ints = np.zeros(count, np.int64)
            part[list(devices)] = milli
            found.add(cls, devices, part, allowed & (parts == milli) & (there > devices[-1]))


def _hole(free: Ints, tasks: Sequence[TaskState], allowed: Mask, *, whole: bool) -> Ints:
    """What is free on each device of the one node that is to be emptied, once everything that may move has left it."""
    part: Ints = np.zeros(len(free), np.int64)
    if whole:
        (node,) = np.flatnonzero(allowed).tolist()
        part += free[:, node]
        for task in tasks:
            if task.node == node:
                part[list(task.devices)] += MILLI if task.cls.milli is None else int(task.cls.milli[node])
    return part


def _key(task: TaskState, cls: int) -> tuple[int, tuple[int, ...], int]:
    milli = (MILLI if task.cls.milli is None else int(task.cls.milli[task.node])) if task.devices else 0
    return cls, tuple(sorted(task.devices)), milli
