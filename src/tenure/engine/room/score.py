"""Where a task goes: fit and score of all nodes for one class of tasks.

A score is one number, in tiers: a node where the task can be bound now comes before one where it has to wait; then
what the task only prefers; then the policy. Nodes that do not fit have minus infinity; the first of equal nodes,
which stand in the order of their names, wins.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tenure.engine.room import kernels
from tenure.engine.room.classes import Floats, TaskClass
from tenure.engine.room.fragmentation import Fragmentation
from tenure.engine.room.nodes import NOW, THEN, NodeTable
from tenure.engine.room.slots import NodeSlots
from tenure.model.settings import Policy
from tenure.model.values.resources import MILLI

UNFIT = float("-inf")
BASE = float(1 << 24)
"""Span of the policy's own tier: free milli-GPU of a node, and scaled shares, stay below it."""
PREFERENCE = 2 * BASE
"""One point of preference. Preferences stay below 2**16 points."""
WAITS = PREFERENCE * (1 << 16)
"""What a node loses where the task cannot be bound yet. Subtracted, so that the rest keeps its precision."""

FEW = 8
"""Nodes up to which scalar code is faster than vectors (measured)."""

ANEW, ANEW_PARTS = 16, 2
"""How many times as long a node takes that is picked out of all as one of all in a row (measured), and where parts of
GPUs are asked for. So many times fewer nodes have to have changed that it pays to look at those alone."""

GROWTH_STEP = 20.0
"""Growth of fragmentation is compared in steps of so many milli-GPU; what lies in one step is a tie.

An expectation over a mix is no more exact than that. The authors' implementation compares hundredths of a sigmoid,
steps of 40 milli-GPU or more. Exact comparison packs worse: tiny advantages choose between nodes that are as good,
and a fresh node is opened where one in use would do.
"""

Index = NDArray[np.int64] | slice
Mask = NDArray[np.bool_]


class Scorer:
    """Scores of nodes for classes of tasks, under one placement policy or a weighted mixture."""

    def __init__(self, nodes: NodeTable, placement: Policy | dict[Policy, float], fragmentation: Fragmentation) -> None:
        self.nodes = nodes
        self.fragmentation = fragmentation
        self.weights: dict[Policy, float] = placement if isinstance(placement, dict) else {placement: 1.0}
        self.single: Policy | None = placement if isinstance(placement, str) else None
        self.packed = self.single != "spread"
        self.slots = NodeSlots(nodes)
        self._capacities: dict[int, tuple[int, int]] = {}
        self.scalar: Callable[[TaskClass, int], float] | None = (
            self._packed_one if self.single == "binpack" else self._spread_one if self.single == "spread" else None
        )

    def fits(self, cls: TaskClass, index: Index) -> tuple[Mask, Mask]:
        """Which of the nodes can take one task now, and which once what terminates has left."""
        nodes = self.nodes
        enough = nodes.room[:, index] >= cls.least
        then = enough[nodes.rows :].all(axis=0)
        now = enough[: nodes.rows].all(axis=0)
        if cls.milli is not None:
            milli = cls.milli[index][:, None]
            there = nodes.device[THEN][index]
            both = np.minimum(nodes.device[NOW][index], there)
            then &= (there >= milli).sum(axis=1) >= cls.devices
            now &= (both >= milli).sum(axis=1) >= cls.devices
        then &= cls.static[index]
        return now & then, then

    def fit_at(self, cls: TaskClass, node: int) -> int:
        """Fit of one task on one node, as `fits` tells it: one of the kernels' three."""
        if not cls.static_list[node]:
            return kernels.UNFIT
        nodes = self.nodes
        fit = kernels.fit(nodes.room[:, node].tolist(), cls.asks, nodes.rows)
        if cls.milli is not None and fit != kernels.UNFIT:
            fit, _ = self._device_fit(cls, node, fit)
        return fit

    def keys(self, cls: TaskClass, index: Index) -> Floats:
        """Scores of the nodes: ``float64[len(index)]``."""
        now, then = self.fits(cls, index)
        score = self._policy(cls, index, now)
        score -= np.where(now, 0.0, WAITS)
        if cls.preference is not None:
            score += cls.preference[index] * PREFERENCE
        keys: Floats = np.where(then, score, UNFIT)
        return keys

    def _policy(self, cls: TaskClass, index: Index, now: Mask) -> Floats:
        if self.single == "binpack":
            return self._packed(cls, index, now)
        if self.single == "spread":
            return np.asarray(-self._packed(cls, index, now))
        if self.single == "fragmentation":
            return self._fragmentation(cls, index)
        return self._mixture(cls, index, now)

    def _free(self, cls: TaskClass, index: Index) -> Floats:
        """Free milli-GPU for a task with GPU, else the free share of CPU scaled to the policy's tier."""
        nodes = self.nodes
        if cls.whole or cls.devices:
            return nodes.room[nodes.rows + nodes.gpu_row, index].astype(np.float64)
        if nodes.cpu_row < 0:
            return np.zeros(len(nodes.names))[index]
        capacity = nodes.capacity[nodes.cpu_row, index]
        free = nodes.room[nodes.rows + nodes.cpu_row, index]
        if capacity.all():
            share: Floats = free / capacity
        else:
            share = np.divide(free, capacity, out=np.zeros(len(free)), where=capacity > 0)
        return share * (BASE / 2)

    def _in_use(self, cls: TaskClass, index: Index, now: Mask) -> Mask:
        """Which nodes have enough devices in use that have room for the task's part."""
        assert cls.milli is not None
        milli = cls.milli[index][:, None]
        there = self.nodes.device[THEN][index]
        bindable = np.minimum(self.nodes.device[NOW][index], there)
        free = np.where(now[:, None], bindable, there)
        found: Mask = ((free >= milli) & (there < MILLI)).sum(axis=1) >= cls.devices
        return found

    def _packed(self, cls: TaskClass, index: Index, now: Mask) -> Floats:
        score: Floats = -self._free(cls, index)
        if cls.milli is not None:
            score += np.where(self._in_use(cls, index, now), BASE, 0.0)
        return score

    def _fragmentation(self, cls: TaskClass, index: Index) -> Floats:
        """Growth of fragmentation in steps; ties to the least free share of GPU, then of CPU.

        What breaks a tie stays below one step.
        """
        nodes = self.nodes
        growth = np.round(self.fragmentation.growth(cls, index) / GROWTH_STEP) * GROWTH_STEP
        tie = np.zeros(len(growth))
        for row, weight in ((nodes.gpu_row, 0.75 * GROWTH_STEP), (nodes.cpu_row, 1e-3)):
            if row >= 0:
                capacity = np.maximum(nodes.capacity[row, index], 1)
                tie += nodes.room[nodes.rows + row, index] / capacity * weight
        score: Floats = -(growth + tie)
        return score

    def _mixture(self, cls: TaskClass, index: Index, now: Mask) -> Floats:
        """Weighted mean of terms between 0 and 1."""
        nodes = self.nodes
        row = nodes.gpu_row if cls.whole or cls.devices else nodes.cpu_row
        capacity = np.maximum(nodes.capacity[row, index], 1) if row >= 0 else np.ones(len(now))
        free = nodes.room[nodes.rows + row, index] / capacity if row >= 0 else np.zeros(len(now))
        packed = 1.0 - free
        if cls.milli is not None:
            packed = (packed + self._in_use(cls, index, now)) / 2
        score = np.zeros(len(packed))
        for policy, weight in sorted(self.weights.items()):
            if policy == "fragmentation":
                score += weight / (1.0 + np.exp(np.clip(self.fragmentation.growth(cls, index) / MILLI, -500, 500)))
            else:
                score += weight * (packed if policy == "binpack" else 1.0 - packed)
        return score / sum(self.weights.values())

    def _packed_one(self, cls: TaskClass, node: int) -> float:
        return self._one(cls, node, 1.0)

    def _spread_one(self, cls: TaskClass, node: int) -> float:
        return self._one(cls, node, -1.0)

    def _one(self, cls: TaskClass, node: int, sign: float) -> float:
        """Score of one node, the same number as `keys` gives."""
        if not cls.static_list[node]:
            return UNFIT
        nodes = self.nodes
        column = nodes.room[:, node].tolist()
        fit = kernels.fit(column, cls.asks, nodes.rows)
        score = 0.0
        if cls.milli is not None and fit != kernels.UNFIT:
            fit, in_use = self._device_fit(cls, node, fit)
            score = BASE if in_use else 0.0
        if fit == kernels.UNFIT:
            return UNFIT
        if cls.whole or cls.devices:
            score -= column[nodes.rows + nodes.gpu_row]
        elif nodes.cpu_row >= 0 and (capacity := nodes.cpu_capacity[node]) > 0:
            score -= column[nodes.rows + nodes.cpu_row] / capacity * (BASE / 2)
        score *= sign
        if fit == kernels.WAITS:
            score -= WAITS
        if cls.preference is not None:
            score += float(cls.preference[node]) * PREFERENCE
        return score

    def _device_fit(self, cls: TaskClass, node: int, fit: int) -> tuple[int, bool]:
        """Fit of a part of a GPU on one node, and whether devices in use have room for it."""
        assert cls.milli is not None
        milli, wanted = int(cls.milli[node]), cls.devices
        free = self.nodes.free_devices(node, bindable=False)
        if sum(have >= milli for have in free) < wanted:
            return kernels.UNFIT, False
        both = self.nodes.free_devices(node, bindable=True) if self.nodes.waiting else free
        if sum(have >= milli for have in both) < wanted:
            fit = kernels.WAITS
        used = both if fit == kernels.BINDS else free
        return fit, sum(a >= milli and b < MILLI for a, b in zip(used, free, strict=True)) >= wanted

    def best(self, cls: TaskClass) -> int:
        """Give the best node for one task of the class, -1 if it fits none."""
        if cls.synced != len(self.nodes.changed) or cls.key is None or cls.version != self.fragmentation.version:
            self.catch_up(cls)
        return cls.best

    def best_of(self, cls: TaskClass, mask: Mask) -> int:
        """Give the best of the nodes in ``mask`` for one task, -1 if none fits."""
        self.catch_up(cls)
        assert cls.key is not None
        keys = np.where(mask, cls.key, UNFIT)
        best = int(keys.argmax()) if len(keys) else -1
        return best if best >= 0 and keys[best] > UNFIT else -1

    def bindable(self, cls: TaskClass, node: int) -> bool:
        """Whether one task of the class, which fits ``node``, can be bound there now."""
        if not self.nodes.waiting:
            return True
        return self.fit_at(cls, node) == kernels.BINDS

    def catch_up(self, cls: TaskClass) -> None:
        """Bring the class's scores up to date with all nodes that changed since they were last looked at."""
        changed = self.nodes.changed
        behind = len(changed) - cls.synced
        wider = cls.wider()
        if wider is not None:
            self.best(wider)
        count, dearer = len(self.nodes), self._dearer(cls)
        if cls.key is None or behind > max(2 * count // dearer, 64) or cls.version != self.fragmentation.version:
            self._look_anew(cls, wider)
        elif behind:
            recent = dict.fromkeys(changed[cls.synced :])
            if len(recent) <= FEW and (wider is not None or self.scalar is not None):
                self._catch_up_few(cls, wider, list(recent))
            elif len(recent) * dearer > count:
                self._look_anew(cls, wider)
            else:
                index = np.fromiter(recent, np.int64, len(recent))
                cls.key[index] = self._keys_of(cls, wider, index)
                self._find_best(cls)
        cls.version = self.fragmentation.version
        cls.synced = len(changed)

    def _dearer(self, cls: TaskClass) -> int:
        """How many times as long a node takes that is picked out of all; scores by fragmentation are the same work."""
        if self.scalar is None:
            return 1
        return ANEW if cls.milli is None else ANEW_PARTS

    def _look_anew(self, cls: TaskClass, wider: TaskClass | None) -> None:
        cls.key = self._keys_of(cls, wider, slice(None))
        self._find_best(cls)

    def _keys_of(self, cls: TaskClass, wider: TaskClass | None, index: Index) -> Floats:
        """Scores of some nodes, as `keys` tells them: those of a wider class where there is one, as far as it goes."""
        if wider is None:
            return self.keys(cls, index)
        assert wider.key is not None
        score = wider.key[index]
        if cls.preference is not None:
            score = score + cls.preference[index] * PREFERENCE
        keys: Floats = np.where(cls.static[index], score, UNFIT)
        return keys

    def _key_of(self, cls: TaskClass, wider: TaskClass | None, node: int) -> float:
        """Score of one node, the same number as `_keys_of` gives."""
        if wider is None:
            assert self.scalar is not None
            return self.scalar(cls, node)
        if not cls.static_list[node]:
            return UNFIT
        assert wider.key is not None
        score = float(wider.key[node])
        return score if cls.preference is None else score + float(cls.preference[node]) * PREFERENCE

    def _catch_up_few(self, cls: TaskClass, wider: TaskClass | None, recent: list[int]) -> None:
        assert cls.key is not None
        lost = False
        best, best_key = cls.best, cls.best_key
        for node in recent:
            key = cls.key[node] = self._key_of(cls, wider, node)
            if node == best:
                lost |= key < best_key
                best_key = key
            elif key > best_key or (key == best_key and key > UNFIT and node < best):
                best, best_key = node, key
        if lost or best < 0:
            self._find_best(cls)
        else:
            cls.best, cls.best_key = best, best_key

    def _find_best(self, cls: TaskClass) -> None:
        key = cls.key
        assert key is not None
        best = int(key.argmax()) if len(key) else -1
        cls.best_key = float(key[best]) if best >= 0 else UNFIT
        cls.best = best if cls.best_key > UNFIT else -1

    def capacity(self, cls: TaskClass, mask: Mask | None = None) -> int:
        """Give an upper bound of how many tasks of the class fit, once what terminates has left.

        Exact for whole GPUs and no GPUs, where each node is filled on its own.
        """
        if cls.milli is None:
            return self.slots.total(cls) if mask is None else int(self.slots.of(cls)[mask].sum())
        if mask is not None:
            return self._capacity(cls, cls.static & mask)
        state = len(self.nodes.changed)
        known = self._capacities.get(cls.id)
        if known is None or known[0] != state:
            known = self._capacities[cls.id] = state, self._capacity(cls, cls.static)
        return known[1]

    def _capacity(self, cls: TaskClass, allowed: Mask) -> int:
        """Look at all nodes, for a class that asks for parts of GPUs."""
        nodes = self.nodes
        assert cls.milli is not None
        with np.errstate(divide="ignore"):
            per_device = np.where(cls.milli[:, None] > 0, nodes.device[THEN] // np.maximum(cls.milli, 1)[:, None], 0)
        per_node = per_device.sum(axis=1) // cls.devices
        for row, amount in cls.asks:
            np.minimum(per_node, nodes.room[nodes.rows + row] // amount, out=per_node)
        np.maximum(per_node, 0, out=per_node)
        return int(per_node[allowed].sum())
