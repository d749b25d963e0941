"""Telling Kueue of evictions: a workload of which nothing runs any more is evicted for Kueue as well, and queued again.

Without that Kueue would go on counting it as admitted, and its quota would be used by pods that only wait. The
condition ``Evicted`` has the reason ``Preempted``, with which Kueue puts a workload back into its queue at once.
Whether it is due is read off the eviction log, so that the next leader makes up for what a crash left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from tenure.clusters.kubernetes import api
from tenure.clusters.kubernetes.cache.informers import InformerCache
from tenure.clusters.kubernetes.client.requests import APPLY, ApiError, Client
from tenure.clusters.kubernetes.read.eviction_log import EvictionEntry
from tenure.clusters.kubernetes.read.kueue_workloads import EVICTED, WATCH, KueueAdmission, admission_of
from tenure.clusters.kubernetes.read.observe import Observed
from tenure.clusters.kubernetes.read.workloads import ACTIVE, ObservedWorkload
from tenure.model.values.duration import format_time

PREEMPTED: Final = "Preempted"
RECENT: Final = 600_000_000
"""µs after an eviction in which Kueue is told of it."""

_SECOND: Final = 1_000_000
_MANAGER: Final = "tenure"
_PASSING: Final = frozenset({404, 409})
_LONGEST: Final = 1000


class KueueEvictions:
    """The writer of Kueue's condition for what was evicted as a whole; what moved, or lost surplus alone, goes on."""

    def __init__(self, client: Client, informers: InformerCache) -> None:
        self._client = client
        self._informers = informers

    def tell(self, observed: Observed, evicted: Iterable[EvictionEntry]) -> list[ApiError]:
        """Tell Kueue of each workload that was evicted since it was admitted; gives why some could not be told.

        What was observed is the time before the last evictions, which were ``evicted``.
        """
        admissions, now, made = observed.admissions, observed.cluster.now, observed.made
        if not admissions:
            return []
        begun, due = format_time(now - RECENT), dict[KueueAdmission, EvictionEntry]()
        for entry in (*observed.log, *evicted):
            if entry.at < begun or entry.to_node is not None:
                continue
            known = admissions.of(entry.workload.partition("/")[0], (entry.workload_uid, entry.uid))
            if known is not None and _is_due(known, entry) and not self._goes_on(made.get(entry.workload), entry):
                due[known] = entry
        return [error for known, entry in due.items() if (error := self._write(known, entry, now)) is not None]

    def _goes_on(self, made: ObservedWorkload | None, entry: EvictionEntry) -> bool:
        """Whether something of a workload runs that ran when this was evicted."""
        at, records = api.micros(entry.at) or 0, self._informers.pods.records
        for pod in made.pods if made is not None else ():
            now = records.get(pod.key)
            if now is None or now.uid != pod.uid or now.is_going or now.task.phase not in ACTIVE:
                continue
            if (now.task.started_at or 0) <= at:
                return True
        return False

    def _write(self, known: KueueAdmission, entry: EvictionEntry, now: int) -> ApiError | None:
        whose = f" for {entry.beneficiary}" if entry.beneficiary else ""
        condition = {
            "type": EVICTED, "status": "True", "reason": PREEMPTED,
            "message": f"evicted by Tenure: {entry.cause}{whose}"[:_LONGEST],
            "lastTransitionTime": format_time(now // _SECOND * _SECOND),
        }  # fmt: skip
        item: Any = self._informers.objects[WATCH].items.get((known.namespace, known.name))
        if item is None or admission_of(item) != known:
            return None
        path = self._informers.status_path(WATCH, known.namespace, known.name)
        body = {
            "apiVersion": path.removeprefix("/apis/").partition("/namespaces/")[0],
            "kind": "Workload",
            "metadata": {
                "name": known.name,
                "namespace": known.namespace,
                "resourceVersion": item.metadata.resource_version,
            },
            "status": {"conditions": [condition]},
        }
        try:
            answer = self._client.patch(f"{path}?fieldManager={_MANAGER}&force=true", body, APPLY)
        except ApiError as error:
            return None if error.status in _PASSING else error  # what changed meanwhile is looked at again
        self._informers.wrote(WATCH, answer)
        return None


def _is_due(known: KueueAdmission, entry: EvictionEntry) -> bool:
    at = api.micros(entry.at)
    return (
        known.since is not None
        and not known.is_evicted
        and not known.is_finished
        and at is not None
        and known.since <= at
    )
