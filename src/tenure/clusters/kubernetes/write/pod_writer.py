"""Writes about single pods, several at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeVar

from tenure.clusters.kubernetes.bounded import brief
from tenure.clusters.kubernetes.cache.informers import InformerCache
from tenure.clusters.kubernetes.cache.pod_records import PodRecord
from tenure.clusters.kubernetes.client.leader import NotLeaderError
from tenure.clusters.kubernetes.client.requests import STRATEGIC, ApiError, Client
from tenure.clusters.kubernetes.read.workloads import ACTIVE
from tenure.clusters.kubernetes.write import patches
from tenure.clusters.kubernetes.write.outcome import Outcome
from tenure.clusters.record import BROKEN
from tenure.engine.plan import PlanStep

T = TypeVar("T")

IN_FLIGHT: Final = 16
"""Writes at a time."""

CONFLICT: Final = 409


class PodWriter:
    """The writer of what is about single pods: several writes at a time, and one that fails takes no other with it.

    ``allowed`` is asked before each write, and raises where this process may write no more.
    """

    def __init__(self, client: Client, informers: InformerCache, in_flight: int, allowed: Callable[[], None]) -> None:
        self.client = client
        self.informers = informers
        self.allowed = allowed
        self.pool = ThreadPoolExecutor(in_flight, thread_name_prefix="write")

    def close(self) -> None:
        """Finish what is under way, and begin nothing more."""
        self.pool.shutdown(wait=True, cancel_futures=True)

    def each(
        self, write: Callable[[PlanStep], None], steps: Sequence[PlanStep], outcome: Outcome, *, notes_done: bool = True
    ) -> None:
        """Make one write for each step, several at a time; what is refused is noted, and the others go on."""
        for step, error in zip(steps, self._in_parallel(lambda s: self.attempt(write, s), steps), strict=True):
            if error is not None or notes_done:
                outcome.note(step, error)

    def attempt(self, write: Callable[[PlanStep], None], step: PlanStep) -> ApiError | None:
        """Make the write of a step; gives why it was refused."""
        self.allowed()
        try:
            write(step)
        except ApiError as error:
            return error
        except NotLeaderError:
            raise
        except Exception as error:  # noqa: BLE001  one step that cannot be written takes no other with it
            return broken(error)
        return None

    def _in_parallel(self, write: Callable[[PlanStep], T], steps: Sequence[PlanStep]) -> Iterable[T]:
        return map(write, steps) if len(steps) == 1 else self.pool.map(write, steps)

    def patch(self, pod: PodRecord, body: dict[str, Any]) -> bytes:
        """Change the status, labels or annotations of a pod; gives it as it is then."""
        return self.client.patch(patches.pod_path(pod, "status"), body, STRATEGIC)

    def patch_running(self, pod: PodRecord, body: dict[str, Any]) -> bytes:
        """Change what runs, whatever its owner has changed in it meanwhile: who keeps changing it escapes nothing."""
        try:
            return self.patch(pod, body)
        except ApiError as error:
            if not self.still_runs(pod, error):
                raise
        return self.patch(pod, patches.whatever_version(body))

    def still_runs(self, pod: PodRecord, error: ApiError) -> bool:
        """Whether a conflict is about nothing that was decided on: the same pod runs on where it ran."""
        if error.status != CONFLICT:
            return False
        with self.informers.pods.lock:
            now = self.informers.pods.records.get(pod.key)
        return (
            now is not None
            and now.uid == pod.uid
            and not now.is_going
            and now.task.phase in ACTIVE
            and now.task.node == pod.task.node
        )


def broken(error: Exception) -> ApiError:
    """Give an error of this process as one of a write."""
    return ApiError(0, BROKEN, brief(error))
