"""Expected fragmentation of GPUs, and how much one more task would add to it.

After Weng et al., "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient Descent",
USENIX ATC 2023. The fragmentation of a node, for one class of tasks, is the free GPU that this class cannot use
there: all of it where the class does not fit, else what lies on devices too full for it. The expectation is over the
mix of classes seen so far. Classes without GPU use none whatever happens; they add the same everywhere and are left
out.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tenure.engine.room.class_mix import ClassMix
from tenure.engine.room.classes import Floats, TaskClass
from tenure.engine.room.nodes import THEN, Ints, NodeTable
from tenure.model.values.resources import MILLI

Index = NDArray[np.int64] | slice


class MixDemand:
    """What the classes of a mix ask of each node, as arrays over these classes; ``share`` is each one's part of it."""

    def __init__(self, nodes: NodeTable, mix: Sequence[tuple[TaskClass, int]]) -> None:
        classes, count = [cls for cls, _ in mix], len(mix)
        counts = np.array([seen for _, seen in mix], np.float64)
        self.share = counts / counts.sum() if classes else counts
        self.need = np.array([c.whole or c.devices for c in classes], np.int64)
        rows = [r for r in range(nodes.amounts) if r != nodes.gpu_row]
        asks = np.array([c.ask for c in classes], np.int64).reshape(count, nodes.rows)
        self._rows = [(r, asks[:, r]) for r in rows if count and asks[:, r].any()]
        self._static = np.array([c.static for c in classes], bool).reshape(count, len(nodes)).T
        milli = [np.full(len(nodes), MILLI) if c.milli is None else c.milli for c in classes]
        self._milli = np.array(milli, np.int64).reshape(count, len(nodes)).T
        self._uniform = bool(classes) and bool((self._milli == self._milli[:1]).all())
        self.size_of: Index = slice(None)
        if self._uniform:
            self._sizes, self.size_of = np.unique(self._milli[0], return_inverse=True)

    def amounts(self, nodes: Ints) -> Ints:
        """Milli-GPU of a device that is asked for: ``int64[nodes or 1, sizes]``; ``size_of`` gives a class's size."""
        return self._sizes[None] if self._uniform else self._milli[nodes]

    def hosts(self, nodes: Ints, room: Ints) -> NDArray[np.bool_]:
        """Which nodes have what each class asks for beside GPUs: ``bool[nodes, classes]``."""
        hosts = self._static[nodes]
        for row, ask in self._rows:
            hosts = hosts & (room[row][:, None] >= ask)
        return hosts


class Fragmentation:
    """Fragmentation under a mix of classes; ``version`` grows whenever the mix in use changes."""

    _demand: MixDemand  # from the first refresh on

    def __init__(self, nodes: NodeTable, mix: ClassMix) -> None:
        self.nodes = nodes
        self.mix = mix
        self.version = 0
        self._now = np.zeros(len(nodes))
        self._synced = -1

    def refresh(self) -> None:
        """Use the mix as it is now, if it has become another."""
        if self.mix.renew():
            self.version += 1
            self._synced = -1
            self._demand = MixDemand(self.nodes, self.mix.most_frequent())

    def growth(self, cls: TaskClass, index: Index) -> Floats:
        """Growth of expected fragmentation, in milli-GPU, if one task of ``cls`` went to each of the nodes.

        For a part of one device, on the device where it grows least.
        """
        if not len(self._demand.need):
            return np.zeros(len(np.arange(len(self.nodes))[index]))
        nodes = np.arange(len(self.nodes))[index]
        self._catch_up()
        device = self.nodes.device[THEN][nodes]
        room = self.nodes.room[self.nodes.rows :, nodes] - cls.ask[:, None]
        if cls.milli is not None and cls.devices == 1:
            least: Floats = self._by_device(cls, nodes, device, room).min(axis=1, initial=np.inf)
            return least - self._now[nodes]
        return self._fragment(nodes, _without(cls, nodes, device), room) - self._now[nodes]

    def devices(self, cls: TaskClass, node: int, free: list[int]) -> tuple[int, ...]:
        """Give the device of ``node`` where a part of one device adds least; ties: the fullest, then the lowest.

        ``free``: milli-GPU that it may take of each.
        """
        assert cls.milli is not None
        milli = int(cls.milli[node])
        fits = [i for i, have in enumerate(free) if have >= milli]
        if len(fits) <= 1 or not len(self._demand.need):
            return tuple(fits[:1])
        nodes = np.array([node])
        room = self.nodes.room[self.nodes.rows :, nodes] - cls.ask[:, None]
        after = self._by_device(cls, nodes, self.nodes.device[THEN][nodes], room)
        return (min(fits, key=lambda i: (round(float(after[0, i]), 3), free[i], i)),)

    def total(self) -> float:
        """Expected fragmentation of the whole cluster, in milli-GPU."""
        self._catch_up()
        return float(self._now.sum())

    def _catch_up(self) -> None:
        changed = self.nodes.changed
        if self._synced < 0 or len(changed) - self._synced > len(self.nodes):
            stale = np.arange(len(self.nodes))
        else:
            stale = np.unique(np.array(changed[self._synced :], np.int64))
        if len(stale):
            room = self.nodes.room[self.nodes.rows :, stale]
            self._now[stale] = self._fragment(stale, self.nodes.device[THEN][stale], room)
        self._synced = len(changed)

    def _fragment(self, nodes: Ints, device: Ints, room: Ints) -> Floats:
        demand = self._demand
        if not len(demand.need):
            return np.zeros(len(nodes))
        enough = device[:, :, None] >= demand.amounts(nodes)[:, None, :]
        count = enough.sum(axis=1)[:, demand.size_of]
        lost = np.where(enough, 0, device[:, :, None]).sum(axis=1)[:, demand.size_of]
        hosts = demand.hosts(nodes, room) & (count >= demand.need)
        total = device.sum(axis=1)[:, None]
        result: Floats = np.where(hosts, lost, total) @ demand.share
        return result

    def _by_device(self, cls: TaskClass, nodes: Ints, device: Ints, room: Ints) -> Floats:
        """Fragmentation after a part of one device was taken of each: ``float64[nodes, devices]``, infinite where it
        does not fit.
        """
        assert cls.milli is not None
        demand = self._demand
        amounts = demand.amounts(nodes)[:, None, :]
        before = device[:, :, None]
        after = before - cls.milli[nodes][:, None, None]
        enough, still = before >= amounts, after >= amounts
        unusable = np.where(enough, 0, before)
        # Only one device changes, so what all have together changes by what that one does.
        count = enough.sum(axis=1, keepdims=True) + still.astype(np.int64) - enough
        lost = unusable.sum(axis=1, keepdims=True) + np.where(still, 0, after) - unusable
        hosts = demand.hosts(nodes, room)[:, None, :] & (count[:, :, demand.size_of] >= demand.need)
        total = before.sum(axis=1, keepdims=True) - cls.milli[nodes][:, None, None]
        result = np.where(hosts, lost[:, :, demand.size_of], total) @ demand.share
        return np.where(after[:, :, 0] >= 0, result, np.inf)


def _without(cls: TaskClass, nodes: Ints, device: Ints) -> Ints:
    """Devices after a task that takes several of one node: the fullest that have room."""
    if not (cls.whole or cls.devices):
        return device
    need = np.full(len(nodes), MILLI) if cls.milli is None else cls.milli[nodes]
    fits = device >= need[:, None]
    order = np.argsort(np.where(fits, device, 1 << 40), axis=1, kind="stable")[:, : cls.whole or cls.devices]
    after = device.copy()
    taken = np.take_along_axis(after, order, axis=1) - need[:, None]
    np.put_along_axis(after, order, np.maximum(taken, 0), axis=1)
    return after
