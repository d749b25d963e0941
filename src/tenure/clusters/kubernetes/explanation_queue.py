"""Of which workloads it is looked at next why they wait."""

from __future__ import annotations

import heapq
import time
from collections.abc import Iterator
from typing import Final

from tenure.clusters.kubernetes.read.observe import Observed
from tenure.model.workload import Phase

AGAIN: Final = 60.0
"""Seconds after which it is looked at anew why a workload waits: what others do changes that too."""

AGAIN_IF_CHANGED: Final = 5.0
"""The same where the workload itself changed; writing on its pods why they wait is such a change as well."""

_MOST_REMEMBERED: Final = 100_000


class ExplanationQueue:
    """Workloads that wait: first those that were never looked at, then those that were looked at longest ago."""

    def __init__(self) -> None:
        self._at: dict[str, float] = {}
        self._changed: set[str] = set()
        self._new: set[str] = set()

    @property
    def has_more(self) -> bool:
        """Tell whether some that do not say why they wait are still to be looked at for the first time."""
        return bool(self._new)

    def take(self, view: Observed, most: int) -> Iterator[str]:
        """Give at most so many, one after the other; what is not asked for keeps its place."""
        now = time.monotonic()
        if len(self._at) > _MOST_REMEMBERED:
            self._at.clear()
        self._changed = (self._changed | (view.changed or set())) & view.waiting
        silent = {key for key in view.waiting if _is_silent(view, key)}
        self._new = silent - self._at.keys()
        due = ((self._at.get(key, -AGAIN), key) for key in view.waiting if key in silent or self._is_due(key, now))
        for _, key in heapq.nsmallest(most, due):
            self._at[key] = now
            self._changed.discard(key)
            self._new.discard(key)
            yield key

    def _is_due(self, key: str, now: float) -> bool:
        """Tell whether a workload was looked at too long ago, or never."""
        again = AGAIN_IF_CHANGED if key in self._changed else AGAIN
        return now - self._at.get(key, -AGAIN) >= again


def _is_silent(view: Observed, key: str) -> bool:
    """Tell whether a pod of a workload waits and does not say why."""
    return any(pod.task.phase is Phase.PENDING and not pod.waits[0] for pod in view.pods[key])
