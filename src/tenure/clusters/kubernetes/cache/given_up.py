"""Devices that were given up, because their drivers could not prepare them: for a while no claim gets them again."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Final

from tenure.model.devices import DeviceTaint
from tenure.model.manifests.devices import DeviceTaintRule

AVOIDED: Final = 60_000_000
"""Microseconds for which a device that was given up is avoided."""

_TAINT: Final = DeviceTaint(key="given-up", effect="NoSchedule")


class GivenUpDevices:
    """The devices that were given up lately, by driver, pool and name. ``version`` grows with each change."""

    def __init__(self) -> None:
        self.version = 0
        self._until: dict[tuple[str, str, str], int] = {}
        self._lock = threading.Lock()

    def add(self, devices: Iterable[tuple[str, str, str]], now: int) -> None:
        """Devices are given up at ``now`` (µs since the epoch)."""
        with self._lock:
            self._until.update(dict.fromkeys(devices, now + AVOIDED))
            self.version += 1

    def pass_to(self, now: int) -> None:
        """Time passes: what was avoided for long enough is given out again."""
        with self._lock:
            over = [key for key, until in self._until.items() if until <= now]
            for key in over:
                del self._until[key]
            self.version += bool(over)

    def wake(self) -> int | None:
        """Give when the next of them is given out again, in µs since the epoch."""
        with self._lock:
            return min(self._until.values(), default=None)

    def rules(self) -> list[DeviceTaintRule]:
        """Give the rules that keep them from claims."""
        with self._lock:
            return [DeviceTaintRule(_TAINT, *key) for key in sorted(self._until)]
