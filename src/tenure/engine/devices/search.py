"""The search for devices of one node that meet all requests of some claims, in the order of kube-scheduler's.

One claim after the other, request by request, device by device; the first solution is taken. What a request may have is
tried in the order of pools and slices, each set of devices once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from tenure.engine.devices.capacity import Consumed, is_tainted
from tenure.engine.devices.stock import NodeDevices, StockedDevice
from tenure.model.devices import (
    MOST_RESULTS,
    DeviceAttribute,
    DeviceConstraint,
    DeviceRequest,
    ExactDevices,
)

MOST_STEPS: Final = 20_000
"""Devices that are tried for the claims of one task on one node."""

MOST_STEPS_IN_ALL: Final = 50_000
"""Devices that are tried in a cycle for all claims of a namespace, beyond `FREE_STEPS` of each search."""

FREE_STEPS: Final = 64
"""Devices that every search may try: those of most claims try no more."""


class DeviceSearchError(Exception):
    """The search for devices cannot be ended: a selector fails, or it takes too long. The text says which."""


class DemandedDevices(NamedTuple):
    """What one claim demands: its requests, and the constraints on what they get."""

    requests: tuple[DeviceRequest, ...]
    constraints: tuple[DeviceConstraint, ...]


@dataclass(frozen=True, slots=True)
class TakenDevice:
    """A device that is taken for a request, with its share of the capacities if it is shared."""

    request: str
    device: StockedDevice
    has_admin_access: bool = False
    consumed: Consumed = ()


class DeviceLedger(Protocol):
    """The ledger of what is given out, in the views that the search has to suit."""

    def takes(self, asked: ExactDevices, device: StockedDevice) -> Consumed | None:
        """What a request would consume of a device; None if it does not take it."""

    def is_used(self, device: StockedDevice) -> bool:
        """Whether a device is given out as a whole."""

    def shared_in(self, device: StockedDevice) -> tuple[bool, ...]:
        """By view, whether a shared device is given out at all."""

    def has_capacity(self, device: StockedDevice, consumed: Consumed, more: dict[str, int]) -> bool:
        """Whether the capacities of a shared device suffice, beside ``more`` that is being taken."""

    def has_counters(self, view: int, device: StockedDevice, taken: dict[int, int]) -> bool:
        """Whether all counters of a device's pool suffice for what is being taken, in one of the views."""


class DeviceSearch:
    """A search on one node. ``views`` is the number of views that the ledger has, ``steps`` what it has tried."""

    def __init__(
        self, there: NodeDevices, ledger: DeviceLedger, demands: Sequence[DemandedDevices], views: int
    ) -> None:
        self._devices = there.devices
        self._is_whole = there.is_whole
        self._ledger = ledger
        self._demands = demands
        self.steps = 0
        self._result: list[list[TakenDevice]] = [[] for _ in demands]
        self._taken: dict[int, list[int]] = {}
        self._shares: dict[int, list[Consumed]] = {}
        self._counters: list[dict[int, int]] = [{} for _ in range(views)]

    def run(self) -> list[list[TakenDevice]] | None:
        """Give the devices of each claim; None if there is no solution.

        Raises
        ------
        DeviceSearchError
            If that cannot be found out.
        """
        if sum(_least(demand) for demand in self._demands) > _MOST_DEEP:
            raise DeviceSearchError(f"its claims ask for more than {_MOST_DEEP} devices in all")
        return self._result if self._request(0, 0) else None

    def _request(self, claim: int, number: int) -> bool:
        """Meet the requests of claims from one on."""
        if claim == len(self._demands):
            return True
        requests = self._demands[claim].requests
        if number == len(requests):
            return self._request(claim + 1, 0)
        return any(self._option(claim, number, name, asked) for name, asked in requests[number].options)

    def _option(self, claim: int, number: int, name: str, asked: ExactDevices) -> bool:
        if asked.mode == "All":
            wanted = self._all(asked)
            if not wanted or len(self._result[claim]) + len(wanted) > MOST_RESULTS:
                return False
            return self._these(claim, number, name, asked, wanted, 0)
        if len(self._result[claim]) + asked.count > MOST_RESULTS:
            return False
        return self._some(claim, number, name, asked, asked.count, 0)

    def _all(self, asked: ExactDevices) -> list[StockedDevice]:
        """Give all devices that a request takes, used or tainted or not; none where a pool is not whole."""
        if not self._is_whole:
            return []
        return [device for device in self._devices if self._ledger.takes(asked, device) is not None]

    def _these(
        self, claim: int, number: int, name: str, asked: ExactDevices, wanted: list[StockedDevice], at: int
    ) -> bool:
        if at == len(wanted):
            return self._request(claim, number + 1)
        if not self._take(claim, name, asked, wanted[at]):
            return False
        if self._these(claim, number, name, asked, wanted, at + 1):
            return True
        self._untake(claim)
        return False

    def _some(self, claim: int, number: int, name: str, asked: ExactDevices, left: int, start: int) -> bool:
        if not left:
            return self._request(claim, number + 1)
        for at in range(start, len(self._devices)):
            if self._take(claim, name, asked, self._devices[at]):
                if self._some(claim, number, name, asked, left - 1, at + 1):
                    return True
                self._untake(claim)
        return False

    # -- one device -------------------------------------------------------------------------------------------------

    def _take(self, claim: int, name: str, asked: ExactDevices, device: StockedDevice) -> bool:
        """Take a device for a request, if it is free and suits what was taken before."""
        self.steps += 1
        if self.steps > MOST_STEPS:
            raise DeviceSearchError(f"more than {MOST_STEPS:,} combinations of devices would have to be tried")
        ledger, is_shared = self._ledger, device.model.is_shared
        if asked.has_admin_access:
            if not is_shared and claim in self._taken.get(device.number, ()):
                return False
        elif ledger.is_used(device) or self._taken.get(device.number):
            return False
        consumed, beside = ledger.takes(asked, device), (self._demands[claim], self._result[claim])
        if consumed is None or is_tainted(device.model.taints, asked.tolerations) or not _suits(beside, name, device):
            return False
        if is_shared and not ledger.has_capacity(device, consumed, _sum(self._shares.get(device.number, ()))):
            return False
        if not self._count(device):
            return False
        if is_shared:
            self._shares.setdefault(device.number, []).append(consumed)
        else:
            self._taken.setdefault(device.number, []).append(claim)
        share = consumed if is_shared else ()
        self._result[claim].append(TakenDevice(name, device, asked.has_admin_access, share))
        return True

    def _untake(self, claim: int) -> None:
        device = self._result[claim].pop().device
        known = self._shares if device.model.is_shared else self._taken
        known[device.number].pop()
        self._uncount(device)

    def _charged(self, device: StockedDevice) -> list[int]:
        """Give the views in which giving out a device consumes its counters: of a shared one, the first share does."""
        if not device.counters:
            return []
        if not device.model.is_shared:
            return list(range(len(self._counters)))
        if self._shares.get(device.number):
            return []
        return [view for view, is_shared in enumerate(self._ledger.shared_in(device)) if not is_shared]

    def _count(self, device: StockedDevice) -> bool:
        for view in self._charged(device):
            counted = self._counters[view]
            for counter, amount in device.counters:
                counted[counter] = counted.get(counter, 0) + amount
        if all(self._ledger.has_counters(view, device, self._counters[view]) for view in self._charged(device)):
            return True
        self._uncount(device)
        return False

    def _uncount(self, device: StockedDevice) -> None:
        for view in self._charged(device):
            for counter, amount in device.counters:
                self._counters[view][counter] -= amount


def _sum(shares: Iterable[Consumed]) -> dict[str, int]:
    found: dict[str, int] = {}
    for share in shares:
        for name, amount in share:
            found[name] = found.get(name, 0) + amount
    return found


def _suits(beside: tuple[DemandedDevices, list[TakenDevice]], name: str, device: StockedDevice) -> bool:
    """Whether a device may be beside those that its claim has got, by the claim's constraints."""
    demand, got = beside
    for constraint in demand.constraints:
        if not _concerns(constraint, name):
            continue
        key = constraint.match_attribute or constraint.distinct_attribute or ""
        value = attribute_of(device, key)
        if value is None:
            return False
        others = [attribute_of(t.device, key) for t in got if _concerns(constraint, t.request)]
        is_alike = constraint.match_attribute is not None
        if any((other == value) is not is_alike for other in others):
            return False
    return True


_MOST_DEEP: Final = 128
"""Devices of all claims of a task, at the most."""


def _least(demand: DemandedDevices) -> int:
    return sum(
        min((1 if asked.mode == "All" else asked.count for _, asked in request.options), default=0)
        for request in demand.requests
    )


def _concerns(constraint: DeviceConstraint, name: str) -> bool:
    """Whether a constraint holds for what a request gets; ``name`` may be that of an alternative of it."""
    return not constraint.requests or name in constraint.requests or name.partition("/")[0] in constraint.requests


def attribute_of(device: StockedDevice, name: str) -> DeviceAttribute | None:
    """Give an attribute of a device by its name with domain; without one it is of the domain of the driver."""
    found = device.model.attributes.get(name)
    if found is None:
        domain, _, rest = name.partition("/")
        found = device.model.attributes.get(rest) if domain == device.key[0] else None
    return found


def alternatives(demands: Sequence[DemandedDevices]) -> Iterator[ExactDevices]:
    """Give every request that may have to be met."""
    for demand in demands:
        for request in demand.requests:
            for _, asked in request.options:
                yield asked
