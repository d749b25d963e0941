"""Writing what a cycle decided about queues: armed deadlines, and usage for time-based fairness.

Tenure's own queues have it in their status, for each node pool by itself. Those of others have no place for it; theirs
is kept in a ConfigMap of the node pool.
"""

from __future__ import annotations

from typing import Any

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


class QueueStatuses:
    """The writer of queues' status, where it changed.

    Where the answer to a write was lost, nobody knows what stands there until the queue is read again: what was decided
    before that is not written, else a deadline that was just armed would be put off.
    """

    def __init__(self, client: Client, informers: InformerCache) -> None:
        self.client = client
        self.informers = informers
        self._written: dict[str, QueueStatus] = {}
        self._unknown: set[str] = set()

    def write(self, plan: Plan, observed: Observed) -> None:
        """Write what changed. What is refused is tried again in the next cycle.

        Raises
        ------
        ApiError
            The API server cannot be asked.
        """
        read_again = self._read_again()
        known = {q.name: q.status for q in observed.cluster.queues}
        elsewhere: dict[str, Any] = {}
        for name, status in plan.queue_status.items():
            if name in read_again or not self._differs(name, known.get(name), status):
                continue
            plain = _plain(status)
            if observed.queue_kinds.get(name) == "queues":
                try:
                    part = as_part(plain, self.informers.options.pool)
                    answer = self.client.patch(self.informers.status_path("queues", "", name), {"status": part})
                    self.informers.wrote("queues", answer)
                except ApiError as error:
                    if error.status not in (_GONE, _CONFLICT):
                        self._note_failure(name, error)
                        raise
                    continue
            elif name in observed.queue_kinds:
                elsewhere[name] = plain
            self._written[name] = status
        if elsewhere:
            self._write_elsewhere(elsewhere)

    def _note_failure(self, name: str, error: ApiError) -> None:
        if not error.is_refusal:
            self._unknown.add(name)
            self._written.pop(name, None)

    def _read_again(self) -> frozenset[str]:
        """Read the queues of which it is not known what stands there, for the next cycle to decide by.

        The answer to a patch that changes nothing says it, for which no other right is needed than to write.
        """
        found = frozenset(self._unknown)
        for name in sorted(found):
            try:
                self.informers.wrote("queues", self.client.patch(self.informers.status_path("queues", "", name), {}))
            except ApiError as error:
                if error.status != _GONE:
                    raise
            self._unknown.remove(name)
        return found

    def _differs(self, name: str, known: QueueStatus | None, status: QueueStatus) -> bool:
        before = self._written.get(name) or known
        if before is None:
            return status != QueueStatus()
        if before.quota_preemption != status.quota_preemption or before.usage_at is None or status.usage_at is None:
            return before != status
        return status.usage_at - before.usage_at >= EVERY

    def _write_elsewhere(self, statuses: dict[str, Any]) -> None:
        options = self.informers.options
        path = f"/api/v1/namespaces/{options.namespace}/configmaps"
        name = config_map(options.pool)
        data = {queue: msgspec.json.encode(plain).decode() for queue, plain in statuses.items()}
        try:
            self.informers.wrote("eviction log", self.client.patch(f"{path}/{name}", {"data": data}))
        except ApiError as error:
            if error.status != _GONE:
                raise
            labels = {"tenure.dev/eviction-log": options.pool}
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": labels}, "data": data}
            self.informers.wrote("eviction log", self.client.create(path, body), is_new=True)


def _plain(status: QueueStatus) -> dict[str, Any]:
    """Write a status so that what is gone is removed."""
    empty: dict[str, Any] = {"quotaPreemption": None, "usage": None, "usageAt": None}
    return empty | record_of(QueueStatus).encode(status)
