"""Allocations of claims on devices that are being written: they count from the moment at which that begins."""

from __future__ import annotations

import threading
from collections.abc import Iterable

from tenure.engine.plan import ClaimedDevices
from tenure.model.devices import DeviceAllocation


class AssumedAllocations:
    """The allocations that are being written, by namespace/name of the claim; several writes may share one claim.

    ``version`` grows with each change.
    """

    def __init__(self) -> None:
        self.version = 0
        self._lock = threading.Lock()
        self._known: dict[str, tuple[DeviceAllocation, int]] = {}
        self._changed: tuple[set[tuple[str, str]], set[tuple[str, str]]] = (set(), set())

    def of(self, claim: str) -> DeviceAllocation | None:
        """Give what is being written for a claim."""
        found = self._known.get(claim)
        return None if found is None else found[0]

    def known(self) -> set[str]:
        """Give the claims for which anything is being written."""
        return set(self._known)

    def begin(self, claims: Iterable[ClaimedDevices]) -> None:
        """Writing of these allocations begins."""
        with self._lock:
            for claim, allocation in claims:
                _, count = self._known.get(claim, (None, 0))
                self._known[claim] = allocation, count + 1
                self._note(claim)

    def end(self, claims: Iterable[ClaimedDevices]) -> None:
        """Writing of these allocations has ended: what was written is known from the claims themselves."""
        with self._lock:
            for claim, _ in claims:
                allocation, count = self._known[claim]
                if count > 1:
                    self._known[claim] = allocation, count - 1
                else:
                    del self._known[claim]
                self._note(claim)

    def changed(self) -> set[tuple[str, str]]:
        """Give the claims of which this changed since it was last asked for."""
        return self._taken(0)

    def pending(self) -> set[tuple[str, str]]:
        """Give the same to another reader, who asks at other times."""
        return self._taken(1)

    def _taken(self, reader: int) -> set[tuple[str, str]]:
        with self._lock:
            found = set(self._changed[reader])
            self._changed[reader].clear()
        return found

    def _note(self, claim: str) -> None:
        namespace, _, name = claim.partition("/")
        for changed in self._changed:
            changed.add((namespace, name))
        self.version += 1
