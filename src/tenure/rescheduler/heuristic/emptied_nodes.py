"""Nodes that moves leave empty, the one that pays best for what has to leave it first."""

from __future__ import annotations

import numpy as np

from tenure.engine.state.evictions import evict
from tenure.engine.state.workloads import TaskState
from tenure.model.workload import NODE_OWNERS
from tenure.rescheduler.heuristic.layout_moves import LayoutMoves
from tenure.rescheduler.problem.layout import Floats


class EmptiedNodes:
    """The search for nodes to empty, of which all that has to leave finds a place."""

    def __init__(self, moves: LayoutMoves) -> None:
        self.moves = moves
        self.session = moves.session
        self.worth = moves.worth

    def make(self) -> bool:
        """Empty the nodes that pay best for what has to move off them, where all of that finds a place."""
        if not self.worth.terms.whole:
            return False
        ranked = []
        settles: Floats = np.full(len(self.session.nodes), np.inf)  # how dear it is to empty each node
        for node in range(len(self.session.nodes)):
            tasks = self._occupants(node)
            price = self.worth.terms.whole * float(self.worth.price[node])
            total = sum(self.moves.cost[t] for t in tasks or ())
            if tasks and self.moves.pays(price, total):
                ranked.append((-price / total, node, tasks))
                settles[node] = total / price
        done = [self._empty(node, tasks, settles) for _, node, tasks in sorted(ranked, key=lambda r: r[:2])]
        return any(done)

    def _occupants(self, node: int) -> list[TaskState] | None:
        """Give the tasks that have to leave a node so that it is empty; None where one must not."""
        if self.worth.idle()[node]:
            return None
        there = [
            t for t in self.session.on_node[node]
            if t.leaving != node and t.workload.model.owner_kind not in NODE_OWNERS
        ]  # fmt: skip
        if any(t not in self.moves.number or t.node != node or t in self.moves.moved for t in there):
            return None
        units = [self.moves.unit[self.moves.number[t]] for t in there]
        for unit in {u for u in units if u >= 0}:
            if unit in self.moves.units or 1 < units.count(unit) < self.moves.unit.count(unit):
                return None
        return sorted(there, key=lambda t: (-self.worth.weight(t.cls), t.workload.key, t.index))

    def _empty(self, node: int, tasks: list[TaskState], settles: Floats) -> bool:
        if tasks != self._occupants(node) or not self.moves.within(tasks) or self.moves.steps <= 0:
            return False
        with self.session.scenario() as emptied:
            gain, places = self._empty_out(node, tasks, settles)
            if len(places) < len(tasks) or not self.moves.pays(gain, sum(self.moves.cost[t] for t in tasks)):
                return False
            emptied.keep()
        for task, target in zip(tasks, places, strict=True):
            self.moves.keep(task, target)
        return True

    def _empty_out(self, node: int, tasks: list[TaskState], settles: Floats) -> tuple[float, list[int]]:
        """Move tasks off a node one by one; gives the gain, and where they went as far as there was a place."""
        worth = self.worth
        idle = worth.idle().copy()
        idle[node] = True
        before = {node: worth.of(node)}
        scattered = worth.scattered()
        for task in tasks:
            evict(self.session, task)
        places: list[int] = []
        for task in tasks:
            target, _ = self.moves.best(task, idle, settles)
            if target < 0:
                break
            before.setdefault(target, worth.of(target))
            self.moves.put(task, target)
            places.append(target)
            if self.moves.utilization is not None:
                self.moves.utilization.move(task, target)
        gain = sum(worth.of(n) - b for n, b in before.items()) + scattered - worth.scattered()
        if self.moves.utilization is not None:
            for task, target in zip(tasks, places, strict=False):
                self.moves.utilization.move_back(task, target)
        return gain, places
