"""What a layout is worth, in weighted resources, and what a move would change of it (spec: improve in the background).

The worth of a layout is a sum of terms, each a potential: whatever improves it by a move cannot come back by another,
so moves die out. Resources are weighted as disruption is, by `disruption.cost`; a gain divided by a disruption is
therefore one over a time, the time within which it pays.

* *Packed*: the free room of every node, times the share of that node that it is. A node that is free counts all of its
  resources, one that is half free a quarter. It grows whenever the scheduler's `binpack` would prefer the target to the
  origin; its negative is what `spread` looks at.
* *Whole*: nodes with nothing on them but DaemonSets count all their resources; on others each free GPU counts a half.
* *Scattered*: the expected fragmentation in GPUs (`tenure.engine.room.fragmentation`), counted against the layout.
* *Preferred*: for each task, its own resources times its preference for its node (affinity, taints), in hundreds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tenure.engine.room.classes import TaskClass
from tenure.engine.room.nodes import THEN, UNLIMITED
from tenure.engine.state.cost import UNITS, price_of
from tenure.engine.state.session import Session
from tenure.engine.state.workloads import TERMINATING, TaskState
from tenure.model.settings import Settings
from tenure.model.values.resources import GPU, MILLI
from tenure.model.workload import NODE_OWNERS

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
POINTS = 100.0
"""The most that Kubernetes gives for one preference."""


@dataclass(frozen=True, slots=True)
class LayoutTerms:
    """The weights of a layout's terms; ``packed`` is negative where room is to be spread."""

    packed: float = 0.0
    whole: float = 0.0
    scattered: float = 0.0
    preferred: float = 0.0


LEVEL = LayoutTerms(packed=-1.0, preferred=1.0)
"""Load evened out over nodes."""


def objective(settings: Settings) -> LayoutTerms:
    """Give the terms of the background's objective; its weights are taken relative to each other."""
    given = settings.rescheduler.background.objective
    weights = given if isinstance(given, dict) else {given: 1.0}
    policy = settings.placement if isinstance(settings.placement, dict) else {settings.placement: 1.0}
    own = weights.get("placement", 0.0) / sum(weights.values())
    each = own / sum(policy.values())
    return LayoutTerms(
        packed=each * (policy.get("binpack", 0.0) - policy.get("spread", 0.0))
        - weights.get("spread", 0.0) / sum(weights.values()),
        whole=weights.get("pack", 0.0) / sum(weights.values()),
        scattered=each * policy.get("fragmentation", 0.0),
        preferred=own,
    )


class LayoutWorth:
    """The worth of a session's layout, as it will be once what terminates has left.

    ``rows`` lists the rows of the node table that have a price, with their price per unit; ``price`` is what each whole
    node is worth, ``float64[nodes]``.
    """

    def __init__(self, session: Session, terms: LayoutTerms) -> None:
        self.session = session
        self.terms = terms
        nodes, prices = session.nodes, session.settings.disruption.cost
        named = [
            (row, price_of(name, session.settings), name) for row, name in enumerate(nodes.resources[: nodes.amounts])
        ]
        self.rows = [(row, price / UNITS.get(name, 1)) for row, price, name in named if price]
        capacity = np.where(nodes.capacity < UNLIMITED, nodes.capacity, 0).astype(np.float64)
        self.capacity = capacity
        self.price: Floats = sum((p * capacity[row] for row, p in self.rows), np.zeros(len(nodes)))
        self.device = prices.get(GPU, 0.0) / 2
        self._idle = np.zeros(len(nodes), bool)
        self._synced = -1

    def idle(self) -> Mask:
        """Nodes on which nothing stays but DaemonSets: ``bool[nodes]``."""
        changed = self.session.nodes.changed
        index = range(len(self._idle)) if self._synced < 0 else dict.fromkeys(changed[self._synced :])
        for node in index:
            self._idle[node] = not any(stays(t, node) for t in self.session.on_node[node])
        self._synced = len(changed)
        return self._idle

    def of(self, node: int) -> float:
        """Worth of one node, without what is scattered or preferred."""
        found = self.terms.packed * float(self._packed(slice(node, node + 1), None)[0]) if self.terms.packed else 0.0
        if self.terms.whole:
            found += self.terms.whole * (
                float(self.price[node]) if self.idle()[node] else self.device * self._free(node)
            )
        return found

    def scattered(self) -> float:
        """What the layout loses by fragmentation."""
        if not self.terms.scattered:
            return 0.0
        price = self.session.settings.disruption.cost.get(GPU, 0.0)
        return self.terms.scattered * price * self.session.fragmentation.total() / MILLI

    def arrival(self, cls: TaskClass) -> Floats:
        """Estimate what one task more would change of the worth of each node: ``float64[nodes]``."""
        everywhere = slice(None)
        found: Floats = np.zeros(len(self.price))
        if self.terms.packed:
            more = self._packed(everywhere, cls) - self._packed(everywhere, None)
            found += self.terms.packed * more
        if self.terms.whole:
            found += self.terms.whole * self._less_whole(cls)
        if self.terms.scattered:
            price = self.session.settings.disruption.cost.get(GPU, 0.0)
            found -= self.terms.scattered * price / MILLI * self.session.fragmentation.growth(cls, everywhere)
        return found

    def liking(self, task: TaskState) -> Floats | None:
        """What a task's preferences make each node worth for it; None where it has none."""
        if task.cls.preference is None:
            return None
        liked: Floats = self.terms.preferred * self.weight(task.cls) / POINTS * task.cls.preference
        return liked

    def weight(self, cls: TaskClass) -> float:
        """Weighted resources of one task; of a part of a GPU that differs by node, none."""
        return float(sum(price * cls.ask[row] for row, price in self.rows))

    def _packed(self, index: slice, cls: TaskClass | None) -> Floats:
        nodes = self.session.nodes
        found: Floats = np.zeros(len(self.price[index]))
        for row, price in self.rows:
            free = nodes.room[nodes.rows + row, index].astype(np.float64)
            if cls is not None:
                free -= cls.ask[row]
                if row == nodes.gpu_row and cls.milli is not None:
                    free -= cls.milli[index] * cls.devices
            size = self.capacity[row, index]
            np.maximum(free, 0.0, out=free)
            found += price * np.divide(free * free, size, out=np.zeros(len(size)), where=size > 0)
        return found

    def _free(self, node: int) -> int:
        nodes = self.session.nodes
        return int(nodes.room[2 * nodes.rows - 1, node]) if nodes.has_devices else 0

    def _less_whole(self, cls: TaskClass) -> Floats:
        """What a task takes of what is whole: a free node, else the free GPUs that it opens."""
        nodes = self.session.nodes
        opened: Floats = np.full(len(self.price), float(cls.whole))
        if cls.milli is not None:
            device = nodes.device[THEN]
            open_now = ((device >= cls.milli[:, None]) & (device < MILLI)).sum(axis=1)
            opened = np.where(open_now >= cls.devices, 0.0, float(cls.devices))
        free = nodes.room[2 * nodes.rows - 1] if nodes.has_devices else np.zeros(len(self.price))
        lost = np.where(self.idle(), self.price - self.device * (free - opened), self.device * opened)
        return np.asarray(-lost)


def stays(task: TaskState, node: int) -> bool:
    """Whether a task is one for whose sake a node is not empty, once what terminates has left."""
    if task.workload.model.owner_kind in NODE_OWNERS:
        return False
    if task.nominated == node:
        return True
    return task.leaving != node and not (task.phase is TERMINATING and not task.stuck)
