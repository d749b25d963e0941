"""The mixed-integer program of removal and inflow, with cover cuts (design: exact plans)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tenure.rescheduler.milp.cover_bounds import NEVER, CoverBounds
from tenure.rescheduler.problem.definition import Ints, Mask, MoveProblem

Floats = NDArray[np.float64]
FREE = np.inf


class Inflow(NamedTuple):
    """A variable that counts what comes in to a node: tasks of a class (``ask`` -1), or members of an ask."""

    cls: int
    ask: int
    shape: int
    node: int


@dataclass(slots=True)
class MixedIntegerProgram:
    """``low <= A x <= high`` with ``A`` in coordinates, to be minimised over ``cost``.

    ``removed`` lists, for the first variables, the tasks that each counts: equal in everything that matters.
    ``inflows`` says what the variables after them are. Further variables only help. ``start`` may have values
    of a solution to begin with, NaN where they are not known. All variables are whole but those of ``broken``
    (numbers). ``gap`` is the share of the cost within which a solution counts as optimal. ``loose`` says that nothing
    has been cut off or fixed beforehand, so that the solver had better look for it. ``relaxed`` asks for the linear
    relaxation: nothing has to be whole, and the bound is what it costs.
    """

    removed: list[list[int]]
    inflows: list[Inflow]
    cost: Floats
    upper: Floats
    rows: Ints
    columns: Ints
    values: Floats
    low: Floats
    high: Floats
    start: Floats = field(default_factory=lambda: np.zeros(0))
    broken: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    gap: float = 0.0
    loose: bool = False
    relaxed: bool = False


@dataclass(slots=True)
class _Matrix:
    """Collects rows and columns."""

    cost: list[float] = field(default_factory=list)
    upper: list[float] = field(default_factory=list)
    low: list[float] = field(default_factory=list)
    high: list[float] = field(default_factory=list)
    parts: list[tuple[Ints, Ints, Floats]] = field(default_factory=list)

    def columns(self, number: int, cost: float, upper: Floats) -> Ints:
        """Add variables and give their numbers."""
        first = len(self.cost)
        self.cost += [cost] * number
        self.upper += upper.tolist()
        return np.arange(first, first + number)

    def row(self, columns: Ints | Sequence[int], values: Floats | Sequence[float], low: float, high: float) -> None:
        """Add one row."""
        columns = np.asarray(columns, np.int64)
        self.parts.append((np.full(len(columns), len(self.low)), columns, np.asarray(values, np.float64)))
        self.low.append(low)
        self.high.append(high)

    def block(self, rows: Ints, columns: Ints, values: Floats, low: Floats, high: Floats) -> None:
        """Add several rows; ``rows`` are counted from 0."""
        self.parts.append((rows + len(self.low), columns, np.asarray(values, np.float64)))
        self.low += low.tolist()
        self.high += high.tolist()

    def program(self, removed: list[list[int]], inflows: list[Inflow]) -> MixedIntegerProgram:
        """Put everything together."""
        rows, columns, values = (np.concatenate(p) for p in zip(*self.parts, strict=True))
        return MixedIntegerProgram(
            removed, inflows, np.array(self.cost), np.array(self.upper), rows, columns, values,
            np.array(self.low), np.array(self.high),
        )  # fmt: skip


def assemble(
    problem: MoveProblem, covers: Sequence[CoverBounds], cutoff: int | None, most_moves: int | None = None
) -> MixedIntegerProgram:
    """Write a problem as a program.

    Parameters
    ----------
    problem
        The problem.
    covers
        Bounds for each of its asks.
    cutoff
        Only plans that cost less are looked for.
    most_moves
        If given, the asks are not all to be placed: as many members as possible are, with so many moves at most.
    """
    matrix = _Matrix()
    possible = _possible(problem, covers, cutoff)
    removed = _removals(problem, possible)
    counts = np.array([len(tasks) for tasks in removed], np.float64)
    outflow = matrix.columns(len(removed), 0.0, counts)
    first = np.array([tasks[0] for tasks in removed], np.int64)
    weights = problem.cost[first].astype(np.float64)
    matrix.cost[: len(removed)] = [0.0] * len(removed) if most_moves is not None else weights.tolist()
    inflows, fixed = _inflows(problem, covers, cutoff, possible)
    incoming = matrix.columns(len(inflows), 0.0, _most(problem, covers, fixed, inflows))
    if most_moves is not None:
        for column, inflow in zip(incoming.tolist(), inflows, strict=True):
            matrix.cost[column] = -1.0 if inflow.ask >= 0 else 0.0
        matrix.row(outflow, np.ones(len(outflow)), -FREE, most_moves)
    _capacity(problem, matrix, first, outflow, inflows, incoming)
    _landing(problem, matrix, removed, outflow, inflows, incoming, placed=most_moves is None)
    _elsewhere(problem, matrix, removed, outflow, inflows, incoming)
    _units(problem, matrix, removed, outflow)
    _domains(problem, matrix, inflows, incoming)
    for bound in problem.bounds:
        if not bound.concurrent or bound.limit <= 0:
            values = np.array([bound.weights.get(t, 0) for t in first.tolist()], np.float64)
            matrix.row(outflow, values, -FREE, max(0, bound.limit))
    if most_moves is None:
        for ask, cover in enumerate(covers):
            _cuts(problem, matrix, cover, fixed[ask], first, outflow, _of_ask(inflows, incoming, ask))
        if cutoff is not None:
            matrix.row(outflow, weights, -FREE, cutoff - 1)
    return matrix.program(removed, inflows)


def _possible(problem: MoveProblem, covers: Sequence[CoverBounds], cutoff: int | None) -> Mask:
    """Which tasks may move at all in a plan that costs less than the cut-off.

    The members' nodes alone cost what the cover bound says. So what moves off another node must cost no more than is
    left between that and the cut-off, and what moves off a member's node no more than is left beside the others.
    """
    possible = np.ones(problem.tasks, bool)
    if cutoff is None:
        return possible
    possible &= problem.cost < cutoff
    for cover in covers:
        slack = cutoff - 1 - int(cover.total[-1])
        width = cover.least.shape[1] - 1
        external = np.full(problem.tasks, NEVER, np.int64)
        for members in range(1, width + 1):
            own = np.maximum(cover.least[problem.node, members], problem.cost)
            external = np.minimum(external, own + int(cover.total[cover.ask.count - members]))
        possible &= (problem.cost <= slack) | (external < cutoff)
    return possible


def _removals(problem: MoveProblem, possible: Mask) -> list[list[int]]:
    """Tasks that may move, those that are alike in everything together."""
    alike: dict[tuple[object, ...], list[int]] = {}
    for task in np.flatnonzero(possible).tolist():
        budgets = tuple(b.weights.get(task, 0) for b in problem.bounds)
        key = (int(problem.node[task]), int(problem.cls[task]), int(problem.shape[task]), int(problem.cost[task]),
               int(problem.unit[task]), budgets)  # fmt: skip
        alike.setdefault(key, []).append(task)
    return list(alike.values())


def _inflows(
    problem: MoveProblem, covers: Sequence[CoverBounds], cutoff: int | None, possible: Mask
) -> tuple[list[Inflow], list[Ints]]:
    """Everything that could come in anywhere, and for each ask the most members that a node may get."""
    emptied = problem.free.copy()
    np.add.at(emptied.T, problem.node[possible], problem.takes()[possible])
    found: list[Inflow] = []
    for cls in np.unique(problem.cls[possible]).tolist():
        for shape in problem.shapes[cls]:
            fits = problem.allowed[shape] & (emptied >= problem.ask[shape][:, None]).all(axis=0)
            found += [Inflow(cls, -1, shape, node) for node in np.flatnonzero(fits).tolist()]
    fixed = []
    for number, (ask, cover) in enumerate(zip(problem.asks, covers, strict=True)):
        most = _most_members(cover, cutoff)
        fixed.append(most)
        for shape in problem.shapes[ask.cls]:
            fits = problem.allowed[shape] & (most > 0)
            found += [Inflow(ask.cls, number, shape, node) for node in np.flatnonzero(fits).tolist()]
    return found, fixed


def _most_members(cover: CoverBounds, cutoff: int | None) -> Ints:
    """The most members on each node in any plan that costs less than the cut-off."""
    limit = NEVER if cutoff is None else min(cutoff, NEVER)
    count = cover.ask.count
    width = cover.least.shape[1] - 1
    elsewhere = cover.total[count - width :][::-1]  # what the members that are not on the node cost at least
    possible = cover.least < NEVER if cutoff is None else cover.least + elsewhere[None, :] < limit
    numbers = np.arange(width + 1)
    return np.asarray(np.where(possible, numbers, 0).max(axis=1), np.int64)


def _most(problem: MoveProblem, covers: Sequence[CoverBounds], fixed: Sequence[Ints], inflows: list[Inflow]) -> Floats:
    """The most of each inflow: what fits on the emptied node, and for members what the cut-off leaves."""
    emptied = problem.free.copy()
    np.add.at(emptied.T, problem.node, problem.takes())
    found = np.zeros(len(inflows))
    for number, inflow in enumerate(inflows):
        if inflow.ask >= 0:
            found[number] = min(covers[inflow.ask].ask.count, int(fixed[inflow.ask][inflow.node]))
            continue
        asked = problem.ask[inflow.shape]
        rows = asked > 0
        fits = int((emptied[rows, inflow.node] // asked[rows]).min()) if rows.any() else problem.tasks
        found[number] = min(problem.tasks, fits)
    return found


def _capacity(
    problem: MoveProblem, matrix: _Matrix, first: Ints, outflow: Ints, inflows: list[Inflow], incoming: Ints
) -> None:
    """No node is over its capacity: what came in fits what is free and what has left."""
    kinds, size = problem.free.shape
    shapes = np.array([i.shape for i in inflows], np.int64)
    places = np.array([i.node for i in inflows], np.int64)
    asked = problem.ask[shapes].reshape(len(inflows), kinds)
    freed = problem.takes()[first].reshape(len(first), kinds)
    rows, columns, values = [], [], []
    for kind in range(kinds):
        touched = np.flatnonzero(asked[:, kind])
        left = np.flatnonzero(freed[:, kind])
        rows += [places[touched] * kinds + kind, problem.node[first[left]] * kinds + kind]
        columns += [incoming[touched], outflow[left]]
        values += [asked[touched, kind], -freed[left, kind]]
    scale = np.maximum(1, problem.ask.max(axis=0, initial=1)).astype(np.float64)  # rows of like magnitude
    row, value = np.concatenate(rows), np.concatenate(values) / scale[np.concatenate(rows) % kinds]
    high = (problem.free.T / scale).reshape(-1)
    matrix.block(row, np.concatenate(columns), value, np.full(size * kinds, -FREE), high)


def _landing(
    problem: MoveProblem, matrix: _Matrix, removed: list[list[int]], outflow: Ints, inflows: list[Inflow],
    incoming: Ints, *, placed: bool,
) -> None:  # fmt: skip
    """Everything that leaves a node lands somewhere, and a group is placed whole."""
    classes = np.array([problem.cls[tasks[0]] for tasks in removed], np.int64)
    own = np.array([i.cls if i.ask < 0 else -1 for i in inflows], np.int64)
    for cls in np.unique(classes).tolist():
        out, into = outflow[classes == cls], incoming[own == cls]
        matrix.row(np.concatenate([out, into]), [1.0] * len(out) + [-1.0] * len(into), 0.0, 0.0)
    for number, ask in enumerate(problem.asks):
        columns = _of_ask(inflows, incoming, number)[0]
        matrix.row(columns, np.ones(len(columns)), ask.count if placed else 0.0, ask.count)


def _elsewhere(
    problem: MoveProblem,
    matrix: _Matrix,
    removed: list[list[int]],
    outflow: Ints,
    inflows: list[Inflow],
    incoming: Ints,
) -> None:
    """What comes in to a node has left another one, where a task must not take another shape on its own."""
    if problem.in_place:
        return
    classes = np.array([problem.cls[tasks[0]] for tasks in removed], np.int64)
    origin = np.array([problem.node[tasks[0]] if problem.unit[tasks[0]] < 0 else -1 for tasks in removed], np.int64)
    own = np.array([(i.cls if i.ask < 0 else -1, i.node) for i in inflows], np.int64).reshape(-1, 2)
    for cls, node in np.unique(own[own[:, 0] >= 0], axis=0).tolist():
        if len(problem.shapes[cls]) > 1 and ((classes == cls) & (origin == node)).any():
            into = incoming[(own == (cls, node)).all(axis=1)]
            out = outflow[(classes == cls) & (origin != node)]
            matrix.row(np.concatenate([into, out]), [1.0] * len(into) + [-1.0] * len(out), -FREE, 0.0)


def _of_ask(inflows: list[Inflow], incoming: Ints, ask: int) -> tuple[Ints, Ints]:
    """Variables of an ask, and their nodes."""
    chosen = [(column, i.node) for column, i in zip(incoming.tolist(), inflows, strict=True) if i.ask == ask]
    table = np.array(chosen, np.int64).reshape(-1, 2)
    return table[:, 0], table[:, 1]


def _units(problem: MoveProblem, matrix: _Matrix, removed: list[list[int]], outflow: Ints) -> None:
    """Of a core one task moves, or all do."""
    members: dict[int, list[int]] = {}
    for column, tasks in zip(outflow.tolist(), removed, strict=True):
        unit = int(problem.unit[tasks[0]])
        if unit >= 0:
            members.setdefault(unit, []).append(column)
    sizes = np.bincount(problem.unit[problem.unit >= 0]) if (problem.unit >= 0).any() else np.zeros(0, np.int64)
    for unit, columns in sorted(members.items()):
        size = int(sizes[unit])
        if size <= 1:
            continue
        whole = sum(len(removed[c]) for c in columns) == size  # one may be too dear to move: then all are
        switch = matrix.columns(1, 0.0, np.array([1.0 if whole else 0.0]))[0]
        matrix.row([*columns, switch], [1.0] * len(columns) + [-(size - 1.0)], -FREE, 1.0)
        matrix.row([*columns, switch], [1.0] * len(columns) + [-float(size)], 0.0, FREE)


def _domains(problem: MoveProblem, matrix: _Matrix, inflows: list[Inflow], incoming: Ints) -> None:
    """All members of a group, or of a family of groups, land in one domain."""
    for groups, numbers in problem.together():
        for number in [n for n, ask in enumerate(problem.asks) if ask.group in groups]:
            columns, places = _of_ask(inflows, incoming, number)
            for column in columns[numbers[places] < 0].tolist():
                matrix.upper[column] = 0.0
        known = np.unique(numbers[numbers >= 0])
        if len(known) <= 1:
            continue
        switches = matrix.columns(len(known), 0.0, np.ones(len(known)))
        matrix.row(switches, np.ones(len(known)), 1.0, 1.0)
        for number, ask in enumerate(problem.asks):
            if ask.group not in groups:
                continue
            columns, places = _of_ask(inflows, incoming, number)
            for switch, domain in zip(switches.tolist(), known.tolist(), strict=True):
                mine = columns[numbers[places] == domain]
                matrix.row([*mine.tolist(), switch], [1.0] * len(mine) + [-float(ask.count)], -FREE, 0.0)


def _cuts(
    problem: MoveProblem,
    matrix: _Matrix,
    cover: CoverBounds,
    most: Ints,
    first: Ints,
    outflow: Ints,
    members: tuple[Ints, Ints],
) -> None:
    """What leaves a node costs at least what so many members on it need."""
    columns, places = members
    origin, price = problem.node[first], problem.cost[first]
    for node in np.flatnonzero(most > 0).tolist():
        mine = columns[places == node]
        steps = np.diff(np.minimum(cover.least[node, : int(most[node]) + 1], NEVER))
        if not steps.any() or (steps < 0).any():
            continue
        switches = matrix.columns(len(steps), 0.0, np.ones(len(steps)))
        matrix.row([*mine.tolist(), *switches.tolist()], [1.0] * len(mine) + [-1.0] * len(steps), 0.0, 0.0)
        for earlier, later in zip(switches[:-1].tolist(), switches[1:].tolist(), strict=True):
            matrix.row([earlier, later], [1.0, -1.0], 0.0, FREE)
        there = np.flatnonzero(origin == node)
        left = outflow[there].tolist()
        matrix.row([*left, *switches.tolist()], [*price[there].tolist(), *(-steps).tolist()], 0.0, FREE)
        one = int(cover.least[node, 1])
        if one:
            capped = np.minimum(price[there], one).tolist()
            matrix.row([*left, int(switches[0])], [*capped, -float(one)], 0.0, FREE)
