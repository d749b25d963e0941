"""The arrays that say what room every node has, and their only writers.

``room`` is resource-major, ``int64[2 * rows, nodes]``. Its upper half is what is there *now*; its lower half is what
*will be* there once everything that terminates has left and everything nominated has arrived. A bind has to fit
both, a nomination the lower half alone. Rows follow ``resources``: GPUs in milli-GPU, and, where there are GPUs, a
last row that counts whole free devices (in the upper half those that are free both now and then).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from tenure.engine.journal import Journal
from tenure.engine.room.domains import NodeDomains
from tenure.engine.room.labels import Mask, NodeLabels
from tenure.engine.room.taints import NOT_READY, NodeTaints
from tenure.model.node import Node
from tenure.model.queue import Queue
from tenure.model.values.resources import CPU, GPU, MEMORY, MILLI, PODS

Ints = NDArray[np.int64]

UNLIMITED = 1 << 60
"""Room of a resource that a node does not limit; amounts stay below it."""

FREE_DEVICES = "free devices"
"""Name of the row that counts whole free devices."""

NOW, THEN = 0, 1


class NodeTable:
    """Nodes sorted by name, with their capacity and room.

    ``capacity`` is ``int64[rows, nodes]``; ``device`` is ``int64[2, nodes, devices]``, milli-GPU free on each device
    now and then, 0 for devices that a node does not have. ``changed`` lists the nodes in the order in which they
    changed, for caches to catch up; ``stamps`` has for each a number that is a new one after every change, and the old
    one again once that is undone. ``admitting`` are the nodes on which tasks may be placed: those that are ready, and
    those that are not and have the taint for it, which tasks may tolerate. ``awaited`` nodes are on their way: what
    they have is there then, and not now. ``waiting`` counts the tasks and nodes for which the two halves differ.
    """

    def __init__(self, nodes: list[Node], resources: list[str], journal: Journal) -> None:
        self.nodes = sorted(nodes, key=lambda n: n.name)
        self.names = [n.name for n in self.nodes]
        self.index = {name: i for i, name in enumerate(self.names)}
        self.domains = NodeDomains(self.nodes)
        self.labels = NodeLabels(self.nodes, self.domains)
        self.taints = NodeTaints(self.nodes)
        self.outside = np.fromiter((n.outside for n in self.nodes), bool, len(self.nodes))
        self.ready = np.fromiter((n.ready and not n.outside for n in self.nodes), bool, len(self.nodes))
        tainted: Mask = np.fromiter((_is_tainted(n) for n in self.nodes), bool, len(self.nodes))
        self.admitting: Mask = self.ready | tainted
        self.awaited = np.fromiter((n.awaited_until is not None for n in self.nodes), bool, len(self.nodes))
        self.gpu_memory = np.fromiter((n.gpu_memory or 0 for n in self.nodes), np.int64, len(self.nodes))
        self.journal = journal
        self.changed: list[int] = []
        self.stamps = [0] * len(self.nodes)
        self._stamp = 0
        self.waiting = int(self.awaited.sum())
        self._build(resources)
        self.counts: dict[str, Mapping[str, int]] = {}
        """By extended resource, what a device of it counts for queues beside itself."""
        self.served: Ints | None = None
        """``int64[rows, nodes]``: what of the capacity are devices that claims give out, where there is any."""

    def __len__(self) -> int:
        """Count the nodes."""
        return len(self.nodes)

    def _build(self, resources: list[str]) -> None:
        count = len(self.nodes)
        self.device_count = np.fromiter((n.allocatable.get(GPU, 0) for n in self.nodes), np.int64, count)
        self.has_devices = bool(self.device_count.any())
        self.resources = [r for r in resources if r != GPU] + ([GPU, FREE_DEVICES] if self.has_devices else [])
        if GPU in resources and not self.has_devices:
            self.resources.append(GPU)
        self.rows = len(self.resources)  # of one half of room
        self.row = {name: i for i, name in enumerate(self.resources)}
        self.amounts = len(self.resources) - self.has_devices  # rows that are amounts, not the count of devices
        self.capacity = np.zeros((len(self.resources), count), np.int64)
        for row, name in enumerate(self.resources):
            if name == FREE_DEVICES:
                self.capacity[row] = self.device_count
            else:
                unlimited = UNLIMITED if name == PODS else 0
                scale = MILLI if name == GPU else 1
                values = (n.allocatable.get(name, unlimited) * scale for n in self.nodes)
                self.capacity[row] = np.fromiter(values, np.int64, count)
        self.room, self.device = self.empty()
        self.gpu_row = self.row.get(GPU, -1)
        self.cpu_row = self.row.get(CPU, -1)
        self.cpu_capacity: list[int] = self.capacity[self.cpu_row].tolist() if self.cpu_row >= 0 else []

    def empty(self) -> tuple[Ints, Ints]:
        """Give ``room`` and ``device`` as they are while no task is anywhere."""
        most = int(self.device_count.max()) if self.has_devices else 0
        exists = np.arange(most) < self.device_count[:, None]
        there = np.where(exists, MILLI, 0).astype(np.int64)
        now = np.where(self.awaited, 0, self.capacity)
        return np.concatenate([now, self.capacity]), np.stack([np.where(self.awaited[:, None], 0, there), there])

    def most_room(self) -> list[int]:
        """Give the most of each row that any node will have that admits tasks, -1 where there is none."""
        if len(self.names) == 1 and self.admitting[0]:
            column: list[int] = self.room[self.rows :, 0].tolist()
            return column
        room = self.room[self.rows :] if self.admitting.all() else self.room[self.rows :, self.admitting]
        return room.max(axis=1).tolist() if room.size else [-1] * self.rows

    def occupy(
        self, node: int, ask: Ints, devices: Sequence[int], milli: int, *, now: bool, then: bool, sign: int
    ) -> None:
        """Take (``sign`` 1) or give back (-1) ``ask`` (``int64[rows]``) and ``milli`` of each of ``devices``.

        ``now`` and ``then`` say in which half.
        """
        if self.journal.depth:
            self.journal.keep(self.room, (slice(None), node))
        rows = self.rows
        column = self.room[:, node]
        amount = ask if sign > 0 else -ask
        if now:
            column[:rows] -= amount
        if then:
            column[rows:] -= amount
        if devices:
            self.occupy_devices(node, devices, sign * milli, now=now, then=then)
        self._changes(node)

    def fill(self, nodes: Sequence[int], asks: Sequence[Ints], devices: Sequence[Sequence[int]]) -> None:
        """Take from both halves, for good, what many tasks hold: of each its node, ask, and whole devices.

        It comes to what `occupy` comes to, task by task.
        """
        taken = np.zeros((self.rows, len(self)), np.int64)
        for row, amounts in zip(taken, np.array(asks).T, strict=True):
            np.add.at(row, np.array(nodes), amounts)
        self.room -= np.concatenate([taken, taken])
        there = [node for node, numbers in zip(nodes, devices, strict=True) for _ in numbers]
        held = np.zeros(self.device.shape[1:], np.int64).reshape(-1)
        numbers = [number for each in devices for number in each]
        np.add.at(held, np.array(there, np.int64) * self.device.shape[2] + np.array(numbers, np.int64), MILLI)
        self.device -= held.reshape(self.device.shape[1:])
        counted = np.unique(np.array(there, np.int64))
        if self.has_devices:
            free = self.device[:, counted] == MILLI
            bindable = free.all(axis=0) if self.waiting else free[THEN]
            self.room[self.rows - 1, counted] = bindable.sum(axis=1)
            self.room[2 * self.rows - 1, counted] = free[THEN].sum(axis=1)
        for node in dict.fromkeys(nodes):
            self._changes(node)

    def take(self, node: int, both: Ints) -> None:
        """Take the same from both halves; ``both`` is ``int64[2 * rows]``. The short way for a plain bind."""
        if self.journal.depth:
            self.journal.keep(self.room, (slice(None), node))
        self.room[:, node] -= both
        self._changes(node)

    def _changes(self, node: int) -> None:
        self.changed.append(node)
        self._stamp += 1
        self.journal.put(self.stamps, node, self._stamp)

    def occupy_devices(self, node: int, devices: Sequence[int], milli: int, *, now: bool, then: bool) -> None:
        """Take ``milli`` (negative: give it back) of each of ``devices``, and count anew which are free."""
        if self.journal.depth:
            self.journal.keep(self.device, (slice(None), node))
        pair = self.device[:, node]
        here, there = pair.tolist()
        if now:
            for device in devices:
                here[device] -= milli
            pair[NOW] = here
        if then:
            for device in devices:
                there[device] -= milli
            pair[THEN] = there
        free = both = there.count(MILLI)
        if here != there:
            both = [*zip(here, there, strict=True)].count((MILLI, MILLI))
        self.room[self.rows - 1, node] = both
        self.room[2 * self.rows - 1, node] = free

    def pin(self, mark: int) -> None:
        """After a rollback to ``mark``, tell the caches that the nodes changed since then have changed again."""
        self.changed.extend(self.changed[mark:])

    def free_devices(self, node: int, *, bindable: bool) -> list[int]:
        """Milli-GPU free on each device of ``node``: then, or both now and then."""
        there: list[int] = self.device[THEN, node].tolist()
        if not bindable:
            return there
        return [min(a, b) for a, b in zip(self.device[NOW, node].tolist(), there, strict=True)]


def by_itself(nodes: NodeTable, resource: str) -> NDArray[np.bool_]:
    """Which nodes have a resource by themselves, whatever devices serve it elsewhere."""
    row = nodes.row.get(resource)
    if row is None:
        return np.zeros(len(nodes), bool)
    own = nodes.capacity[row] if nodes.served is None else nodes.capacity[row] - nodes.served[row]
    return np.asarray(own > 0)


def serve(nodes: NodeTable, resource: str, counts: Ints) -> None:
    """Let devices serve a resource on the nodes that have none of it by themselves; before any task is there.

    ``counts`` is ``int64[nodes]``: at most so many can be had of it. Which are free is decided by claims.
    """
    rows = [nodes.row[resource]] if resource in nodes.row else []
    if resource == GPU and nodes.has_devices:
        rows.append(nodes.rows - 1)
    if nodes.served is None:
        nodes.served = np.zeros_like(nodes.capacity)
    for row in rows:
        scale = MILLI if nodes.resources[row] == GPU else 1
        more = np.where(nodes.capacity[row] == 0, counts * scale, 0)
        nodes.served[row] += more
        nodes.capacity[row] += more
        nodes.room[row] += np.where(nodes.awaited, 0, more)
        nodes.room[nodes.rows + row] += more


def resources_of(nodes: list[Node], queues: list[Queue], extra: Iterable[str]) -> list[str]:
    """Give all resources that nodes, queues or others name: CPU, memory and GPU first, then by name."""
    found = {r for n in nodes for r in n.allocatable} | {r for q in queues for r in (*q.guaranteed, *q.max)}
    found |= set(extra)
    if not any(PODS in n.allocatable for n in nodes):
        found.discard(PODS)
    first = [r for r in (CPU, MEMORY, GPU) if r in found]
    return first + sorted(found - set(first))


def _is_tainted(node: Node) -> bool:
    """Whether a node of this pool has a taint for not being ready."""
    return not node.outside and any(taint.key in NOT_READY and taint.effect == "NoSchedule" for taint in node.taints)
