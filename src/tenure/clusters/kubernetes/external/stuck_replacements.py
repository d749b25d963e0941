"""Replacements that wait in vain because a record that is gone still keeps them off nodes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Final

from tenure.clusters.kubernetes.cache.pod_records import PodRecord
from tenure.clusters.kubernetes.external import reservations
from tenure.clusters.kubernetes.external.admission_check import DEAF
from tenure.clusters.kubernetes.external.seen import SECOND
from tenure.model.workload import Phase

STUCK: Final = 30 * SECOND
"""µs after which a replacement that waits in vain, kept off nodes by a record that is gone, is made anew."""

LATE: Final = DEAF
"""µs for which admission may go on keeping pods off nodes by a record that is gone: it reads records later."""

MOST_RENEWED: Final = 10_000
"""Controllers that are remembered whose pods were made anew."""


class StuckReplacements:
    """The replacements that are to be made anew, with the time since when this is done for each controller's."""

    def __init__(self) -> None:
        self._renewed: dict[str, int] = {}

    def among(self, pods: Iterable[PodRecord], guided: Collection[str], now: int) -> Iterator[PodRecord]:
        """Give those of some pods that are stuck; what a record that is there keeps off nodes (``guided``) is not."""
        for controller in guided:
            self._renewed.pop(controller, None)
        for pod in pods:
            if _is_stuck(pod, now) and pod.controller not in guided and self._is_replacement(pod, now):
                yield pod

    def _is_replacement(self, pod: PodRecord, now: int) -> bool:
        """Whether a pod may be kept off nodes by a record that is gone, and not by what it was made from.

        Those of a controller that come after its first were made anew would else be evicted again and again.
        """
        since = self._renewed.setdefault(pod.controller, now)
        while len(self._renewed) > MOST_RENEWED:
            del self._renewed[next(iter(self._renewed))]
        return pod.created_at < since + LATE


def _is_stuck(pod: PodRecord, now: int) -> bool:
    return (
        reservations.KEPT_OFF in pod.annotations
        and pod.task.phase is Phase.PENDING
        and pod.waits[0] == "Unschedulable"
        and now >= pod.created_at + STUCK
        and bool(pod.controller)
    )
