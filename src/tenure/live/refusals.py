"""Writes that are refused again and again: whom they are about is set aside, so that others have the room."""

from __future__ import annotations

from typing import Any, Final

from tenure.live.isolation import Quarantine
from tenure.model.cluster import Cluster

PATIENCE: Final = 3
"""Refusals in a row after which a workload is set aside: one or two may be for a change that was on its way."""

PLACING: Final = frozenset({"bind", "nominate", "promise"})
_PASSING: Final = frozenset({404, 409, 429})
"""Answers that say that something changed, or to come back later."""


class Refusals:
    """Counts, by workload, how often in a row the API server refused to place it."""

    def __init__(self, quarantine: Quarantine) -> None:
        self._quarantine = quarantine
        self._count: dict[str, int] = {}

    def note(self, outcome: Any, cluster: Cluster) -> None:
        """Take what came of a plan: its ``done`` steps and its ``failures``."""
        for step in outcome.done:
            self._count.pop(step.workload, None)
        refused = {
            f.workload: f.error
            for f in outcome.failures
            if f.action in PLACING and f.error.is_refusal and f.error.status not in _PASSING
        }
        for key in refused:
            self._count[key] = self._count.get(key, 0) + 1
        late = {key for key in refused if self._count[key] >= PATIENCE}
        for workload in cluster.workloads if late else ():
            if workload.key in late:
                why = f"the API server refuses to place it: {refused[workload.key]}"[:_LONGEST]
                self._quarantine.add(workload, cluster.now, why)
        if len(self._count) > _MOST:
            self._count.clear()


_LONGEST = 500
_MOST = 10_000
