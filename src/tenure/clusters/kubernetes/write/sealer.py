"""Writing seals: what runs gets on record where it is charged, in a thread of its own.

A pod is bound without waiting for that; until it shows, this process knows what it decided. A pod that was bound by
somebody who ended before writing its seal, or before there were seals, is sealed as it is seen first.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from tenure.clusters.kubernetes.cache.informers import InformerCache
from tenure.clusters.kubernetes.cache.pod_records import PodRecord
from tenure.clusters.kubernetes.client.requests import STRATEGIC, ApiError, Client
from tenure.clusters.kubernetes.read.judging import UNKNOWN
from tenure.clusters.kubernetes.read.observe import Observed
from tenure.clusters.kubernetes.seals import Seal
from tenure.clusters.kubernetes.write import patches
from tenure.clusters.kubernetes.write.placing import sealed_at_bind
from tenure.clusters.kubernetes.write.writing_thread import AGAIN_SECONDS, WritingThread


class Sealer:
    """Seals pods that run. ``failed`` is told of what should not happen.

    A seal that was refused, since its pod changed meanwhile, is written anew a second later.
    """

    def __init__(
        self, client: Client, informers: InformerCache, *, failed: Callable[[BaseException], None] = lambda _: None
    ) -> None:
        self._client = client
        self._informers = informers
        self._told: Observed | None = None
        self.thread = WritingThread("seals", self._seal_told, failed)

    def tell(self, observed: Observed) -> None:
        """Say what was observed last."""
        self._told = observed
        if self._informers.pods.unsealed:
            self.thread.wake()

    def _seal_told(self) -> None:
        told = self._told
        if told is not None and self.seal(told):
            self.thread.rest(AGAIN_SECONDS)
            self.thread.wake()

    def seal(self, observed: Observed) -> int:
        """Seal what is not sealed yet; gives how many could not be."""
        pods = self._informers.pods
        with pods.lock:
            due = [pods.records[key] for key in pods.unsealed if key in pods.records]
            known = {record.uid: pods.seals.get(record.uid) for record in due}
        if not due:
            return 0
        unknown = {uid for uid, seal in known.items() if seal is None}
        seen = _places(observed, unknown) if unknown else {}
        workloads = observed.workloads if unknown else {}
        left = 0
        for pod in due:
            seal = known[pod.uid]
            if seal is None and pod.uid in seen:
                key, number = seen[pod.uid]
                workload = workloads[key]
                if workload.queue != UNKNOWN and pod.scheduler == workload.scheduler_name:
                    task, start = workload.tasks[number], workload.started_at
                    start = None if start == pod.task.started_at else start  # it began with this very pod
                    seal = sealed_at_bind(pod, workload, task.devices, start)
            if seal is not None and not self.thread.is_stopped:
                left += not self._write(pod, seal, observed.cluster.now)
        return left

    def _write(self, pod: PodRecord, seal: Seal, now: int) -> bool:
        shown = pod.sealed
        if shown is not None and shown is not seal:
            seal = msgspec.structs.replace(seal, notice=shown.notice, stale=shown.stale)
        try:
            self._client.patch(patches.pod_path(pod, "status"), patches.sealing(pod, seal, now), STRATEGIC)
        except ApiError as error:
            return error.status in _FOR_GOOD
        return True


def _places(observed: Observed, uids: set[str]) -> dict[str, tuple[str, int]]:
    """Give by uid the workload of pods, and their number in it."""
    pods = ((pod.uid, key, n) for key, listed in observed.pods.items() for n, pod in enumerate(listed))
    return {uid: (key, number) for uid, key, number in pods if uid in uids}


_FOR_GOOD = frozenset({404, 422})
"""Answers after which there is nothing to write any more."""
