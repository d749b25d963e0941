"""Kinds of requests for devices: which devices each takes, and how many of these are free on each node.

A kind is made with the first task that has it, not in a scenario: what a scenario undoes knows no kind that came in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tenure.engine.device_capacity import Consumed, consumed_of, is_tainted
from tenure.engine.device_search import DeviceSearchError
from tenure.engine.device_stock import DeviceStock, StockedDevice
from tenure.engine.journal import Journal
from tenure.engine.nodes import THEN
from tenure.model.devices import DeviceSelector, ExactDevices

Ints = NDArray[np.int64]


@dataclass(slots=True)
class RequestKind:
    """A kind of requests. ``passes`` says by kind of device what it would consume of one (None: it does not take it).

    ``members`` are the numbers of those that no taint keeps from it. ``is_plain``: all of them are given out as
    wholes, and about each it is known. ``free`` is ``int64[2, nodes]``: those that are free then, and now and then.
    """

    asked: ExactDevices
    passes: dict[int, Consumed | DeviceSearchError | None]
    members: set[int]
    free: Ints
    is_plain: bool = True


class RequestKinds:
    """The kinds of requests of a session; ``used`` is ``int64[2, devices]``, by view how often each is given out."""

    def __init__(self, stock: DeviceStock, journal: Journal, used: Ints) -> None:
        self._stock = stock
        self._journal = journal
        self._used = used
        self._known: dict[Any, RequestKind] = {}
        self._taking: list[list[RequestKind]] = [[] for _ in stock.numbers]

    def of(self, asked: ExactDevices) -> RequestKind:
        """Give the kind of a request."""
        capacity = None if asked.capacity is None else tuple(sorted(asked.capacity.requests.items()))
        key = asked.class_name, asked.selectors, asked.tolerations, capacity
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._made(asked)
        return known

    def all(self) -> list[RequestKind]:
        """Give all kinds that are known."""
        return list(self._known.values())

    def takes(self, asked: ExactDevices, device: StockedDevice) -> Consumed | None:
        """Give what a request would consume of a device; None if it does not take it.

        Raises
        ------
        DeviceSearchError
            If that cannot be told.
        """
        found = self._passes(self.of(asked), device)
        if isinstance(found, DeviceSearchError):
            raise found
        return found

    def count(self, device: StockedDevice, change_then: int, change_both: int) -> None:
        """Count a device that became free, or is free no longer."""
        nodes = self._stock.reach[device.number]
        for kind in self._taking[device.number]:
            self._journal.keep(kind.free, (slice(None), nodes))
            kind.free[0, nodes] += change_then
            kind.free[1, nodes] += change_both

    def _made(self, asked: ExactDevices) -> RequestKind:
        kind = RequestKind(asked, {}, set(), np.zeros((2, len(self._stock.at)), np.int64))
        for device in self._stock.by_number:
            passes = None if device is None else self._passes(kind, device)
            if device is None or passes is None or is_tainted(device.model.taints, asked.tolerations):
                continue
            if isinstance(passes, DeviceSearchError):
                kind.is_plain = False
                continue
            kind.members.add(device.number)
            kind.is_plain &= device.is_plain and device.number not in self._stock.odd
            self._taking[device.number].append(kind)
            used, nodes = self._used[:, device.number], self._stock.reach[device.number]
            kind.free[0, nodes] += int(used[THEN] == 0)
            kind.free[1, nodes] += int(not used.any())
        return kind

    def _passes(self, kind: RequestKind, device: StockedDevice) -> Consumed | DeviceSearchError | None:
        if device.kind not in kind.passes:
            try:
                kind.passes[device.kind] = self._judged(kind.asked, device)
            except DeviceSearchError as error:
                kind.passes[device.kind] = error
        return kind.passes[device.kind]

    def _judged(self, asked: ExactDevices, device: StockedDevice) -> Consumed | None:
        if asked.class_name not in self._stock.classes:
            return None
        if not all(_is_selected(whose, selector, device) for whose, selector in self._selectors(asked)):
            return None
        return consumed_of(asked.capacity, device.model)

    def _selectors(self, asked: ExactDevices) -> Iterator[tuple[str, DeviceSelector]]:
        """Give the selectors that all have to take a device, and whose each is: those of the class first."""
        found = self._stock.classes[asked.class_name]
        yield from ((f"device class {found.name}", selector) for selector in found.selectors)
        yield from (("the request", selector) for selector in asked.selectors)


def _is_selected(whose: str, selector: DeviceSelector, device: StockedDevice) -> bool:
    from tenure.engine.device_selectors import DeviceSelectorError, compiled  # noqa: PLC0415  takes long to import

    program = compiled(selector.cel.expression)
    if isinstance(program, DeviceSelectorError):
        raise DeviceSearchError(f"a selector of {whose} {program}")
    try:
        return program.matches(device.key[0], device.model)
    except DeviceSelectorError as error:
        raise DeviceSearchError(f"a selector of {whose} fails for device {'/'.join(device.key)}: {error}") from None
