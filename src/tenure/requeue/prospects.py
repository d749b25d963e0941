"""Which candidates could serve anybody at all: bounds for all of them at once, before anything is played through.

Two bounds, both necessary: by room, whether with the candidate gone a step could fit on the nodes; and by order,
whether somebody who asks for such a step is more deserving. Nearly all candidates are ruled out here.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tenure.engine.nodes import Ints
from tenure.engine.order import Key, queue_key
from tenure.engine.queues import Amount
from tenure.engine.session import Session
from tenure.engine.workloads import TaskState
from tenure.fairness.current import CurrentShares
from tenure.requeue.candidates import Candidate
from tenure.requeue.classes import ContenderClass, Contenders
from tenure.victims.room import Need

Mask = NDArray[np.bool_]


class Room:
    """What candidates hold, as pairs of candidate and node: ``freed[rows, pair]``."""

    def __init__(self, session: Session, candidates: Sequence[Candidate]) -> None:
        self.nodes = session.nodes
        self.count = len(candidates)
        parts: list[tuple[int, int, Ints]] = []
        for number, candidate in enumerate(candidates):
            on: dict[int, Ints] = {}
            for task in candidate.held_tasks():
                takes = _takes(session, task)
                on[task.node] = on[task.node] + takes if task.node in on else takes
            parts += [(number, node, takes) for node, takes in on.items()]
        self.candidate = np.array([p[0] for p in parts], np.int64)
        self.node = np.array([p[1] for p in parts], np.int64)
        self.freed = np.array([p[2] for p in parts], np.int64).reshape(len(parts), self.nodes.rows).T

    def enough(self, need: Need, *, useful: bool) -> Mask:
        """Candidates without which there could be room for a step; ``useful``: only those that add to the room."""
        found = np.ones(self.count, bool)
        adds = np.zeros(self.count, bool)
        for part in need.parts:
            gain = self._sum(self._slots(part) - part.per_node[self.node])
            found &= part.count + gain >= part.needed
            adds |= gain > 0
        return found & adds if useful else found

    def most(self, need: Need, together: int) -> bool:
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

    def helps(self, need: Need) -> Mask:
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


def _takes(session: Session, task: TaskState) -> Ints:
    """What a task frees on its node; of its GPUs it frees parts, which may become wholly free."""
    takes = task.cls.takes(task.node, session.nodes)
    if task.cls.milli is not None:
        takes = takes.copy()
        takes[session.nodes.rows - 1] += len(task.devices)
    return takes


class Deserving:
    """Who is more deserving than whom, from what each queue's contenders ask for; one candidate alone being gone."""

    def __init__(self, session: Session, shares: CurrentShares, contenders: Contenders) -> None:
        self.session = session
        self.shares = shares
        self.contenders = contenders
        self.equals = session.settings.requeue.contenders == "any"
        self.highest: dict[tuple[int, int], int] = {}
        self.asking: dict[int, set[int]] = {}
        for cls in contenders.classes:
            key = cls.leaf, cls.shape
            self.highest[key] = max(cls.priority, self.highest.get(key, cls.priority))
            for queue in session.queues.path[cls.leaf]:
                self.asking.setdefault(queue, set()).add(cls.shape)
        self._keys: dict[tuple[int, int], Key] = {}
        self._best: dict[int, dict[int, list[tuple[Key, int]]]] = {}
        self._across: dict[object, frozenset[int]] = {}
        self._theirs: dict[object, list[Key]] = {}

    def shapes(self, candidate: Candidate) -> frozenset[int]:
        """Shapes of steps for which somebody asks who is more deserving than a candidate that goes as a whole."""
        leaf, priority = candidate.workload.leaf, candidate.workload.priority
        lowest = priority if self.equals else priority + 1
        own = {s for s in self.asking.get(leaf, ()) if self.highest.get((leaf, s), lowest - 1) >= lowest}
        return self._across_queues(leaf, candidate.held_tasks()) | own

    def against(self, cls: ContenderClass, candidate: Candidate) -> bool:
        """Whether contenders of one class are more deserving than one candidate."""
        leaf, priority = candidate.workload.leaf, candidate.workload.priority
        if cls.leaf == leaf:
            return cls.priority > priority or (self.equals and cls.priority == priority)
        path = self.session.queues.path
        mine, level = cls.leaf, 0
        shared = set(path[leaf])
        while (above := self.session.queues.parent[mine]) >= 0 and above not in shared:
            mine = above
        while self.session.queues.parent[path[leaf][level]] != above:
            level += 1
        return self._key(mine, cls.shape) < self._keys_without(leaf, candidate.held_tasks())[level]

    def _across_queues(self, leaf: int, tasks: list[TaskState]) -> frozenset[int]:
        held, asks = _amounts(self.session, tasks)
        key = leaf, held, asks
        found = self._across.get(key)
        if found is None:
            theirs = self._keys_without(leaf, tasks)
            shapes: set[int] = set()
            for queue, their_key in zip(self.session.queues.path[leaf], theirs, strict=True):
                for shape, best in self._best_among(self.session.queues.parent[queue]).items():
                    first = next((k for k, q in best if q != queue), None)
                    if first is not None and first < their_key:
                        shapes.add(shape)
            found = self._across[key] = frozenset(shapes)
        return found

    def _best_among(self, parent: int) -> dict[int, list[tuple[Key, int]]]:
        """By shape, the two children of a queue that are first in order when they ask for such a step."""
        found = self._best.get(parent)
        if found is None:
            found = self._best[parent] = {}
            queues = self.session.queues
            for child in queues.children[parent] if parent >= 0 else queues.top:
                for shape in sorted(self.asking.get(child, ())):
                    found.setdefault(shape, []).append((self._key(child, shape), child))
            for shape, keys in found.items():
                found[shape] = sorted(keys)[:2]
        return found

    def _key(self, queue: int, shape: int) -> Key:
        found = self._keys.get((queue, shape))
        if found is None:
            amount = self.contenders.amounts[shape]
            found = self._keys[queue, shape] = queue_key(self.session, self.shares, queue, amount)
        return found

    def _keys_without(self, leaf: int, tasks: list[TaskState]) -> list[Key]:
        """Keys of a leaf and all above it with some tasks gone that then ask again."""
        held, asks = _amounts(self.session, tasks)
        key = leaf, held, asks
        found = self._theirs.get(key)
        if found is None:
            session = self.session
            mark, epoch = session.checkpoint(), session.epoch
            session.queues.release(leaf, held, fixed=False)
            found = self._theirs[key] = [queue_key(session, self.shares, q, asks) for q in session.queues.path[leaf]]
            session.rollback(mark, epoch=epoch)
        return found


def _amounts(session: Session, tasks: list[TaskState]) -> tuple[Amount, Amount]:
    """What tasks hold, and what they would ask for once they are gone."""
    held: Amount = tasks[0].cls.amount_at(tasks[0].node, session.nodes)
    asks: Amount = tasks[0].cls.amount
    for task in tasks[1:]:
        held = tuple(map(add, held, task.cls.amount_at(task.node, session.nodes)))
        asks = tuple(map(add, asks, task.cls.amount))
    return held, asks
