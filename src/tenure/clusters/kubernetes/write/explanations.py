"""Writing on pods why they wait, in a thread of its own: no decision waits for that."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Final, NamedTuple

from tenure.clusters.kubernetes.cache.informers import InformerCache
from tenure.clusters.kubernetes.cache.pod_records import PodRecord
from tenure.clusters.kubernetes.client.leader import NotLeaderError
from tenure.clusters.kubernetes.client.requests import STRATEGIC, ApiError, Client
from tenure.clusters.kubernetes.write import patches
from tenure.clusters.kubernetes.write.writing_thread import WritingThread
from tenure.model.workload import Phase

MOST_WAITING: Final = 20_000
"""So many explanations may wait to be written; further ones are left to a later cycle."""


class _Explanation(NamedTuple):
    pod: PodRecord
    reason: str
    message: str
    now: int


class Explanations:
    """The writer of explanations. Of one pod the last one counts; a pod that waits no longer is left alone."""

    def __init__(
        self, client: Client, informers: InformerCache, *, failed: Callable[[BaseException], None] = lambda _: None
    ) -> None:
        self._client = client
        self._informers = informers
        self._due: dict[str, _Explanation] = {}
        self._lock = threading.Lock()
        self.thread = WritingThread("explanations", self._write_next, failed, again=0.0)  # one that fails holds none up

    def tell(self, pod: PodRecord, reason: str, message: str, now: int) -> None:
        """Say why a pod waits, at ``now`` (µs since the epoch)."""
        with self._lock:
            if pod.uid in self._due or len(self._due) < MOST_WAITING:
                self._due[pod.uid] = _Explanation(pod, reason, message, now)
        self.thread.wake()

    def _write_next(self) -> None:
        said = self._next()
        if said is not None:
            self.thread.wake()
            with suppress(NotLeaderError):  # who leads now says it
                self.write(*said)

    def _next(self) -> _Explanation | None:
        with self._lock:
            return self._due.pop(next(iter(self._due))) if self._due else None

    def write(self, pod: PodRecord, reason: str, message: str, now: int) -> None:
        """Write on a pod why it waits, unless it was bound or has changed meanwhile."""
        pods = self._informers.pods
        with pods.lock:
            seen = pods.seen(pod.key) if pod.key in pods.records else None
        if seen is None or seen.uid != pod.uid or seen.task.phase is not Phase.PENDING:
            return
        if seen.waits == (reason, message):
            return
        try:
            self._client.patch(patches.pod_path(seen, "status"), patches.waiting(seen, reason, message, now), STRATEGIC)
        except ApiError:
            return  # why something waits is worth no second try; who is still silent is looked at again
