"""Moves of single tasks that improve a layout, the one that pays best first."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heappush

from tenure.engine.state.evictions import evict
from tenure.engine.state.workloads import TaskState
from tenure.rescheduler.heuristic.layout_moves import NOTHING, LayoutMoves


class SingleMoves:
    """The search for single tasks to move; of those that would gain the same the cheapest stands for all."""

    def __init__(self, moves: LayoutMoves) -> None:
        self.moves = moves
        self.session = moves.session
        self.worth = moves.worth

    def make(self) -> bool:
        """Make the moves of single tasks that pay best, until none does; what changes meanwhile is looked at again."""
        groups = self._alike()
        heap = []
        for key, group in groups.items():
            ratio, _ = self._ratio(group)
            if ratio > 0.0:
                heap.append((-ratio, key))
        heapify(heap)
        any_moved = False
        while heap and self.moves.steps > 0:
            expected, key = heappop(heap)
            ratio, target = self._ratio(groups[key])
            if ratio <= 0.0:
                continue
            if heap and -ratio > heap[0][0] + NOTHING and -ratio > expected + NOTHING:
                heappush(heap, (-ratio, key))
                continue
            task = self._first(groups[key])
            assert task is not None
            evict(self.session, task)
            self.moves.put(task, target)
            self.moves.keep(task, target)
            any_moved = True
            ratio, _ = self._ratio(groups[key])
            if ratio > 0.0:
                heappush(heap, (-ratio, key))
        return any_moved

    def _alike(self) -> dict[tuple[str, str], list[TaskState]]:
        """Tasks that would gain the same anywhere, the cheapest first, by the name of the first."""
        found: dict[tuple[object, ...], list[TaskState]] = {}
        for task in self.moves.tasks:
            if task not in self.moves.moved:
                warm = 0 if self.moves.utilization is None else self.moves.utilization.spares(task).tobytes()
                found.setdefault((task.node, task.cls.id, id(task.terms), warm), []).append(task)
        groups = [sorted(g, key=lambda t: (self.moves.cost[t], t.workload.key, t.index)) for g in found.values()]
        return {(g[0].workload.key, g[0].name): g for g in groups}

    def _first(self, group: Sequence[TaskState]) -> TaskState | None:
        return next((t for t in group if self.moves.is_open(t)), None)

    def _ratio(self, group: Sequence[TaskState]) -> tuple[float, int]:
        """Gain for each unit of disruption of a group's first task, 0 if it does not pay, and the target."""
        task = self._first(group)
        if task is None or self.moves.steps <= 0:
            return 0.0, -1
        session, worth, origin = self.session, self.worth, task.node
        with session.scenario():
            before = worth.of(origin) - worth.scattered()
            evict(session, task)
            left = worth.of(origin) - worth.scattered() - before
            target, arrived = self.moves.best(task)
            gain = left + arrived
            changes = worth.terms.whole or worth.terms.scattered
            if target >= 0 and changes and self.moves.pays(gain, self.moves.cost[task]):
                gain += self._correction(task, target, arrived)  # what devices it takes is known once it is there
        if target < 0 or not self.moves.pays(gain, self.moves.cost[task]):
            return 0.0, -1
        return gain / self.moves.cost[task], target

    def _correction(self, task: TaskState, target: int, expected: float) -> float:
        worth = self.worth
        before = worth.of(target) - worth.scattered()
        self.moves.put(task, target)
        liking = worth.liking(task)
        liked = 0.0 if liking is None else float(liking[target] - liking[task.leaving])
        return worth.of(target) - worth.scattered() - before + liked - expected
