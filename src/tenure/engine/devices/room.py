"""Which nodes have free devices for what claims demand.

Where all devices that the requests take are given out as wholes, and two requests take the same devices or none in
common, a count tells; else the search is tried, node by node, and again where something changed since.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tenure.engine.devices.answers import RequestKind
from tenure.engine.devices.counts import LATER, CountedDevices, DeviceCounts, Views
from tenure.engine.devices.search import (
    FREE_STEPS,
    MOST_STEPS_IN_ALL,
    DemandedDevices,
    DeviceSearch,
    DeviceSearchError,
    TakenDevice,
    alternatives,
)
from tenure.engine.devices.stock import StockedDevice
from tenure.model.devices import MOST_RESULTS, ExactDevices

Mask = NDArray[np.bool_]
Ints = NDArray[np.int64]

_TOO_MANY: Final = (
    f"for the claims of its namespace more than {MOST_STEPS_IN_ALL:,} combinations of devices would have to be tried"
)
NONE_YET: Final = -1
"""Stamp of a node on which there was no search yet."""


@dataclass(slots=True)
class _Shape:
    """Demands that are met together. ``counts`` are the devices of each kind that they need, where a count tells."""

    demands: tuple[DemandedDevices, ...]
    counts: list[tuple[RequestKind, int]] | None


class DeviceRoom:
    """The nodes that have devices for demands; these have numbers, so that equal ones are looked at once."""

    def __init__(self, counts: DeviceCounts) -> None:
        self.counts = counts
        self.demands: list[DemandedDevices] = []
        self._numbers: dict[DemandedDevices, int] = {}
        self._shapes: dict[tuple[int, ...], _Shape] = {}
        self._found: dict[tuple[tuple[int, ...], Views], tuple[Ints, Mask]] = {}
        self._tried: dict[str, int] = {}
        self._there: dict[int, bool] = {}

    def begin_anew(self) -> bool:
        """Let every namespace try as many devices as at first, and ask its selectors as much.

        Gives whether what was looked at in part before is now looked at as a whole.
        """
        self._tried.clear()
        if not self.counts.kinds.begin_anew():
            return False
        self._shapes.clear()
        self._found.clear()
        self._there.clear()
        return True

    def number_of(self, demand: DemandedDevices, namespace: str) -> int:
        """Give the number of what a claim of a namespace demands."""
        number = self._numbers.setdefault(demand, len(self.demands))
        if number == len(self.demands):
            self.demands.append(demand)
            for asked in alternatives((demand,)):
                self.counts.kinds.of(asked, namespace)
        return number

    def mask(self, wanted: tuple[int, ...], views: Views, namespace: str) -> Mask:
        """Which nodes have devices for all of some demands of claims of a namespace, free in the views."""
        shape = self._shapes.get(wanted)
        if shape is None:
            shape = self._shapes[wanted] = self._shape_of(wanted)
        if shape.counts is None:
            return self._searched(wanted, views, namespace)
        mask = np.ones(len(self.counts.stamps), bool)
        for kind, count in shape.counts:
            mask &= kind.free[0 if views == LATER else 1] >= count
        return mask

    def is_there(self, number: int) -> bool:
        """Whether a node has as many devices as each request of a demand takes, used or not."""
        known = self._there.get(number)
        if known is None:
            asked = [[asked for _, asked in request.options] for request in self.demands[number].requests]
            there = (here.devices for here in self.counts.stock.at)
            known = any(all(any(self._has(devices, a) for a in options) for options in asked) for devices in there)
            self._there[number] = known
        return known

    def _has(self, devices: Sequence[StockedDevice], asked: ExactDevices) -> bool:
        members = self.counts.kinds.of(asked).members
        return sum(device.number in members for device in devices) >= (1 if asked.mode == "All" else asked.count)

    def find(self, wanted: Sequence[int], node: int, views: Views) -> list[list[TakenDevice]] | None:
        """Give devices of a node for demands; None if there are none, or if that cannot be told."""
        try:
            return self._search(wanted, node, views).run()
        except DeviceSearchError:
            return None

    def problem(self, number: int, namespace: str) -> str:
        """Say why it cannot be found out where there are devices for a demand of a namespace; empty if it can."""
        for node, there in enumerate(self.counts.stock.at):
            if there.devices:
                try:
                    if self._tried_on(node, (number,), LATER, namespace):
                        break
                except DeviceSearchError as error:
                    return str(error)
        return ""

    def _search(self, wanted: Sequence[int], node: int, views: Views) -> DeviceSearch:
        demands = [self.demands[number] for number in wanted]
        return DeviceSearch(self.counts.stock.at[node], CountedDevices(self.counts, views), demands, len(views))

    def _searched(self, wanted: tuple[int, ...], views: Views, namespace: str) -> Mask:
        now = self.counts.stamps
        known = self._found.get((wanted, views))
        if known is None:
            known = self._found[wanted, views] = np.full(len(now), NONE_YET, np.int64), np.zeros(len(now), bool)
        stamps, mask = known
        for node in np.flatnonzero(stamps != now).tolist():
            mask[node] = False
            if self._tried.get(namespace, 0) <= MOST_STEPS_IN_ALL:
                with suppress(DeviceSearchError):
                    mask[node] = self._tried_on(node, wanted, views, namespace)
                stamps[node] = now[node]
        return mask.copy()

    def _tried_on(self, node: int, wanted: Sequence[int], views: Views, namespace: str) -> bool:
        """Whether a node has devices for some demands, as far as their namespace may still try any.

        Raises
        ------
        DeviceSearchError
            If that cannot be found out.
        """
        tried = self._tried.get(namespace, 0)
        if tried > MOST_STEPS_IN_ALL:
            raise DeviceSearchError(_TOO_MANY)
        search = self._search(wanted, node, views)
        try:
            return search.run() is not None
        finally:
            self._tried[namespace] = tried + max(0, search.steps - FREE_STEPS)

    def _shape_of(self, wanted: tuple[int, ...]) -> _Shape:
        demands = tuple(self.demands[number] for number in wanted)
        counts: dict[int, tuple[RequestKind, int]] = {}
        for demand in demands:
            if demand.constraints or not all(_is_counted(r.options) for r in demand.requests):
                return _Shape(demands, None)
            if sum(r.options[0][1].count for r in demand.requests) > MOST_RESULTS:
                return _Shape(demands, None)
            for request in demand.requests:
                asked = request.options[0][1]
                kind = self.counts.kinds.of(asked)
                counts[id(kind)] = kind, counts.get(id(kind), (kind, 0))[1] + asked.count
        kinds = [kind for kind, _ in counts.values()]
        is_told = all(
            kind.is_plain and not any(kind.members & other.members for other in kinds[:place])
            for place, kind in enumerate(kinds)
        )
        return _Shape(demands, list(counts.values()) if is_told else None)


def _is_counted(options: Sequence[tuple[str, ExactDevices]]) -> bool:
    """Whether a request is for so many devices, without a choice between kinds of them."""
    return len(options) == 1 and options[0][1].mode == "ExactCount" and not options[0][1].has_admin_access
