"""Some nodes of a reassignment as a program: which of the tasks on them goes to which of them.

What is on other nodes stays there. Soft limits and balances are columns that pay for what lies beyond them; they are in
`GRAIN` units of a resource, so that all numbers are of like magnitude.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from reassignment import Floats, Ints, Reassignment
from tenure.rescheduler.program import Program

GRAIN = 10_000.0
GAP = 1e-3
"""A part is solved to within this share of what it costs."""
FREE = np.inf


@dataclass(slots=True)
class Rows:
    """Collects rows, and columns beside the choices; there are ``first`` of those."""

    first: int
    cost: list[float] = field(default_factory=list)
    upper: list[float] = field(default_factory=list)
    low: list[float] = field(default_factory=list)
    high: list[float] = field(default_factory=list)
    parts: list[tuple[Ints, Ints, Floats]] = field(default_factory=list)

    def column(self, cost: float, upper: float) -> int:
        """Add a column and give its number."""
        self.cost.append(cost)
        self.upper.append(upper)
        return self.first + len(self.cost) - 1

    def add(self, columns: Ints, values: Floats, low: float, high: float) -> None:
        """Add a row."""
        self.parts.append((np.full(len(columns), len(self.low)), columns, values))
        self.low.append(low)
        self.high.append(high)

    def sum(self, columns: Ints, low: float, high: float) -> None:
        """Add a row that counts columns."""
        self.add(columns, np.ones(len(columns)), low, high)


class Part:
    """All tasks on ``nodes`` (``int64``, ascending), which may be exchanged among them.

    Of the choices ``x`` (``int64[tasks, nodes]``, numbers of columns) one is made for each task.
    """

    def __init__(self, problem: Reassignment, place: Ints, nodes: Ints) -> None:
        self.problem, self.place, self.nodes = problem, place, nodes
        here = np.isin(place, nodes)
        self.tasks = np.flatnonzero(here)
        self.others = np.flatnonzero(~here)
        self.x = np.arange(len(self.tasks) * len(nodes)).reshape(len(self.tasks), len(nodes))
        self.members: dict[int, Ints] = {}
        for group in np.unique(problem.group[self.tasks]).tolist():
            self.members[group] = np.flatnonzero(problem.group[self.tasks] == group)

    def program(self) -> Program:
        """Write it down."""
        problem, tasks, nodes = self.problem, self.tasks, self.nodes
        made = Rows(self.x.size)
        origin = problem.origin[tasks]
        home = origin[:, None] == nodes
        cost = np.where(home, 0, problem.cost[tasks][:, None] + problem.distance[np.ix_(origin, nodes)])
        upper = np.ones(self.x.size)
        for row in self.x:
            made.sum(row, 1.0, 1.0)
        self._capacity(made, home)
        self._limits(made)
        for members in self.members.values():
            if len(members) > 1:
                for column in range(len(nodes)):
                    made.sum(self.x[members, column], -FREE, 1.0)
        self._spread(made)
        self._near(made, upper)
        rows, columns, values = (np.concatenate(p) for p in zip(*made.parts, strict=True))
        width = self.x.size + len(made.cost)
        return Program(
            [], [], np.concatenate([cost.ravel(), made.cost]), np.concatenate([upper, made.upper]), rows, columns,
            values, np.array(made.low), np.array(made.high), self._start(width), np.arange(self.x.size, width), GAP,
        )  # fmt: skip

    def placed(self, values: Floats) -> Ints:
        """Give the layout of a solution: ``int64[tasks of the problem]``."""
        found = self.place.copy()
        found[self.tasks] = self.nodes[values[self.x].argmax(axis=1)]
        return found

    def _start(self, width: int) -> Floats:
        start = np.full(width, np.nan)
        start[self.x] = self.place[self.tasks][:, None] == self.nodes
        return start

    def _capacity(self, made: Rows, home: Ints) -> None:
        """Whoever has left a node holds there what is transient, so at home that is no question of the choice."""
        problem, tasks = self.problem, self.tasks
        held = np.zeros(problem.capacity.shape)
        away = self.others[problem.origin[self.others] != self.place[self.others]]
        for gone in (away, tasks):
            np.add.at(held, problem.origin[gone], problem.takes[gone] * problem.transient)
        scale = np.maximum(1.0, problem.takes.max(axis=0) / 1000)
        for column, node in enumerate(self.nodes.tolist()):
            for kind in range(problem.capacity.shape[1]):
                takes = problem.takes[tasks, kind] * ~(home[:, column] & problem.transient[kind])
                room = float(problem.capacity[node, kind] - held[node, kind])
                if takes.sum() > room:
                    some = np.flatnonzero(takes)
                    made.add(self.x[some, column], takes[some] / scale[kind], -FREE, room / scale[kind])

    def _limits(self, made: Rows) -> None:
        problem = self.problem
        takes = problem.takes[self.tasks].astype(np.float64)
        for column, node in enumerate(self.nodes.tolist()):
            for kind, price in enumerate(problem.over.tolist()):
                self._form(made, column, takes[:, kind], -float(problem.limit[node, kind]), price)
            for b in problem.balances:
                offset = b.target * problem.capacity[node, b.first] - problem.capacity[node, b.second]
                self._form(made, column, takes[:, b.second] - b.target * takes[:, b.first], float(offset), b.weight)

    def _form(self, made: Rows, column: int, lift: Floats, offset: float, price: float) -> None:
        """Pay for what a linear form of the load is above 0."""
        if price and np.maximum(lift, 0.0).sum() + offset > 0:
            some = np.flatnonzero(lift)
            beyond = made.column(price * GRAIN, FREE)
            values = np.append(lift[some] / GRAIN, -1.0)
            made.add(np.append(self.x[some, column], beyond), values, -FREE, -offset / GRAIN)

    def _spread(self, made: Rows) -> None:
        """Groups are in as many domains as they have to be."""
        problem = self.problem
        domain = problem.domain[self.nodes]
        for group, members in self.members.items():
            rest = self.others[problem.group[self.others] == group]
            there = set(problem.domain[self.place[rest]].tolist())
            new = [d for d in dict.fromkeys(domain.tolist()) if d not in there]
            lacking = int(problem.least[group]) - len(there)
            if lacking <= 0 or len(new) == len(domain):  # no two share a node, so all are in domains of their own
                continue
            marks = []
            for number in new:
                mark = made.column(0.0, 1.0)
                inside = self.x[np.ix_(members, np.flatnonzero(domain == number))].ravel()
                made.add(np.append(inside, mark), np.append(np.ones(len(inside)), -1.0), 0.0, FREE)
                marks.append(mark)
            made.sum(np.array(marks, np.int64), lacking, FREE)

    def _near(self, made: Rows, upper: Floats) -> None:
        """Whoever needs another group has it in the neighbourhood."""
        problem, near = self.problem, self.problem.near[self.nodes]
        around = np.zeros((len(problem.needs), int(problem.near.max()) + 1), bool)
        around[problem.group[self.others], problem.near[self.place[self.others]]] = True
        nobody = np.zeros(0, np.int64)
        for number in dict.fromkeys(near.tolist()):
            columns = np.flatnonzero(near == number)
            for group, needs in enumerate(problem.needs):
                mine = self.members.get(group, nobody)
                for other in needs:
                    if around[other, number] or not (len(mine) or around[group, number]):
                        continue
                    theirs = self.x[np.ix_(self.members.get(other, nobody), columns)].ravel()
                    if around[group, number]:
                        made.sum(theirs, 1.0, FREE)
                    elif not len(theirs):
                        upper[self.x[np.ix_(mine, columns)].ravel()] = 0.0
                    else:
                        for column in columns.tolist():
                            both = np.concatenate([self.x[mine, column], theirs])
                            made.add(both, np.repeat([1.0, -1.0], [len(mine), len(theirs)]), -FREE, 0.0)
