"""Kinds of requests for devices: which devices each takes, and how many of these are free on each node.

A kind is made with the first task that has it, not in a scenario: what a scenario undoes knows no kind that came in it.
Where its selectors may not be asked any more, it is looked at further at the beginning of the next cycle.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tenure.engine.devices.answers import TOO_MUCH, Passes, RequestKind, SelectorAnswers
from tenure.engine.devices.capacity import Consumed, is_tainted
from tenure.engine.devices.search import DeviceSearchError
from tenure.engine.devices.stock import DeviceStock, StockedDevice
from tenure.engine.journal import Journal
from tenure.engine.room.nodes import THEN
from tenure.model.devices import ExactDevices

Ints = NDArray[np.int64]


class RequestKinds:
    """The kinds of requests of a session; ``used`` is ``int64[2, devices]``, by view how often each is given out.

    ``passes`` is what is known of requests from before.
    """

    def __init__(
        self, stock: DeviceStock, journal: Journal, used: Ints, passes: Mapping[Any, dict[int, Passes]] | None = None
    ) -> None:
        self._stock = stock
        self._journal = journal
        self._used = used
        self._known: dict[Any, RequestKind] = {}
        self._before = passes or {}
        self._taking: list[list[RequestKind]] = [[] for _ in stock.numbers]
        self._unfinished: list[RequestKind] = []
        self._answers = SelectorAnswers(stock)

    def begin_anew(self) -> bool:
        """Let every namespace spend as much as at first, on what was left undone first; whether any of it is done."""
        self._answers.begin_anew()
        before, self._unfinished = self._unfinished, []
        for kind in before:
            self._look_on(kind)
        return len(self._unfinished) < len(before)

    def of(self, asked: ExactDevices, namespace: str = "") -> RequestKind:
        """Give the kind of a request of a namespace; what is of none may cost what it costs."""
        capacity = None if asked.capacity is None else tuple(sorted(asked.capacity.requests.items()))
        key = asked.class_name, asked.selectors, asked.tolerations, capacity
        known = self._known.get(key)
        if known is None:
            free = np.zeros((2, len(self._stock.at)), np.int64)
            known = self._known[key] = RequestKind(asked, namespace, free, self._before.get(key, {}))
            self._look_on(known)
        return known

    def is_unfinished(self, kind: RequestKind) -> bool:
        """Whether there are devices that have not been looked at yet."""
        return kind.looked_at < len(self._stock.by_number)

    def passes(self) -> dict[Any, dict[int, Passes]]:
        """Give what is known of the requests that there are."""
        return {key: kind.passes for key, kind in self._known.items()}

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
        found = self.of(asked).passes.get(device.kind, TOO_MUCH)
        if isinstance(found, DeviceSearchError):
            raise DeviceSearchError(*found.args)
        return found

    def count(self, device: StockedDevice, change_then: int, change_both: int) -> None:
        """Count a device that became free, or is free no longer."""
        nodes = self._stock.reach[device.number]
        for kind in self._taking[device.number]:
            self._journal.keep(kind.free, (slice(None), nodes))
            kind.free[0, nodes] += change_then
            kind.free[1, nodes] += change_both

    def _look_on(self, kind: RequestKind) -> None:
        """Look at the devices that have not been looked at, as far as the namespace may spend on it."""
        if not kind.passes and not self._answers.may_begin(kind):
            self._unfinished.append(kind)
            return
        taken: list[int] = []
        for device in self._stock.by_number[kind.looked_at :]:
            if device is not None and device.kind not in kind.passes and not self._answers.judge(kind, device):
                self._unfinished.append(kind)
                break
            kind.looked_at += 1
            if device is not None and self._is_taken(kind, device):
                taken.append(device.number)
        self._count_in(kind, taken)
        if not self.is_unfinished(kind):
            kind.is_plain = kind.plain_so_far
            kind.said.clear()

    def _is_taken(self, kind: RequestKind, device: StockedDevice) -> bool:
        """Whether a device that was judged is one of those that a kind of requests takes."""
        passes = kind.passes[device.kind]
        if passes is None or is_tainted(device.model.taints, kind.asked.tolerations):
            return False
        if isinstance(passes, DeviceSearchError):
            kind.plain_so_far = False
            return False
        kind.plain_so_far &= device.is_plain and device.number not in self._stock.odd
        return True

    def _count_in(self, kind: RequestKind, taken: list[int]) -> None:
        """Count devices that a kind of requests takes, by the nodes that reach them; all at once, for they are many."""
        if not taken:
            return
        kind.members.update(taken)
        for number in taken:
            self._taking[number].append(kind)
        reach = [self._stock.reach[number] for number in taken]
        nodes, used = np.concatenate(reach), self._used[:, np.repeat(taken, [len(found) for found in reach])]
        for place, is_free in enumerate((used[THEN] == 0, ~used.any(axis=0))):
            kind.free[place] += np.bincount(nodes[is_free], minlength=len(kind.free[place]))
