"""How many tasks of a class each node will have room for, kept from one look to the next.

Only nodes that changed since are looked at again. Each node is filled on its own, once what terminates has left.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from tenure.engine.room.classes import TaskClass
from tenure.engine.room.nodes import Ints, NodeTable

FEW = 16
"""Nodes up to which a loop is faster than vectors (measured)."""


def fitting(room: Ints, asks: Iterable[tuple[int, int]], static: NDArray[np.bool_]) -> Ints:
    """Give how many tasks fit each node: ``room`` is ``int64[rows, nodes]``, ``asks`` are rows and amounts."""
    found = np.full(room.shape[1], 1 << 40, np.int64)
    for row, amount in asks:
        np.minimum(found, room[row] // amount, out=found)
    return np.where(static, np.maximum(found, 0), 0)


class _Known:
    __slots__ = ("per_node", "state", "total")

    def __init__(self, per_node: Ints, state: int) -> None:
        self.per_node = per_node
        self.state = state
        self.total = int(per_node.sum())


class NodeSlots:
    """The number of tasks of each class that fit on each node, for classes that ask for no parts of GPUs."""

    def __init__(self, nodes: NodeTable) -> None:
        self.nodes = nodes
        self._known: dict[int, _Known] = {}

    def of(self, cls: TaskClass) -> Ints:
        """Give how many fit on each node, ``int64[nodes]``; it is the caller's own."""
        return self._caught_up(cls).per_node.copy()

    def total(self, cls: TaskClass) -> int:
        """Give how many fit on all nodes together."""
        return self._caught_up(cls).total

    def _caught_up(self, cls: TaskClass) -> _Known:
        changed, known = self.nodes.changed, self._known.get(cls.id)
        if known is not None and known.state == len(changed):
            return known
        wider = cls.wider()
        source = None if wider is None else self._caught_up(wider)
        if known is None or len(changed) - known.state > max(len(self.nodes), 64):
            known = self._known[cls.id] = _Known(self._on(cls, source, slice(None)), len(changed))
        else:
            recent = dict.fromkeys(changed[known.state :])
            if len(recent) <= FEW:
                self._look_at_few(cls, source, known, recent)
            else:
                index = np.fromiter(recent, np.int64, len(recent))
                now = self._on(cls, source, index)
                known.total += int(now.sum()) - int(known.per_node[index].sum())
                known.per_node[index] = now
            known.state = len(changed)
        return known

    def _on(self, cls: TaskClass, source: _Known | None, index: Ints | slice) -> Ints:
        """Look at some nodes; ``source`` has what fits of a wider class."""
        if source is None:
            return fitting(self.nodes.room[self.nodes.rows :, index], cls.asks, cls.static[index])
        return np.where(cls.static[index], source.per_node[index], 0)

    def _look_at_few(self, cls: TaskClass, source: _Known | None, known: _Known, recent: dict[int, None]) -> None:
        per_node = known.per_node
        for node in recent:
            if not cls.static_list[node]:
                continue
            fit = self._on_one(cls, node) if source is None else int(source.per_node[node])
            known.total += fit - int(per_node[node])
            per_node[node] = fit

    def _on_one(self, cls: TaskClass, node: int) -> int:
        nodes = self.nodes
        room, least = nodes.room[nodes.rows :, node].tolist(), 1 << 40
        for row, amount in cls.asks:
            least = min(least, room[row] // amount)
        return max(least, 0)
