"""What candidates hold, node by node, and for which contenders it could be room enough: bounds for all at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tenure.engine.room.nodes import Ints
from tenure.engine.state.session import Session
from tenure.engine.state.workloads import TaskState
from tenure.requeue.candidates import RequeueCandidate
from tenure.victims.bounds.room_demand import RoomDemand

Mask = NDArray[np.bool_]


class CandidateRoom:
    """The room that candidates hold, as pairs of candidate and node: ``freed[rows, pair]``, the pairs in order."""

    def __init__(self, session: Session, candidates: Sequence[RequeueCandidate]) -> None:
        self.nodes = nodes = session.nodes
        self.count = len(candidates)
        tasks: list[TaskState] = []
        whose: list[int] = []
        for number, candidate in enumerate(candidates):
            held = candidate.workload.placed()
            tasks += held
            whose += [number] * len(held)
        where = np.array(whose, np.int64) * len(nodes) + np.array([t.node for t in tasks], np.int64)
        order = np.argsort(where, kind="stable")
        first = np.ones(len(where), bool)
        first[1:] = where[order][1:] != where[order][:-1]
        pairs = where[order][first]
        pair_of = np.empty(len(where), np.int64)
        pair_of[order] = np.cumsum(first) - 1
        self.candidate, self.node = np.divmod(pairs, max(len(nodes), 1))
        self.freed = np.zeros((nodes.rows, len(pairs)), np.int64)
        for classes in _by_class(tasks).values():
            self._add(tasks, classes, pair_of)

    def _add(self, tasks: Sequence[TaskState], numbers: list[int], pair_of: Ints) -> None:
        """Count what tasks of one class free; of its GPUs one frees parts, which may become wholly free."""
        cls = tasks[numbers[0]].cls
        where = pair_of[numbers]
        if cls.milli is None:
            count = np.bincount(where, minlength=len(self.node))
            self.freed += cls.ask[:, None] * count
            return
        takes = np.array([cls.takes(tasks[n].node, self.nodes) for n in numbers]).T
        takes[-1] += [len(tasks[n].devices) for n in numbers]
        for row, amounts in zip(self.freed, takes, strict=True):
            np.add.at(row, where, amounts)

    def enough(self, need: RoomDemand, *, useful: bool) -> Mask:
        """Candidates without which there could be room for a step; ``useful``: only those that add to the room."""
        found = np.ones(self.count, bool)
        adds = np.zeros(self.count, bool)
        for part in need.parts:
            gain = self._sum(self._slots(part) - part.per_node[self.node])
            found &= part.count + gain >= part.needed
            adds |= gain > 0
        return found & adds if useful else found

    def most(self, need: RoomDemand, together: int) -> bool:
        """Whether as many candidates, at best, could make room for a step, and all of them would."""
        count = len(self.nodes)
        freed = np.array([np.bincount(self.node, weights=row, minlength=count) for row in self.freed]).astype(np.int64)
        if not need.met_by_all(freed):
            return False
        for part in need.parts:
            bound = np.zeros(len(self.node), np.int64)
            for row, amount in part.asks:
                np.maximum(bound, -(-self.freed[row] // amount), out=bound)
            best = np.sort(self._sum(np.where(part.cls.static[self.node], bound, 0)))[::-1][:together]
            if part.count + int(best.sum()) < part.needed:
                return False
        return True

    def helps(self, need: RoomDemand) -> Mask:
        """Candidates that free something that is asked for, on a node that will do."""
        found = np.zeros(self.count, bool)
        for part in need.parts:
            here = part.cls.static[self.node]
            for row, _ in part.asks:
                found[self.candidate[here & (self.freed[row] > 0)]] = True
        return found

    def _slots(self, part: Any) -> Ints:
        room = self.nodes.room[self.nodes.rows :]
        found = np.full(len(self.node), 1 << 40, np.int64)
        for row, amount in part.asks:
            np.minimum(found, (room[row, self.node] + self.freed[row]) // amount, out=found)
        return np.where(part.cls.static[self.node], np.maximum(found, 0), 0)

    def _sum(self, values: Ints) -> Ints:
        return np.bincount(self.candidate, weights=values, minlength=self.count).astype(np.int64)


def _by_class(tasks: Sequence[TaskState]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for number, task in enumerate(tasks):
        found.setdefault(task.cls.id, []).append(number)
    return found
