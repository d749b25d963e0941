"""The devices that nodes reach, as their drivers publish them: whole pools, in the order in which they are given."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tenure.engine.room.labels import reached
from tenure.engine.room.nodes import NodeTable
from tenure.model.devices import Device, DeviceClass, DeviceInventory, DeviceSlice
from tenure.model.selectors import NodeSelector

Mask = NDArray[np.bool_]
Indices = NDArray[np.int64]
DeviceKey = tuple[str, str, str]
"""Driver, pool and name of a device."""


@dataclass(frozen=True, slots=True, eq=False)
class StockedDevice:
    """A device that nodes reach. Devices of one ``kind`` are alike in all that selectors and requests look at.

    ``counters`` are the numbers of the counters that it consumes, with the amounts. ``nodes`` is the selector of the
    nodes that reach it; one that ``is_local`` is reached from the node alone on which it is given out.
    """

    number: int
    key: DeviceKey
    model: Device
    kind: int
    pool: int
    counters: tuple[tuple[int, int], ...] = ()
    nodes: NodeSelector | None = None
    is_local: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether it is given out as a whole, and other devices are not touched by that."""
        return not self.model.is_shared and not self.counters


@dataclass(frozen=True, slots=True)
class NodeDevices:
    """The devices that a node reaches. ``is_whole``: every pool that it reaches is complete and makes sense."""

    devices: tuple[StockedDevice, ...] = ()
    is_whole: bool = True


_NOTHING: Final = NodeDevices()


@dataclass(slots=True)
class _Pool:
    """The slices of a pool, as far as they are of the newest generation that is known."""

    number: int
    slices: list[DeviceSlice] = field(default_factory=list)


class DeviceStock:
    """The devices of a cluster by node. ``numbers`` are those of the devices, ``reach`` the nodes that reach each.

    ``totals`` are the amounts of the counters that devices share; of which pool they are, ``pool_counters`` says.
    ``kinds`` are the numbers of the kinds of devices, by all that selectors and requests look at.
    """

    def __init__(self, nodes: NodeTable, inventory: DeviceInventory, kinds: dict[Any, int] | None = None) -> None:
        self.nodes = nodes
        self.classes: dict[str, DeviceClass] = {found.name: found for found in inventory.classes}
        self.numbers: dict[DeviceKey, int] = {}
        self.totals: list[int] = []
        self.at: list[NodeDevices] = [_NOTHING] * len(nodes)
        self.pool_nodes: list[Indices] = []
        self.pool_counters: list[list[int]] = []
        self.kinds: dict[Any, int] = {} if kinds is None else kinds
        self._made: dict[tuple[int, str], StockedDevice] = {}
        self._parts: dict[tuple[int, tuple[str, ...]], tuple[StockedDevice, ...] | None] = {}
        self._counters: dict[tuple[int, str, str], int] = {}
        self._all: dict[tuple[str, str], list[DeviceSlice]] = {}
        self._pools: dict[tuple[str, str], int] = {}
        for one in inventory.slices:
            self._all.setdefault((one.driver, one.pool.name), []).append(one)
        self._number_pools()
        if inventory.slices:
            self._fill(inventory.slices)
        self.by_number: list[StockedDevice | None] = [None] * len(self.numbers)
        self.odd: set[int] = set()
        seen: list[list[int]] = [[] for _ in self.numbers]
        for node, found in enumerate(self.at):
            for device in found.devices:
                known = self.by_number[device.number]
                if known is not None and known is not device:
                    self.odd.add(device.number)
                self.by_number[device.number] = device
                seen[device.number].append(node)
        self.reach = [np.array(found, np.int64) for found in seen]
        self._note_pool_nodes()

    def _number_pools(self) -> None:
        for number, (pool, slices) in enumerate(sorted(self._all.items())):
            self._pools[pool] = number
            self.pool_counters.append([])
            newest = max(s.pool.generation for s in slices)
            for one in slices:
                if one.pool.generation == newest:
                    for counters in one.counters:
                        for name, counter in counters.counters.items():
                            key = number, counters.name, name
                            if key not in self._counters:
                                self._counters[key] = len(self.totals)
                                self.pool_counters[number].append(len(self.totals))
                                self.totals.append(counter.value)

    def _fill(self, slices: Iterable[DeviceSlice]) -> None:
        """Find the slices that each node reaches, and make of them the devices that it has to give."""
        index = self.nodes.index
        own: list[list[DeviceSlice]] = [[] for _ in self.at]
        for one in slices:
            if one.node is not None:
                if one.node in index:
                    own[index[one.node]].append(one)
                continue
            for node in np.flatnonzero(_reach_of(self.nodes, one)).tolist():
                own[node].append(one)
        for node, found in enumerate(own):
            if found:
                self.at[node] = self._gathered(found, node)

    def device_of(self, key: DeviceKey) -> StockedDevice | None:
        """Give a device by driver, pool and name; None if no node reaches it."""
        number = self.numbers.get(key)
        return None if number is None else self.by_number[number]

    def _gathered(self, slices: list[DeviceSlice], node: int) -> NodeDevices:
        """Put the slices that a node reaches together to pools, by driver and name.

        Pools of which devices have to be prepared come last.
        """
        pools: dict[tuple[str, str], list[DeviceSlice]] = {}
        for one in slices:
            pools.setdefault((one.driver, one.pool.name), []).append(one)
        devices: list[StockedDevice] = []
        later: list[StockedDevice] = []
        is_whole = True
        for pool, found in sorted(pools.items()):
            generation = max(s.pool.generation for s in found)
            newest = sorted((s for s in found if s.pool.generation == generation), key=lambda s: s.name)
            if len(newest) != newest[0].pool.slices:
                everywhere = self._all[pool]
                if any(s.pool.generation > generation for s in everywhere):
                    continue  # what this node reaches has been replaced
                if sum(s.pool.generation == generation for s in everywhere) != newest[0].pool.slices:
                    is_whole = False
                    continue
            made = self._devices_of(self._pools[pool], newest)
            if made is None:
                is_whole = False
                continue
            is_prepared = any(d.binding_conditions for s in newest for d in s.devices)
            kept = later if is_prepared else devices
            kept += (d for d in made if self._is_reached(d, newest, node))
        return NodeDevices((*devices, *later), is_whole)

    def _is_reached(self, device: StockedDevice, slices: list[DeviceSlice], node: int) -> bool:
        if not any(s.is_per_device for s in slices):
            return True
        inside = next(s for s in slices if any(d is device.model for d in s.devices))
        return not inside.is_per_device or bool(_reach_of_device(self.nodes, device.model)[node])

    def _devices_of(self, pool: int, slices: list[DeviceSlice]) -> tuple[StockedDevice, ...] | None:
        """Give the devices of some slices of a pool; None where they make no sense together."""
        known = pool, tuple(s.name for s in slices)
        if known not in self._parts:
            names = [d.name for s in slices for d in s.devices]
            is_sound = len(names) == len(set(names)) and all(self._has_counters(pool, s) for s in slices)
            self._parts[known] = tuple(self._made_of(pool, slices)) if is_sound else None
        return self._parts[known]

    def _has_counters(self, pool: int, one: DeviceSlice) -> bool:
        return all(
            (pool, use.counter_set, name) in self._counters
            for device in one.devices for use in device.consumes for name in use.counters
        )  # fmt: skip

    def _made_of(self, pool: int, slices: list[DeviceSlice]) -> Iterator[StockedDevice]:
        for one in slices:
            for device in one.devices:
                yield self._stocked(pool, one, device)

    def _stocked(self, pool: int, one: DeviceSlice, device: Device) -> StockedDevice:
        made = self._made.get((id(one), device.name))
        if made is None:
            key = one.driver, one.pool.name, device.name
            where = device if one.is_per_device else one
            made = self._made[id(one), device.name] = StockedDevice(
                number=self.numbers.setdefault(key, len(self.numbers)),
                key=key,
                model=device,
                kind=self._kind_of(one.driver, device),
                pool=pool,
                counters=tuple(
                    (self._counters[pool, use.counter_set, name], counter.value)
                    for use in device.consumes for name, counter in sorted(use.counters.items())
                ),
                nodes=where.nodes,
                is_local=where.node is not None or device.binds_to_node,
            )  # fmt: skip
        return made

    def _kind_of(self, driver: str, device: Device) -> int:
        seen = (
            driver, device.is_shared, device.taints, tuple(sorted(device.attributes.items(), key=lambda a: a[0])),
            tuple(sorted(device.capacity.items(), key=lambda c: c[0])),
        )  # fmt: skip
        return self.kinds.setdefault(seen, len(self.kinds))

    def _note_pool_nodes(self) -> None:
        nodes: list[set[int]] = [set() for _ in self._pools]
        for node, found in enumerate(self.at):
            for device in found.devices:
                if device.counters:
                    nodes[device.pool].add(node)
        self.pool_nodes = [np.array(sorted(found), np.int64) for found in nodes]


def _reach_of(nodes: NodeTable, one: DeviceSlice) -> Mask:
    """Which nodes reach any device of a slice that is not bound to one node."""
    if one.on_all_nodes:
        return np.ones(len(nodes), bool)
    if one.nodes is not None:
        return reached(nodes.labels, (one.nodes,))
    mask = np.zeros(len(nodes), bool)
    for device in one.devices:
        mask |= _reach_of_device(nodes, device)
    return mask


def _reach_of_device(nodes: NodeTable, device: Device) -> Mask:
    mask = np.zeros(len(nodes), bool)
    if device.on_all_nodes:
        mask[:] = True
    elif device.nodes is not None:
        mask |= reached(nodes.labels, (device.nodes,))
    elif device.node in nodes.index:
        mask[nodes.index[device.node]] = True
    return mask
