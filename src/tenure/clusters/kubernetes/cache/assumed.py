"""What this process wrote, or is writing, of pods, and the watch has not shown yet."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

from tenure.clusters.kubernetes.cache.owners import Key
from tenure.clusters.kubernetes.cache.pod_records import PodRecord
from tenure.model.workload import Phase

ASSUMED_SECONDS = 30.0
"""For so long a write that was accepted is believed before the watch has shown it."""


_LIVING = frozenset({Phase.PENDING, Phase.GATED, Phase.BOUND, Phase.RUNNING})


@dataclass(slots=True)
class _Assumption:
    """The record of a pod as it will be, and until when that is believed."""

    then: PodRecord
    until: float


class AssumedPods:
    """The records of pods as they will be, by namespace and name.

    What was written is believed for `ASSUMED_SECONDS`; what is being written until it was `accepted` or taken back.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._entries: dict[Key, _Assumption] = {}

    def __len__(self) -> int:
        """Give how many there are."""
        return len(self._entries)

    def get(self, key: Key) -> PodRecord | None:
        """Give the record of a pod as it will be; None where nothing is assumed of it."""
        entry = self._entries.get(key)
        return None if entry is None else entry.then

    def add(self, then: PodRecord, *, is_written: bool) -> None:
        """Assume that a pod will be so."""
        self._entries[then.key] = _Assumption(then, self._clock() + ASSUMED_SECONDS if is_written else math.inf)

    def accepted(self, then: PodRecord) -> None:
        """What was assumed of a pod was written; the watch has yet to show it.

        Takes no lock, for which all that write would wait behind the watch of pods: an entry that was dropped meanwhile
        is not put back by it.
        """
        entry = self._entries.get(then.key)
        if entry is not None and entry.then is then:
            entry.until = self._clock() + ASSUMED_SECONDS

    def drop(self, key: Key) -> None:
        """Assume nothing of a pod any more."""
        self._entries.pop(key, None)

    def settle(self, record: PodRecord) -> None:
        """A newer state is there: what was assumed is either shown by it, or still on its way."""
        then = self.get(record.key)
        if then is not None and (record.uid != then.uid or shows(record, then)):
            self.drop(record.key)

    def late(self) -> list[Key]:
        """Give of which pods something was assumed for too long."""
        now = self._clock()
        return [key for key, entry in self._entries.items() if entry.until <= now]


def shows(record: PodRecord, then: PodRecord) -> bool:
    """Whether a state shows what was written, or something that came after it."""
    if record.uid != then.uid:
        return True
    task, wanted = record.task, then.task
    if wanted.phase in (Phase.BOUND, Phase.RUNNING):
        is_told = task.node is not None and task.notice == wanted.notice
        return is_told or record.is_going or task.phase not in _LIVING
    if wanted.phase is Phase.TERMINATING:
        return record.is_going
    return task.nominated == wanted.nominated or task.node is not None
