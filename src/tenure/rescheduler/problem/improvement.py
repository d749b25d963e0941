"""The question how much a layout can be improved, as plain arrays: for bounds, the exact plan and the checker.

`tenure.rescheduler.problem.layout` says what the terms mean; here they stand beside a `MoveProblem` without pending
members, which has all that may be moved.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tenure.engine.room.nodes import FREE_DEVICES, UNLIMITED
from tenure.engine.state.cost import UNITS, price_of
from tenure.engine.state.workloads import TaskState
from tenure.rescheduler.problem.build import ProblemView
from tenure.rescheduler.problem.definition import Ints, Mask, MoveProblem
from tenure.rescheduler.problem.layout import LayoutTerms, LayoutWorth, stays

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LayoutProblem:
    """The problem of improving a layout: what each move would gain.

    Parameters
    ----------
    problem
        All that may be moved, and no asks.
    terms
        What counts.
    price, capacity
        ``float64[resources]``, per unit of ``room``, 0 for what has no price; ``float64[resources, nodes]``.
    room
        ``float64[resources, nodes]``: what is free, in the node table's units.
    takes
        ``float64[shapes, resources]``: what one task takes, in the same units.
    whole
        ``float64[nodes]``: what a node is worth when it is empty, beyond what its free GPUs count anyway.
    fixed
        ``int64[nodes]``: how many tasks stay on a node whatever moves, DaemonSets left out.
    liking
        ``float64[tasks, nodes]``: what each node is worth to a task; no rows where no task has preferences.
    targets
        ``bool[nodes]``: where anything may land.
    least
        Gain that a unit of disruption has to bring.
    hidden
        Gains that the arrays do not show: of parts of GPUs, of fragmentation. An upper bound of them.
    """

    problem: MoveProblem
    terms: LayoutTerms
    price: Floats
    capacity: Floats
    room: Floats
    takes: Floats
    whole: Floats
    fixed: Ints
    liking: Floats
    targets: Mask
    least: float
    hidden: float = 0.0

    def busy(self) -> Ints:
        """How many tasks are on each node that have to leave it before it is empty: ``int64[nodes]``."""
        return self.fixed + np.bincount(self.problem.node, minlength=self.problem.size)


def improvement(worth: LayoutWorth, made: ProblemView, targets: Mask, least: float) -> LayoutProblem:
    """Write a session's layout, and what may be moved of it, as an improvement."""
    session, problem = worth.session, made.problem
    nodes = session.nodes
    units = np.array(problem.units or (1,) * len(problem.resources), np.float64)
    rows = [nodes.row.get(name, -1) for name in problem.resources]
    size = np.array([nodes.capacity[r] if r >= 0 else np.zeros(len(nodes)) for r in rows], np.float64)
    room = np.array([nodes.room[nodes.rows + r] if r >= 0 else np.zeros(len(nodes)) for r in rows], np.float64)
    known = size < UNLIMITED
    each = [
        0.0 if r < 0 or name == FREE_DEVICES else price_of(name, session.settings) / UNITS.get(name, 1)
        for r, name in zip(rows, problem.resources, strict=True)
    ]
    movable = set(made.tasks)
    fixed = [sum(stays(t, n) and t not in movable for t in there) for n, there in enumerate(session.on_node)]
    likings = [worth.liking(t) for t in made.tasks]
    none = np.zeros(len(nodes))
    liking = np.array(
        [none if found is None else found for found in likings] if any(x is not None for x in likings) else []
    )
    return LayoutProblem(
        problem=problem,
        terms=worth.terms,
        price=np.array(each),
        capacity=np.where(known, size, 0.0),
        room=np.where(known, np.maximum(room, 0.0), 0.0),
        takes=problem.ask * units,
        whole=worth.price - worth.device * nodes.device_count,
        fixed=np.array(fixed, np.int64),
        liking=liking.reshape(-1, len(nodes)),
        targets=targets,
        least=least,
        hidden=_hidden(worth, made.tasks),
    )


def _hidden(worth: LayoutWorth, tasks: tuple[TaskState, ...]) -> float:
    """Bound what parts of GPUs could bring: every GPU that is in use by parts free, and no fragmentation left."""
    session, found = worth.session, worth.scattered()
    nodes = session.nodes
    if worth.terms.whole and any(t.cls.milli is not None for t in tasks) and nodes.has_devices:
        parts = int((nodes.device[1] < 1000).sum() - sum(_held(t) for there in session.on_node for t in there))  # noqa: PLR2004
        found += worth.terms.whole * worth.device * max(0, parts)
    return found


def _held(task: TaskState) -> int:
    """Whole GPUs of a task that will be there."""
    here = task.node >= 0 or task.nominated >= 0
    return task.cls.whole if here else 0


def bound(asked: LayoutProblem) -> float:
    """Give the most that any moves could leave of their gain once they are paid for, in weighted resources."""
    return _packed(asked) + _whole(asked) + _liked(asked) + asked.hidden


def _packed(asked: LayoutProblem) -> float:
    """Bound the first term, resource by resource, as if what moves could be cut into pieces.

    The free room of a node lies between what it is now (0 where something may land) and what it would be if everything
    movable had left. Packed: on that interval a square lies below its chord, and a sum of chords is greatest where the
    steepest are filled first. Spread: the least sum of squares is bounded by its Lagrangian dual.
    """
    if not asked.terms.packed:
        return 0.0
    problem, total = asked.problem, 0.0
    leaves = np.zeros_like(asked.room)
    np.add.at(leaves.T, problem.node, asked.takes[problem.shape])
    for row in np.flatnonzero(asked.price).tolist():
        size, now = asked.capacity[row], asked.room[row]
        there = size > 0
        size, now = size[there], now[there]
        low = np.where(asked.targets[there], 0.0, now)
        high = np.maximum(np.minimum(now + leaves[row, there], size), now)
        present = float((now * now / size).sum())
        if asked.terms.packed > 0:
            found = _steepest(size, low, high, float(now.sum())) - present
        else:
            found = present - _level(size, low, high, float(now.sum()))
        total += abs(asked.terms.packed) * float(asked.price[row]) * max(0.0, found)
    return total


def _steepest(size: Floats, low: Floats, high: Floats, free: float) -> float:
    slope = (high + low) / size
    left, value = free - float(low.sum()), float((low * low / size).sum())
    for node in np.argsort(-slope, kind="stable").tolist():
        step = min(left, float(high[node] - low[node]))
        value += step * float(slope[node])
        left -= step
        if left <= 0:
            break
    return value


def _level(size: Floats, low: Floats, high: Floats, free: float) -> float:
    below, above = 0.0, float((high / size).max(initial=0.0))
    for _ in range(60):
        share = (below + above) / 2
        if np.clip(share * size, low, high).sum() < free:
            below = share
        else:
            above = share
    room = np.clip(above * size, low, high)
    return float((room * room / size).sum() - 2 * above * (room.sum() - free))


def candidates(asked: LayoutProblem) -> Ints:
    """Nodes that could become empty and pay for what has to leave them: numbers."""
    if not asked.terms.whole:
        return np.zeros(0, np.int64)
    return np.flatnonzero((asked.fixed == 0) & (asked.busy() > 0) & (_net_of(asked) > 0))


def _net_of(asked: LayoutProblem) -> Floats:
    problem = asked.problem
    paid = np.bincount(problem.node, weights=problem.cost.astype(np.float64), minlength=problem.size)
    return np.asarray(asked.terms.whole * asked.whole - asked.least * paid)


def _whole(asked: LayoutProblem) -> float:
    return float(_net_of(asked)[candidates(asked)].sum())


def _liked(asked: LayoutProblem) -> float:
    if not len(asked.liking):
        return 0.0
    best = np.where(asked.targets, asked.liking, -np.inf).max(axis=1)
    own = asked.liking[np.arange(len(asked.liking)), asked.problem.node]
    return float(np.maximum(best - own, 0.0).sum())
