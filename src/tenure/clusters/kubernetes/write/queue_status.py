"""Writing what a cycle decided about queues: armed deadlines, and usage for time-based fairness.

Tenure's own queues have it in their status, for each node pool by itself. Those of others have no place for it; theirs
is kept in a ConfigMap of the node pool.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from tenure.clusters.kubernetes.cache.informers import InformerCache
from tenure.clusters.kubernetes.client.requests import ApiError, Client
from tenure.clusters.kubernetes.pool_status import as_part
from tenure.clusters.kubernetes.read.observe import Observed
from tenure.clusters.kubernetes.read.queues import config_map
from tenure.engine.plan import Plan
from tenure.model.fields.records import record_of
from tenure.model.queue import QueueStatus

EVERY = 60_000_000
"""µs between two writes of a queue's usage, which changes all the time."""

_CONFLICT, _GONE = 409, 404
_OWN = "queues"


class _Place(NamedTuple):
    """Where status stands: the store of what is watched, and the path of the object."""

    store: str
    path: str


class QueueStatuses:
    """The writer of queues' status, where it changed.

    Where the answer to a write was lost, nobody knows what stands there until it is read again: what was decided before
    that is not written, else a deadline that was just armed would be put off.
    """

    def __init__(self, client: Client, informers: InformerCache) -> None:
        self.client = client
        self.informers = informers
        options = informers.options
        path = f"/api/v1/namespaces/{options.namespace}/configmaps/{config_map(options.pool)}"
        self._elsewhere = _Place("eviction log", path)
        self._written: dict[str, QueueStatus] = {}
        self._unknown: dict[_Place, set[str]] = {}

    def write(self, plan: Plan, observed: Observed) -> None:
        """Write what changed. What is refused is tried again in the next cycle.

        Raises
        ------
        ApiError
            The API server cannot be asked.
        """
        read_again = self._read_again()
        known = {q.name: q.status for q in observed.cluster.queues}
        elsewhere: dict[str, QueueStatus] = {}
        for name, status in plan.queue_status.items():
            kind = observed.queue_kinds.get(name)
            if kind is None or name in read_again or not self._differs(name, known.get(name), status):
                continue
            if kind == _OWN:
                self._write_own(name, status)
            else:
                elsewhere[name] = status
        if elsewhere:
            self._write_elsewhere(elsewhere)

    def _write_own(self, name: str, status: QueueStatus) -> None:
        place = _Place(_OWN, self.informers.status_path(_OWN, "", name))
        body = {"status": as_part(_plain(status), self.informers.options.pool)}
        try:
            self._send(place, lambda: self.client.patch(place.path, body), {name: status})
        except ApiError as error:
            if error.status not in (_GONE, _CONFLICT):
                raise

    def _write_elsewhere(self, statuses: dict[str, QueueStatus]) -> None:
        place = self._elsewhere
        collection, _, name = place.path.rpartition("/")
        data = {queue: msgspec.json.encode(_plain(status)).decode() for queue, status in statuses.items()}
        try:
            self._send(place, lambda: self.client.patch(place.path, {"data": data}), statuses)
        except ApiError as error:
            if error.status != _GONE:
                raise
            labels = {"tenure.dev/eviction-log": self.informers.options.pool}
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": labels}, "data": data}
            self._send(place, lambda: self.client.create(collection, body), statuses, is_new=True)

    def _send(
        self, place: _Place, send: Callable[[], Any], statuses: dict[str, QueueStatus], *, is_new: bool = False
    ) -> None:
        """Send a write, and note what is known of the queues after it."""
        try:
            answer = send()
        except ApiError as error:
            if not error.is_refusal:
                self._unknown.setdefault(place, set()).update(statuses)
                for name in statuses:
                    self._written.pop(name, None)
            raise
        self.informers.wrote(place.store, answer, is_new=is_new)
        self._written.update(statuses)

    def _read_again(self) -> frozenset[str]:
        """Read what stands where it is not known, for the next cycle to decide by; gives the queues it is about.

        The answer to a patch that changes nothing says it, for which no other right is needed than to write. The
        ConfigMap may have been created by what was lost.
        """
        found: frozenset[str] = frozenset()
        for place, names in sorted(self._unknown.items()):
            found |= names
            try:
                self.informers.wrote(place.store, self.client.patch(place.path, {}), is_new=place.store != _OWN)
            except ApiError as error:
                if error.status != _GONE:
                    raise
            del self._unknown[place]
        return found

    def _differs(self, name: str, known: QueueStatus | None, status: QueueStatus) -> bool:
        before = self._written.get(name) or known
        if before is None:
            return status != QueueStatus()
        if before.quota_preemption != status.quota_preemption or before.usage_at is None or status.usage_at is None:
            return before != status
        return status.usage_at - before.usage_at >= EVERY


def _plain(status: QueueStatus) -> dict[str, Any]:
    """Write a status so that what is gone is removed."""
    empty: dict[str, Any] = {"quotaPreemption": None, "usage": None, "usageAt": None}
    return empty | record_of(QueueStatus).encode(status)
