"""What is given out of the devices of a cluster, in the same two views as room: devices, shares, counters."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np

from tenure.engine.devices.answers import KnownAnswers
from tenure.engine.devices.capacity import Consumed
from tenure.engine.devices.kinds import RequestKinds
from tenure.engine.devices.search import TakenDevice
from tenure.engine.devices.stock import DeviceStock, StockedDevice
from tenure.engine.journal import Journal
from tenure.engine.room.nodes import NOW, THEN
from tenure.model.devices import ExactDevices

Views = tuple[int, ...]

LATER: Final[Views] = (THEN,)
BOTH: Final[Views] = (NOW, THEN)
"""The views in which a device has to be free: for a promise, and for what is bound at once."""


class DeviceCounts:
    """The devices that are given out. ``stamps`` has for each node a number that is a new one after every change.

    ``used`` and ``shared`` are ``int64[2, devices]``: how many claims have a device as a whole, and a share of it.
    """

    def __init__(self, stock: DeviceStock, journal: Journal, known: KnownAnswers | None = None) -> None:
        count = len(stock.numbers)
        self.stock = stock
        self.used = np.zeros((2, count), np.int64)
        self.shared = np.zeros((2, count), np.int64)
        self.consumed: list[dict[tuple[int, str], int]] = [{}, {}]
        self.counted = [[0] * len(stock.totals) for _ in BOTH]
        self.stamps = np.zeros(len(stock.at), np.int64)
        self.kinds = RequestKinds(stock, journal, self.used, known.passes if known is not None else None)
        self._journal = journal
        self._stamp = 0

    def count(self, taken: Iterable[TakenDevice], view: int, sign: int) -> None:
        """Count the devices of a claim in (``sign`` 1) or out (-1) in one view; a mere look at some counts nothing."""
        for one in taken:
            if one.has_admin_access:
                continue
            if one.device.model.is_shared:
                self._count_share(one, view, sign)
            else:
                self._count_whole(one.device, view, sign)
            self._changed(one.device)

    def is_free(self, taken: Iterable[TakenDevice], views: Views) -> bool:
        """Whether all of some devices are free in some views; shares are taken to be."""
        return not views or all(
            t.has_admin_access or t.device.model.is_shared or not self.used[list(views), t.device.number].any()
            for t in taken
        )

    def _count_whole(self, device: StockedDevice, view: int, sign: int) -> None:
        number = device.number
        before = self.used[:, number].copy()
        self._journal.keep(self.used, (slice(None), number))
        self.used[view, number] += sign
        after = self.used[:, number]
        change_then = int(after[THEN] == 0) - int(before[THEN] == 0)
        change_both = int(not after.any()) - int(not before.any())
        if change_then or change_both:
            self.kinds.count(device, change_then, change_both)
        if (before[view] == 0) != (after[view] == 0):
            self._count_counters(device, view, sign)

    def _count_share(self, taken: TakenDevice, view: int, sign: int) -> None:
        number, consumed = taken.device.number, self.consumed[view]
        for name, amount in taken.consumed:
            before = consumed.setdefault((number, name), 0)
            self._journal.put(consumed, (number, name), before + sign * amount)
        self._journal.keep(self.shared, (view, number))
        had = int(self.shared[view, number])
        self.shared[view, number] += sign
        if (had == 0) != (had + sign == 0):
            self._count_counters(taken.device, view, sign)

    def _count_counters(self, device: StockedDevice, view: int, sign: int) -> None:
        counted = self.counted[view]
        for counter, amount in device.counters:
            self._journal.put(counted, counter, counted[counter] + sign * amount)

    def _changed(self, device: StockedDevice) -> None:
        """Note it for the nodes that reach a device, or one that shares counters with it."""
        nodes = self.stock.pool_nodes[device.pool] if device.counters else self.stock.reach[device.number]
        self._journal.keep(self.stamps, nodes)
        self._stamp += 1
        self.stamps[nodes] = self._stamp


class CountedDevices:
    """The ledger for a search: what is given out, in those views in which devices have to be free."""

    def __init__(self, counts: DeviceCounts, views: Views) -> None:
        self._counts = counts
        self._views = views

    def takes(self, asked: ExactDevices, device: StockedDevice) -> Consumed | None:
        """What a request would consume of a device; None if it does not take it."""
        return self._counts.kinds.takes(asked, device)

    def is_used(self, device: StockedDevice) -> bool:
        """Whether a device is given out as a whole."""
        used = self._counts.used
        return any(used[view, device.number] > 0 for view in self._views)

    def shared_in(self, device: StockedDevice) -> tuple[bool, ...]:
        """By view, whether a shared device is given out at all."""
        shared = self._counts.shared
        return tuple(bool(shared[view, device.number] > 0) for view in self._views)

    def has_capacity(self, device: StockedDevice, consumed: Consumed, more: dict[str, int]) -> bool:
        """Whether the capacities of a shared device suffice, beside ``more`` that is being taken."""
        held = [self._counts.consumed[view] for view in self._views]
        return all(
            known.get((device.number, name), 0) + more.get(name, 0) + amount <= device.model.capacity[name].value
            for name, amount in consumed for known in held
        )  # fmt: skip

    def has_counters(self, view: int, device: StockedDevice, taken: dict[int, int]) -> bool:
        """Whether all counters of a device's pool suffice for what is being taken, in one of the views."""
        counted, stock = self._counts.counted[self._views[view]], self._counts.stock
        return all(counted[c] + taken.get(c, 0) <= stock.totals[c] for c in stock.pool_counters[device.pool])
