"""The exact plan that empties nodes: a mixed-integer program of removal and inflow (design: exact plans).

Which nodes become empty is decided together with what has to move for it, over any number of hops. What is maximised is
the gain less the disruption at `minGain`: nothing is in that sum that was not asked for as a price.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from tenure.rescheduler.milp.decode import decode
from tenure.rescheduler.milp.program import Inflow, MixedIntegerProgram
from tenure.rescheduler.milp.solver import Solver
from tenure.rescheduler.planner import PlannerLimits
from tenure.rescheduler.problem.definition import Ints, TaskMove
from tenure.rescheduler.problem.improvement import LayoutProblem, candidates

MOST_COLUMNS = 60_000
"""A larger program is not tried: the greedy plan stands with its bound."""
FREE = math.inf


@dataclass(frozen=True, slots=True)
class EmptyNodesResult:
    """The result of emptying nodes: moves, the proven bound, whether the search ended; else what went wrong."""

    moves: tuple[TaskMove, ...]
    bound: float
    optimal: bool
    reason: str = ""


@dataclass(slots=True)
class _Rows:
    rows: list[int] = field(default_factory=list)
    columns: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    low: list[float] = field(default_factory=list)
    high: list[float] = field(default_factory=list)

    def add(self, parts: list[tuple[int, float]], low: float, high: float) -> None:
        """Add one row of column and value."""
        number = len(self.low)
        for column, value in parts:
            self.rows.append(number)
            self.columns.append(column)
            self.values.append(value)
        self.low.append(low)
        self.high.append(high)


def empty_nodes(asked: LayoutProblem, solver: Solver, limits: PlannerLimits) -> EmptyNodesResult | None:
    """Find the moves that leave most; None where there is nothing to decide, or too much."""
    nodes = candidates(asked)
    program = _program(asked, nodes) if len(nodes) else None
    if program is None:
        return None
    solution = solver.solve(program, node_limit=limits.node_limit, time_limit=limits.time_limit)
    most = -solution.bound if math.isfinite(solution.bound) else FREE
    if solution.values is None:
        return EmptyNodesResult(
            (), most, optimal=False, reason=solution.failure or f"cut off after {solution.nodes} nodes"
        )
    if not solution.optimal and solution.nodes < limits.node_limit:  # what it has by then depends on the clock
        return EmptyNodesResult(
            (), most, optimal=False, reason=f"the greedy plan stands: {limits.time_limit:g} s were not enough"
        )
    moves, _ = decode(asked.problem, program, solution.values)
    reason = "" if solution.optimal else f"the search was cut off after {solution.nodes} nodes"
    return EmptyNodesResult(tuple(moves), most, solution.optimal, reason)


def _program(asked: LayoutProblem, nodes: Ints) -> MixedIntegerProgram | None:
    problem = asked.problem
    prize = asked.terms.whole * asked.whole
    pays = float(prize[nodes].sum())
    removed = _alike(asked, pays)
    idle = asked.busy() == 0
    inflows = [
        Inflow(cls, -1, shape, node)
        for cls in sorted({int(problem.cls[tasks[0]]) for tasks in removed})
        for shape in problem.shapes[cls]
        for node in np.flatnonzero(problem.allowed[shape] & asked.targets & (~idle | (prize > 0))).tolist()
    ]
    if len(inflows) + len(removed) > MOST_COLUMNS:
        return None
    first, second = len(removed), len(removed) + len(inflows)
    empty = {int(n): second + i for i, n in enumerate(nodes)}
    opened = {int(n): second + len(empty) + i for i, n in enumerate(np.flatnonzero(idle & asked.targets))}
    cost = [asked.least * float(problem.cost[tasks[0]]) for tasks in removed] + [0.0] * len(inflows)
    cost += [-float(prize[n]) for n in empty] + [float(prize[n]) for n in opened]
    upper = [float(len(tasks)) for tasks in removed] + [float(problem.tasks)] * len(inflows)
    upper += [1.0] * (len(empty) + len(opened))
    made = _Rows()
    switches = _units(asked, removed, made, len(cost))
    cost += [0.0] * switches
    upper += [1.0] * switches
    _capacity(asked, removed, inflows, first, made)
    _landing(asked, removed, inflows, first, made)
    into: dict[int, list[int]] = {}
    for number, inflow in enumerate(inflows):
        into.setdefault(inflow.node, []).append(first + number)
    busy = asked.busy()
    for node, column in empty.items():
        leaving = [(i, 1.0) for i, tasks in enumerate(removed) if problem.node[tasks[0]] == node]
        made.add([*leaving, (column, -float(busy[node]))], 0.0, FREE)
        most = float(problem.tasks)
        made.add([*((c, 1.0) for c in into.get(node, ())), (column, most)], -FREE, most)
    for node, column in opened.items():
        made.add([*((c, 1.0) for c in into.get(node, ())), (column, -float(problem.tasks))], -FREE, 0.0)
    for limit in problem.bounds:
        if not limit.concurrent or limit.limit <= 0:
            parts = [(i, float(limit.weights.get(tasks[0], 0))) for i, tasks in enumerate(removed)]
            made.add(parts, -FREE, float(max(0, limit.limit)))
    return MixedIntegerProgram(
        removed, inflows, np.array(cost), np.array(upper), np.array(made.rows, np.int64),
        np.array(made.columns, np.int64), np.array(made.values), np.array(made.low), np.array(made.high), loose=True,
    )  # fmt: skip


def _alike(asked: LayoutProblem, pays: float) -> list[list[int]]:
    """Tasks that may pay to move, those that are alike in everything together."""
    problem = asked.problem
    found: dict[tuple[object, ...], list[int]] = {}
    for task in range(problem.tasks):
        if asked.least * problem.cost[task] >= pays:
            continue
        budgets = tuple(b.weights.get(task, 0) for b in problem.bounds)
        key = (
            int(problem.node[task]),
            int(problem.cls[task]),
            int(problem.cost[task]),
            int(problem.unit[task]),
            budgets,
        )
        found.setdefault(key, []).append(task)
    return list(found.values())


def _capacity(asked: LayoutProblem, removed: list[list[int]], inflows: list[Inflow], first: int, made: _Rows) -> None:
    problem = asked.problem
    rows: dict[tuple[int, int], list[tuple[int, float]]] = {}
    scale = np.maximum(1, problem.ask.max(axis=0, initial=1)).astype(np.float64)
    for number, tasks in enumerate(removed):
        for kind in np.flatnonzero(problem.ask[problem.shape[tasks[0]]]).tolist():
            value = -float(problem.ask[problem.shape[tasks[0]], kind] / scale[kind])
            rows.setdefault((int(problem.node[tasks[0]]), kind), []).append((number, value))
    for number, inflow in enumerate(inflows):
        for kind in np.flatnonzero(problem.ask[inflow.shape]).tolist():
            value = float(problem.ask[inflow.shape, kind] / scale[kind])
            rows.setdefault((inflow.node, kind), []).append((first + number, value))
    for (node, kind), parts in rows.items():
        made.add(parts, -FREE, float(problem.free[kind, node] / scale[kind]))


def _landing(asked: LayoutProblem, removed: list[list[int]], inflows: list[Inflow], first: int, made: _Rows) -> None:
    problem = asked.problem
    rows: dict[int, list[tuple[int, float]]] = {}
    for number, tasks in enumerate(removed):
        rows.setdefault(int(problem.cls[tasks[0]]), []).append((number, 1.0))
    for number, inflow in enumerate(inflows):
        rows[inflow.cls].append((first + number, -1.0))
    for _, parts in sorted(rows.items()):
        made.add(parts, 0.0, 0.0)


def _units(asked: LayoutProblem, removed: list[list[int]], made: _Rows, first: int) -> int:
    """Of a core one task moves, or all do. Gives the number of switches that were added."""
    problem = asked.problem
    members: dict[int, list[int]] = {}
    for number, tasks in enumerate(removed):
        if problem.unit[tasks[0]] >= 0:
            members.setdefault(int(problem.unit[tasks[0]]), []).append(number)
    switches = 0
    for unit, columns in sorted(members.items()):
        size = int((problem.unit == unit).sum())
        if size <= 1:
            continue
        parts = [(c, 1.0) for c in columns]
        if sum(len(removed[c]) for c in columns) < size:  # one is too dear to move, so they never all do
            made.add(parts, -FREE, 1.0)
            continue
        switch = first + switches
        made.add([*parts, (switch, -(size - 1.0))], -FREE, 1.0)
        made.add([*parts, (switch, -float(size))], 0.0, FREE)
        switches += 1
    return switches
