"""Some tasks of a reassignment and some nodes for each of them as a program; everything else stays where it is.

Soft limits and balances are columns that pay for what lies beyond them; they are in `GRAIN` units of a resource, so
that all numbers are of like magnitude. What all layouts pay for balances alike is left out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

import numpy as np

from reassignment import Floats, Ints, Mask, Reassignment
from tenure.rescheduler.milp.program import MixedIntegerProgram

GRAIN = 10_000.0
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

    def columns(self, number: int, cost: float, upper: float) -> Ints:
        """Add columns and give their numbers."""
        begin = self.first + len(self.cost)
        self.cost += [cost] * number
        self.upper += [upper] * number
        return np.arange(begin, begin + number)

    def block(self, rows: Ints, columns: Ints, values: Floats, low: Floats, high: Floats) -> None:
        """Add several rows; ``rows`` are counted from 0."""
        self.parts.append((rows + len(self.low), columns, values))
        self.low += low.tolist()
        self.high += high.tolist()

    def count(self, rows: Ints, columns: Ints, number: int, low: float, high: float) -> None:
        """Add rows that count columns, all with the same bounds."""
        self.block(rows, columns, np.ones(len(columns)), np.full(number, low), np.full(number, high))


class Keyed:
    """Columns by key: which of them have one of several."""

    def __init__(self, key: Ints, size: int) -> None:
        self.number = np.bincount(key, minlength=size)
        self._order = np.argsort(key, kind="stable")
        self._begin = np.concatenate([[0], np.cumsum(self.number)[:-1]])

    def of(self, keys: Ints) -> tuple[Ints, Ints]:
        """Give the columns of each key, and beside each the place of its key in ``keys``."""
        number = self.number[keys]
        shift = self._begin[keys] - np.concatenate([[0], np.cumsum(number)[:-1]])[: len(keys)]
        return np.repeat(np.arange(len(keys)), number), self._order[np.repeat(shift, number) + np.arange(number.sum())]


class Part:
    """The question where ``tasks`` (``int64``, ascending) go, of which each may go to some nodes.

    ``may``: ``bool[tasks of the part, nodes]``. Nodes that a rule forbids, whatever the others do, are taken off it.
    The choices that are left are the first columns of the program: of ``task`` (a place in ``tasks``) for ``node``.
    """

    def __init__(self, problem: Reassignment, place: Ints, tasks: Ints, may: Mask) -> None:
        self.problem, self.place, self.tasks = problem, place, tasks
        stays = np.ones(problem.tasks, bool)
        stays[tasks] = False
        self.others = np.flatnonzero(stays)
        self.nodes = np.flatnonzero(may.any(axis=0))
        self.on = np.zeros((len(problem.needs), problem.nodes), bool)
        self.on[problem.group[self.others], place[self.others]] = True
        self.around = np.zeros((len(problem.needs), int(problem.near.max()) + 1), bool)
        self.around[problem.group[self.others], problem.near[place[self.others]]] = True
        self.load = np.zeros(problem.capacity.shape, np.int64)
        np.add.at(self.load, place[self.others], problem.takes[self.others])
        away = self.others[problem.origin[self.others] != place[self.others]]
        held = self.load.copy()
        for gone in (away, tasks):  # at home it makes no difference to what is transient whether a task has left
            np.add.at(held, problem.origin[gone], problem.takes[gone] * problem.transient)
        self.room = problem.capacity - held
        self.task, self.node = np.nonzero(self._possible(may))
        self.home = problem.origin[tasks[self.task]] == self.node
        self.here = place[tasks[self.task]] == self.node

    @classmethod
    def among(cls, problem: Reassignment, place: Ints, nodes: Ints) -> Self:
        """All that is on ``nodes``, to be exchanged among them."""
        may = np.zeros(problem.nodes, bool)
        may[nodes] = True
        tasks = np.flatnonzero(may[place])
        return cls(problem, place, tasks, np.tile(may, (len(tasks), 1)))

    def _possible(self, may: Mask) -> Mask:
        problem, tasks = self.problem, self.tasks
        group = problem.group[tasks]
        may = may & ~self.on[group]
        home = problem.origin[tasks][:, None] == np.arange(problem.nodes)
        for kind, transient in enumerate(problem.transient.tolist()):
            fits = problem.takes[tasks, kind][:, None] <= self.room[:, kind]
            may &= fits | home if transient else fits
        could = self.on.copy()
        np.logical_or.at(could, group, may)
        around = np.zeros_like(self.around)
        np.logical_or.at(around.T, problem.near, could.T)
        supported = np.ones(around.shape, bool)
        np.logical_and.at(supported, problem.pairs[:, 0], around[problem.pairs[:, 1]])
        return np.asarray(may & supported[:, problem.near][group])

    def program(
        self, *, away: Floats | None = None, leave: Floats | None = None, gap: float = 0.0
    ) -> MixedIntegerProgram:
        """Write it down.

        Parameters
        ----------
        away
            What it costs besides if a task is away from its origin: ``float64[tasks of the problem]``.
        leave
            What it costs besides if a task leaves the node where it is now, in the same form.
        gap
            A solution counts as optimal if none can be cheaper by more.
        """
        problem = self.problem
        task = self.tasks[self.task]
        cost = (problem.cost[task] + problem.distance[problem.origin[task], self.node]).astype(np.float64)
        cost = np.where(self.home, 0.0, cost if away is None else cost + away[task])
        if leave is not None:
            cost += np.where(self.here, 0.0, leave[task])
        made = Rows(len(task))
        every = np.arange(len(task))
        made.count(self.task, every, len(self.tasks), 1.0, 1.0)
        self._capacity(made)
        now = float(cost[self.here].sum()) + self._limits(made)
        key = Keyed(problem.group[task] * problem.nodes + self.node, self.on.size)
        crowded = np.flatnonzero(key.number > 1)
        made.count(*key.of(crowded), len(crowded), -FREE, 1.0)
        self._spread(made, task)
        self._everywhere(made, key)
        self._near(made, key, task)
        rows, columns, values = (np.concatenate(p) for p in zip(*made.parts, strict=True))
        width = len(task) + len(made.cost)
        start = np.full(width, np.nan)
        start[every] = self.here
        return MixedIntegerProgram(
            [], [], np.concatenate([cost, made.cost]), np.concatenate([np.ones(len(task)), made.upper]), rows, columns,
            values, np.array(made.low), np.array(made.high), start, np.arange(len(task), width),
            gap / max(now, gap, 1.0),
        )  # fmt: skip

    def placed(self, values: Floats) -> Ints:
        """Give the layout of a solution: ``int64[tasks of the problem]``."""
        found = self.place.copy()
        found[self.tasks] = self.shares(values).argmax(axis=1)
        return found

    def shares(self, values: Floats) -> Floats:
        """Give how much of each task is on each node: ``float64[tasks of the part, nodes]``."""
        found = np.zeros((len(self.tasks), self.problem.nodes))
        found[self.task, self.node] = values[: len(self.task)]
        return found

    def _capacity(self, made: Rows) -> None:
        """Whoever has left a node holds there what is transient, so at home that is no question of the choice."""
        problem, task = self.problem, self.tasks[self.task]
        scale = np.maximum(1.0, problem.takes.max(axis=0) / 1000)
        for kind, transient in enumerate(problem.transient.tolist()):
            takes = problem.takes[task, kind] * ~(self.home & transient)
            tight = np.bincount(self.node, takes, problem.nodes) > self.room[:, kind]
            some = np.flatnonzero(tight[self.node] & (takes > 0))
            high = self.room[tight, kind] / scale[kind]
            row = np.cumsum(tight) - 1
            made.block(row[self.node[some]], some, takes[some] / scale[kind], np.full(len(high), -FREE), high)

    def _limits(self, made: Rows) -> float:
        """Pay for what is beyond soft limits and balances; gives what is paid now."""
        problem, now = self.problem, 0.0
        takes = problem.takes[self.tasks[self.task]].astype(np.float64)
        for kind, price in enumerate(problem.over.tolist()):
            now += self._form(made, takes[:, kind], self.load[:, kind] - problem.limit[:, kind], price)
        free = problem.capacity - self.load
        for b in problem.balances:
            # max(0, form) = form + max(0, -form), and the sum of the forms is the same for all layouts
            short = free[:, b.second] - b.target * free[:, b.first]
            now += self._form(made, b.target * takes[:, b.first] - takes[:, b.second], short, b.weight)
        return now

    def _form(self, made: Rows, lift: Floats, offset: Ints, price: float) -> float:
        """Pay for what a linear form of the load is above 0 on the nodes; gives what is paid now."""
        if not price:
            return 0.0
        most = np.bincount(self.node, np.maximum(lift, 0.0), self.problem.nodes) + offset
        inside = np.zeros(self.problem.nodes, bool)
        inside[self.nodes] = True
        paying = (most > 0) & inside
        some = np.flatnonzero(paying[self.node] & (lift != 0.0))
        number = int(paying.sum())
        beyond = made.columns(number, price * GRAIN, FREE)
        row = (np.cumsum(paying) - 1)[self.node[some]]
        values = np.concatenate([lift[some] / GRAIN, np.full(number, -1.0)])
        made.block(
            np.concatenate([row, np.arange(number)]), np.concatenate([some, beyond]), values,
            np.full(number, -FREE), -offset[paying] / GRAIN,
        )  # fmt: skip
        here = np.bincount(self.node[self.here], lift[self.here], self.problem.nodes) + offset
        return float(np.maximum(here[paying], 0.0).sum()) * price

    def _spread(self, made: Rows, task: Ints) -> None:
        """Groups are in as many domains as they have to be."""
        problem = self.problem
        inside = np.zeros((len(problem.least), int(problem.domain.max(initial=0)) + 1), bool)
        inside[problem.group[self.others], problem.domain[self.place[self.others]]] = True
        lacking = problem.least - inside.sum(axis=1)
        group, domain = problem.group[task], problem.domain[self.node]
        for number in np.unique(group[lacking[group] > 0]).tolist():
            mine = np.flatnonzero(group == number)
            nodes = np.unique(self.node[mine])
            new = np.unique(domain[mine])
            new = new[~inside[number, new]]
            if len(new) == len(nodes):  # no two share a node, so all are in domains of their own
                continue
            marks = made.columns(len(new), 0.0, 1.0)
            place = np.searchsorted(new, domain[mine])
            known = place < len(new)
            known[known] = new[place[known]] == domain[mine][known]
            rows = np.concatenate([place[known], np.arange(len(new))])
            values = np.concatenate([np.ones(int(known.sum())), np.full(len(new), -1.0)])
            columns = np.concatenate([mine[known], marks])
            made.block(rows, columns, values, np.zeros(len(new)), np.full(len(new), FREE))
            made.count(np.zeros(len(new), np.int64), marks, 1, float(lacking[number]), FREE)

    def _everywhere(self, made: Rows, key: Keyed) -> None:
        """A group of as many tasks as there are nodes has one on each."""
        groups = np.flatnonzero(self.problem.everywhere)
        number, node = np.nonzero(~self.on[groups])
        made.count(*key.of(groups[number] * self.problem.nodes + node), len(number), 1.0, 1.0)

    def _near(self, made: Rows, key: Keyed, task: Ints) -> None:
        """Whoever needs another group has it in the neighbourhood."""
        problem = self.problem
        group, other = problem.pairs[~problem.everywhere[problem.pairs[:, 1]]].T
        width = self.around.shape[1]
        wide = Keyed(problem.group[task] * width + problem.near[self.node], self.around.size)
        number, near = np.nonzero(self.around[group] & ~self.around[other])
        keys = np.unique(other[number] * width + near)
        made.count(*wide.of(keys), len(keys), 1.0, FREE)
        chosen = key.number.reshape(self.on.shape)[group] > 0
        open_ = (~self.around[other] & ~self.around[group])[:, problem.near]
        number, node = np.nonzero(chosen & open_)
        mine = key.of(group[number] * problem.nodes + node)
        theirs = wide.of(other[number] * width + problem.near[node])
        values = np.concatenate([np.ones(len(mine[0])), np.full(len(theirs[0]), -1.0)])
        rows, columns = (np.concatenate(p) for p in zip(mine, theirs, strict=True))
        made.block(rows, columns, values, np.full(len(number), -FREE), np.zeros(len(number)))
