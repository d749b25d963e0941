"""On which nodes devices serve extended resources: those that have none of them by themselves.

There the devices are room of their nodes, so that what asks for them is bounded and charged as where a device plugin
offers them; which of them are free is decided by claims.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from tenure.engine.devices.room import DeviceRoom
from tenure.engine.room.nodes import NodeTable, by_itself, serve
from tenure.model.devices import ExactDevices

Mask = np.ndarray[Any, np.dtype[np.bool_]]

MOST_SHARES: Final = 1024
"""Shares of one device that are given out for an extended resource, at the most."""


class DeviceTerm(NamedTuple):
    """A claim of a task: its row in the table, and the number of what it demands.

    ``resources`` are the extended resources that it serves: a node that has all of them by itself needs no claim.
    """

    claim: str
    row: int
    demand: int
    resources: tuple[str, ...] = ()

    @property
    def namespace(self) -> str:
        """The namespace of the claim."""
        return namespace_of(self.claim)


def namespace_of(claim: str) -> str:
    """Give the namespace of a claim, which is called namespace/name."""
    return claim.partition("/")[0]


class ServedNodes:
    """The nodes on which claims of a task are needed."""

    def __init__(self, nodes: NodeTable) -> None:
        self._nodes = nodes

    def serve(self, room: DeviceRoom, served: Mapping[str, str]) -> None:
        """Let devices serve resources where nodes have none by themselves; ``served`` has the class of each."""
        kinds, stock = room.counts.kinds, room.counts.stock
        for resource, class_name in served.items():
            counts = np.zeros(len(self._nodes), np.int64)
            for number in kinds.of(ExactDevices(class_name=class_name)).members:
                device = stock.by_number[number]
                counts[stock.reach[number]] += MOST_SHARES if device is not None and device.model.is_shared else 1
            serve(self._nodes, resource, counts)

    def needed_at(self, terms: tuple[DeviceTerm, ...], node: int) -> tuple[DeviceTerm, ...]:
        """Give the claims of a task that it needs on a node."""
        if not any(term.resources for term in terms):
            return terms
        return tuple(term for term in terms if not self._needless(term)[node])

    def joined(self, terms: tuple[DeviceTerm, ...], meeting: Callable[[tuple[DeviceTerm, ...]], Mask]) -> Mask:
        """Which nodes meet those claims of a task that are needed there; ``meeting`` says which meet all of some."""
        if not any(term.resources for term in terms):
            return meeting(terms)
        found = np.zeros(len(self._nodes), bool)
        needless = np.stack([self._needless(term) for term in terms])
        for pattern in np.unique(needless, axis=1).T:
            there = (needless == pattern[:, None]).all(axis=0)
            needed = tuple(term for term, is_needless in zip(terms, pattern, strict=True) if not is_needless)
            found |= there & meeting(needed)
        return found

    def _needless(self, term: DeviceTerm) -> Mask:
        """Which nodes have by themselves all that a claim of a task is for."""
        mask = np.full(len(self._nodes), bool(term.resources))
        for resource in term.resources:
            mask &= by_itself(self._nodes, resource)
        return mask
