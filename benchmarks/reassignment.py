"""Where load lies: tasks on nodes with soft limits, balance and costs of moves, and what one more move would change.

This is the model of machine reassignment (ROADEF/EURO challenge 2012) in the words of a cluster: hard capacity,
resources that a task holds at its origin until it has landed (*transient*), tasks of a group that never share a node,
groups that have to be spread over domains, and groups that have to have another one near. Costs are whole numbers kept
in floating point, exact below 2**53, so that the evaluation of many moves at once is a product of matrices.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Balance:
    """For each unit of ``first`` that is free on a node, ``target`` units of ``second`` are to be free there.

    Each unit short costs ``weight``.
    """

    first: int
    second: int
    target: int
    weight: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Reassignment:
    """Tasks, nodes, and what is to be paid for a layout.

    Parameters
    ----------
    capacity, limit
        ``int64[nodes, resources]``: what a node has, and what it had better not exceed.
    transient
        ``bool[resources]``: what a task that moves holds at its origin as well.
    over
        ``int64[resources]``: cost of each unit above the limit.
    takes
        ``int64[tasks, resources]``.
    origin
        ``int64[tasks]``: node of each task.
    group
        ``int64[tasks]``: tasks of one group are on different nodes.
    domain, least
        ``int64[nodes]`` and ``int64[groups]``: a group is spread over so many domains at least.
    near
        ``int64[nodes]``: neighbourhood of each node.
    needs
        For each group those that have to have a task in every neighbourhood where it has one.
    balances
        Resources that are to be free together.
    cost
        ``int64[tasks]``: of moving a task, wherever to.
    distance
        ``int64[nodes, nodes]``: of moving any task from one node to another.
    most_of_group
        Cost of each task moved of the group of which most are.
    """

    capacity: Ints
    limit: Ints
    transient: Mask
    over: Ints
    takes: Ints
    origin: Ints
    group: Ints
    domain: Ints
    least: Ints
    near: Ints
    needs: tuple[tuple[int, ...], ...]
    balances: tuple[Balance, ...] = ()
    cost: Ints
    distance: Ints
    most_of_group: int = 0
    needed_by: tuple[tuple[int, ...], ...] = field(default=(), init=False)
    pairs: Ints = field(default_factory=lambda: np.zeros((0, 2), np.int64), init=False)

    def __post_init__(self) -> None:
        """Turn the needs round, and list them: ``pairs`` has a group and one that it needs in each row."""
        pairs = [(group, other) for group, others in enumerate(self.needs) for other in others]
        object.__setattr__(self, "pairs", np.array(pairs, np.int64).reshape(-1, 2))
        needed: list[list[int]] = [[] for _ in self.needs]
        for group, others in enumerate(self.needs):
            for other in others:
                needed[other].append(group)
        object.__setattr__(self, "needed_by", tuple(map(tuple, needed)))

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return len(self.capacity)

    @property
    def tasks(self) -> int:
        """Number of tasks."""
        return len(self.takes)

    @property
    def everywhere(self) -> Mask:
        """Groups of as many tasks as there are nodes, so that one is on each: ``bool[groups]``."""
        return np.asarray(np.bincount(self.group, minlength=len(self.needs)) == self.nodes)


class Layout:
    """Tasks on nodes, with everything that is needed to tell what a move would change.

    What a node pays is ``max(0, forms) @ weights``: each soft limit and each balance is a linear form of its load.
    """

    def __init__(self, problem: Reassignment, place: Ints | None = None) -> None:
        self.problem = problem
        resources = problem.capacity.shape[1]
        balances = problem.balances
        kernel = np.zeros((resources, resources + len(balances)))
        kernel[np.arange(resources), np.arange(resources)] = 1.0
        offset = np.concatenate([-problem.limit, np.zeros((problem.nodes, len(balances)))], axis=1).astype(np.float64)
        for column, b in enumerate(balances, start=resources):
            kernel[b.first, column] -= b.target
            kernel[b.second, column] += 1.0
            offset[:, column] = b.target * problem.capacity[:, b.first] - problem.capacity[:, b.second]
        self.weights = np.array([*problem.over.tolist(), *(b.weight for b in balances)], np.float64)
        self.takes = problem.takes.astype(np.float64)
        self.lift: Floats = self.takes @ kernel
        self.firm = np.where(problem.transient, 0.0, self.takes)
        self.task_cost = problem.cost.astype(np.float64)
        self.distance = problem.distance.astype(np.float64)
        self._kernel, self._offset = kernel, offset
        self.set(problem.origin if place is None else place)

    def set(self, place: Ints) -> None:
        """Begin anew with tasks on these nodes: ``int64[tasks]``."""
        problem = self.problem
        self.place = place.copy()
        load: Floats = np.zeros(problem.capacity.shape)
        np.add.at(load, place, self.takes)
        self.forms: Floats = load @ self._kernel + self._offset
        self.pays: Floats = np.maximum(self.forms, 0.0) @ self.weights
        held = load
        moved = place != problem.origin
        np.add.at(held, problem.origin[moved], self.takes[moved] - self.firm[moved])
        self.slack: Floats = problem.capacity - held
        groups = len(problem.least)
        self.on = np.zeros((groups, problem.nodes), np.int64)
        np.add.at(self.on, (problem.group, place), 1)
        self.inside = np.zeros((groups, int(problem.domain.max(initial=0)) + 1), np.int64)
        np.add.at(self.inside, (problem.group, problem.domain[place]), 1)
        self.around = np.zeros((groups, int(problem.near.max(initial=0)) + 1), np.int64)
        np.add.at(self.around, (problem.group, problem.near[place]), 1)
        self.moved = np.bincount(problem.group[moved], minlength=groups)
        self.histogram = np.bincount(self.moved, minlength=problem.tasks + 2)
        self.most = int(self.moved.max(initial=0))

    def total(self) -> int:
        """What the layout costs."""
        problem = self.problem
        moved = self.place != problem.origin
        found = self.pays.sum() + self.task_cost[moved].sum() + self.distance[problem.origin, self.place].sum()
        return round(float(found)) + problem.most_of_group * self.most

    def move_deltas(self, task: int) -> Floats:
        """What moving a task to each node would change, infinite where it may not be: ``float64[nodes]``."""
        problem = self.problem
        origin, source, group = problem.origin[task], self.place[task], problem.group[task]
        left = float(np.maximum(self.forms[source] - self.lift[task], 0.0) @ self.weights) - self.pays[source]
        delta: Floats = np.maximum(self.forms + self.lift[task], 0.0) @ self.weights - self.pays
        delta += left + self.distance[origin] - self.distance[origin, source]
        if source == origin:
            delta += self.task_cost[task] + self._group_delta(group, leaves=True)
        else:
            delta[origin] += self._group_delta(group, leaves=False) - self.task_cost[task]
        fits = (self.slack >= self.takes[task]).all(axis=1)
        if source != origin:
            fits[origin] = bool((self.slack[origin] >= self.firm[task]).all())
        fits &= self.on[group] == 0
        fits &= self._spread_mask(group, int(problem.domain[source]))
        if problem.needs[group] or problem.needed_by[group]:
            fits &= self._near_mask(group, int(problem.near[source]))
        fits[source] = False
        delta[~fits] = np.inf
        return delta

    def _group_delta(self, group: int, *, leaves: bool) -> float:
        """What the cost of the group of which most are moved changes by, if one more leaves or one returns."""
        moved = int(self.moved[group])
        if leaves:
            return float(self.problem.most_of_group * (moved == self.most))
        alone = moved == self.most and self.histogram[moved] == 1
        return -float(self.problem.most_of_group * alone)

    def _spread_mask(self, group: int, domain: int) -> Mask:
        """Nodes to which one of a group may go from a domain without too few domains being left."""
        inside = self.inside[group]
        left = inside > 0
        if inside[domain] == 1:
            left[domain] = False
        if int(left.sum()) >= int(self.problem.least[group]):
            return np.ones(self.problem.nodes, bool)
        return np.asarray(~left[self.problem.domain])

    def _near_mask(self, group: int, near: int) -> Mask:
        problem = self.problem
        fits = np.ones(self.around.shape[1], bool)
        for other in problem.needs[group]:
            fits &= self.around[other] > 0
        if self.around[group, near] == 1 and any(self.around[other, near] > 0 for other in problem.needed_by[group]):
            fits[:] &= np.arange(len(fits)) == near
        return np.asarray(fits[problem.near])

    def move(self, task: int, target: int) -> None:
        """Move a task."""
        problem = self.problem
        source, origin, group = int(self.place[task]), int(problem.origin[task]), int(problem.group[task])
        for node, sign in ((source, -1), (target, 1)):
            self.forms[node] += sign * self.lift[task]
            self.pays[node] = np.maximum(self.forms[node], 0.0) @ self.weights
            self.slack[node] -= sign * (self.firm[task] if node == origin else self.takes[task])
            self.on[group, node] += sign
            self.inside[group, problem.domain[node]] += sign
            self.around[group, problem.near[node]] += sign
        self.place[task] = target
        change = int(target != origin) - int(source != origin)
        if change:
            before = int(self.moved[group])
            self.moved[group] += change
            self.histogram[before] -= 1
            self.histogram[before + change] += 1
            self.most = max(self.most, before + change)
            if not self.histogram[self.most]:
                self.most -= 1
