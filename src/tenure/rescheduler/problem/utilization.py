"""Nodes whose CPU is really in use, as one more resource of a problem: what lands must make no node hot (spec 7).

What a node may take on is `hot` of its capacity less what is in use there by its last reading, and less what is on its
way to it. What a task brings along is what it was last seen to use, else what it asks for. Where it leaves a node with
a reading, that node takes on so much more only if the task was seen to use it. What is in use on a node without a
reading is what its tasks bring along.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from tenure.engine.room.nodes import UNLIMITED
from tenure.engine.state.session import Session
from tenure.engine.state.workloads import BOUND, RUNNING, TaskState
from tenure.model.values.resources import CPU
from tenure.rescheduler.problem.definition import Ints, MoveProblem, PendingMembers

NAME = "millicores below hot"
PLENTY = UNLIMITED >> 20
"""Room where no node has a reading; small enough for sums."""


def used(task: TaskState) -> int:
    """Millicores that a task uses where it runs, and will use where it goes on."""
    seen = reading(task)
    return dict(task.cls.spec.requests).get(CPU, 0) if seen is None else seen


def reading(task: TaskState) -> int | None:
    """Millicores that a task was last seen to use; None where that is not known."""
    usage = task.model.usage
    return None if usage is None else usage.get(CPU)


def share_of(share: float, amount: int) -> int:
    """Give the most of an amount that is not above a share of it."""
    return int(round(share * amount, 6))  # a share such as 0.29 is a little less than what was written


class NodeUtilization:
    """The measured use of every node, as its distance from being hot.

    ``limit`` is ``int64[nodes]`` in millicores: what it may take on before it is hot, negative where it is hot already;
    `PLENTY` where it has no CPUs that count. ``known``: some node has a reading.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        nodes = session.nodes
        share = session.settings.rescheduler.hot_nodes.hot
        self.limit = np.full(len(nodes), PLENTY, np.int64)
        self.known = any(CPU in (node.usage or {}) for node in nodes.nodes)
        for number, node in enumerate(nodes.nodes if self.known else ()):
            if CPU in node.allocatable:
                most, read = share_of(share, node.allocatable[CPU]), (node.usage or {}).get(CPU)
                now = sum(used(t) for t in session.on_node[number] if t.phase is RUNNING) if read is None else read
                self.limit[number] = most - now - self._coming(number)

    def _coming(self, node: int) -> int:
        """What is promised to a node, or bound and not running yet: the reading does not hold it."""
        there = self.session.on_node[node]
        return sum(used(t) for t in there if (t.nominated == node and t.leaving != node) or t.phase is BOUND)

    def spares(self, task: TaskState) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Nodes that a task would not make hot: ``bool[nodes]``."""
        return np.asarray(self.limit >= used(task), bool)

    def move(self, task: TaskState, target: int) -> None:
        """Note that a task goes to a node. What it leaves is no cooler before the next reading."""
        if self.limit[target] < PLENTY:
            self.limit[target] -= used(task)

    def move_back(self, task: TaskState, target: int) -> None:
        """Take back what `move` noted."""
        if self.limit[target] < PLENTY:
            self.limit[target] += used(task)


def with_utilization(
    problem: MoveProblem, tasks: Sequence[TaskState], utilization: NodeUtilization, cool: Mapping[int, int]
) -> tuple[MoveProblem, list[int]]:
    """Add heat to a problem as its last resource.

    Parameters
    ----------
    problem
        A problem in which every class has one shape.
    tasks
        The tasks of ``problem``, by number.
    heat
        The readings.
    cool
        Millicores by which nodes are to be cooled: a member for each has to find that much room there, and whatever
        else could land there may not.

    Returns
    -------
    The problem, and for each of its classes the one that it was made of (the classes of ``cool`` have none).
    """
    pairs: dict[tuple[int, int], int] = {}
    for cls in range(len(problem.shapes)):
        pairs[cls, -1] = len(pairs)  # as it is asked for by what waits: nobody knows yet what that will use
    cls_of = np.zeros(problem.tasks, np.int64)
    for number, task in enumerate(tasks):
        pair = int(problem.cls[number]), used(task)
        cls_of[number] = pairs.setdefault(pair, len(pairs))
    origin = [cls for cls, _ in pairs]
    own = np.array([max(0, utilization_of) for _, utilization_of in pairs], np.int64)
    ask = np.column_stack([problem.ask[origin], own])
    allowed = problem.allowed[origin].copy()
    free = np.vstack([problem.free, np.maximum(utilization.limit, 0)])
    asks, domain = list(problem.asks), problem.domain.reshape(-1, problem.size)
    for node, excess in cool.items():
        free[-1, node] = 0
        allowed[:, node] = False
        row: Ints = np.zeros(ask.shape[1], np.int64)
        row[-1] = excess
        ask = np.vstack([ask, row])
        allowed = np.vstack([allowed, np.arange(problem.size) == node])
        asks.append(PendingMembers(group=len(domain), cls=len(ask) - 1, count=1))
        domain = np.vstack([domain, np.zeros((1, problem.size), np.int64)])
    real = problem.free if problem.real is None else problem.real
    made = replace(
        problem, free=free, ask=ask, allowed=allowed, shapes=tuple((c,) for c in range(len(ask))), cls=cls_of,
        shape=cls_of.copy(), asks=tuple(asks), domain=domain, resources=(*problem.resources, NAME),
        units=(*(problem.units or (1,) * len(problem.free)), 1), real=np.vstack([real, free[-1:]]),
    )  # fmt: skip
    return made, origin


def with_unread_kept(
    problem: MoveProblem, tasks: Sequence[TaskState], utilization: NodeUtilization, devices: tuple[tuple[int, ...], ...]
) -> tuple[MoveProblem, tuple[tuple[int, ...], ...]]:
    """Let tasks without a reading leave none of their heat behind: by how much the node cools is not known.

    Such a task has a shape of its own where it is, without heat, in which nothing can land.

    Parameters
    ----------
    problem
        A problem with heat, finished but for this.
    tasks
        The tasks of ``problem``, by number.
    utilization
        The readings.
    devices
        The devices of each shape, or nothing.

    Returns
    -------
    The problem, and the devices of each of its shapes.
    """
    heat = problem.resources.index(NAME)
    shape, kept = problem.shape.copy(), dict[int, int]()
    for number, task in enumerate(tasks):
        here = int(problem.shape[number])
        if reading(task) is None and utilization.limit[task.node] < PLENTY and problem.ask[here, heat]:
            shape[number] = kept.setdefault(here, len(problem.ask) + len(kept))
    if not kept:
        return problem, devices
    cold = problem.ask[[*kept]]
    cold[:, heat] = 0
    nowhere = np.zeros((len(kept), problem.size), bool)
    made = replace(
        problem, ask=np.vstack([problem.ask, cold]), allowed=np.vstack([problem.allowed, nowhere]), shape=shape
    )  # fmt: skip
    return made, (*devices, *(devices[here] for here in kept)) if devices else ()
