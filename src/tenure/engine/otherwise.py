"""When a workload would have started had nothing been evicted: when enough of what runs was expected to have ended.

An estimate of its own, made after the fact: free room is counted node by node, resource by resource, and what runs is
let go in the order of its expected end. Constraints of tasks on nodes, and what queues may hold at most, are left out,
so that it is rather too early than too late: what an eviction gained is not made greater than it was.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tenure.model.node import Node
from tenure.model.values.resources import GPU, MILLI

Array = npt.NDArray[np.int64]
NEVER = 1 << 62
MOST_CHANGES = 4096


class RoomOverTime:
    """What is free on each node now, and what runs where until when it is expected to end (µs)."""

    def __init__(self, nodes: Sequence[Node], resources: Sequence[str]) -> None:
        self.free: Array = np.array(
            [[n.allocatable.get(r, 0) * (MILLI if r == GPU else 1) for n in nodes] for r in resources], dtype=np.int64
        ).reshape(len(resources), len(nodes))
        self.changes: list[tuple[int, int, Sequence[int]]] = []
        self.running: dict[tuple[int, int], tuple[int, int, Sequence[int]]] = {}
        self.ends: dict[int, int] = {}

    def occupy(self, job: int, task: int, node: int, amounts: Sequence[int]) -> None:
        """A task holds so much of a node."""
        self.running[job, task] = node, job, amounts
        self._changed(node, -1, amounts)

    def leave(self, job: int, task: int) -> None:
        """A task holds nothing any more."""
        found = self.running.pop((job, task), None)
        if found is not None:
            self._changed(found[0], 1, found[2])

    def _changed(self, node: int, sign: int, amounts: Sequence[int]) -> None:
        """Remember a change until an estimate is asked for, or until there are many: together they cost little."""
        self.changes.append((node, sign, amounts))
        if len(self.changes) >= MOST_CHANGES:
            self._catch_up()

    def _catch_up(self) -> None:
        if self.changes:
            nodes, signs, amounts = zip(*self.changes, strict=True)
            self.changes.clear()
            np.add.at(self.free.T, np.array(nodes), np.array(amounts, dtype=np.int64) * np.array(signs)[:, None])

    def start_without(self, ask: Sequence[tuple[Sequence[int], int]], now: int) -> int | None:
        """Say when tasks (what each holds, and how many) would have had room; None where that is unknown.

        Each kind of task is counted by itself.
        """
        self._catch_up()
        tasks = [(self.ends.get(job, NEVER), node, amounts) for node, job, amounts in self.running.values()]
        tasks = sorted((t for t in tasks if t[0] < NEVER), key=lambda t: t[0])
        if self._fits(self.free, ask):
            return now
        if not tasks:
            return None
        ends = [t[0] for t in tasks]
        nodes = np.array([t[1] for t in tasks])
        amounts = np.array([t[2] for t in tasks], dtype=np.int64)
        if not self._fits(self._after(nodes, amounts), ask):
            return None
        low, high = 0, len(tasks)  # after the first `low` of them it does not fit, after `high` it does
        while high - low > 1:
            middle = (low + high) // 2
            if self._fits(self._after(nodes[:middle], amounts[:middle]), ask):
                high = middle
            else:
                low = middle
        return max(now, ends[high - 1])

    def _after(self, nodes: npt.NDArray[np.int64], amounts: Array) -> Array:
        free = self.free.copy()
        np.add.at(free.T, nodes, amounts)
        return free

    @staticmethod
    def _fits(free: Array, ask: Sequence[tuple[Sequence[int], int]]) -> bool:
        for amounts, number in ask:
            asked = [(index, amount) for index, amount in enumerate(amounts) if amount]
            if not asked:
                continue
            rooms = [np.maximum(free[index], 0) // amount for index, amount in asked]
            if int(np.minimum.reduce(rooms).sum()) < number:
                return False
        return True
