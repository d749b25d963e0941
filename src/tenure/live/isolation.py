"""Faults cost their own workload only: what cannot be decided about, or cannot be written, is set aside for a while.

A workload that makes deciding fail is found by trying: the others decide as without it. It holds the room that it has,
waits with the rest of what it asks for, and is tried again after a pause that doubles each time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Generic, Literal, TypeVar

from tenure.model.cluster import Cluster
from tenure.model.values.resources import GPU
from tenure.model.workload import Phase, Task, TaskSpec, Workload

T = TypeVar("T")

Stage = Literal["read", "decide", "write", "tell"]
"""Where something failed."""

FIRST_PAUSE: Final = 1_000_000
LONGEST_PAUSE: Final = 300_000_000
"""µs for which a workload is set aside at first, and at the most."""

MOST_CULPRITS: Final = 8
"""Workloads that are looked for in one cycle; then the namespaces that they are in are set aside whole."""

HELD: Final = "tenure-held"
"""Scheduler of what holds room and belongs to no queue."""

_DEPTHS: Final = (1, 2, 3)
_FOREIGN: Final = 2
_PLACED = frozenset({Phase.BOUND, Phase.RUNNING, Phase.TERMINATING})


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that failed for one workload (empty: for none of them), and that should not."""

    stage: Stage
    workload: str
    error: BaseException


class Containment:
    """The limit of what a failure costs: it is told, and what it is about is left out.

    ``fenced`` is what is raised where this process may write no more.
    """

    def __init__(self, failed: Callable[[Fault], None], fenced: type[Exception]) -> None:
        self._failed = failed
        self._fenced = fenced

    def alone(self, stage: Stage, workload: str, do: Callable[[], Any]) -> Any:
        """Do something; where it fails, and not for want of a lease or an API server, tell of it and give None."""
        try:
            return do()
        except (OSError, self._fenced):
            raise
        except Exception as error:  # noqa: BLE001  it costs what it is about, and is told with its place
            self._failed(Fault(stage, workload, error))
            return None


@dataclass(slots=True)
class _Aside:
    until: int
    pause: int
    why: str
    depth: int = 1


@dataclass(slots=True)
class Quarantine:
    """Workloads (by key and uid) that are set aside, until when (µs since the epoch), and why.

    ``depth`` says how far: with nothing but what it holds (1), as something of another scheduler's (2), or as one of
    which not even that can be taken in (3).
    """

    _aside: dict[tuple[str, str], _Aside] = field(default_factory=dict)

    def add(self, workload: Workload, now: int, why: str, depth: int = 1) -> None:
        """Set a workload aside, for twice as long as the last time if that was a short while ago."""
        key = workload.key, workload.uid
        known = self._aside.get(key)
        pause = FIRST_PAUSE if known is None else min(2 * known.pause, LONGEST_PAUSE)
        self._aside[key] = _Aside(now + pause, pause, why, depth)

    def apply(self, cluster: Cluster) -> Cluster:
        """Give a cluster with what is set aside now as it is decided about; what is well again is forgotten."""
        now = cluster.now
        self._aside = {k: a for k, a in self._aside.items() if now < a.until + 2 * a.pause}
        if not self._aside:
            return cluster
        workloads = tuple(self._seen(w, now) for w in cluster.workloads)
        return replace(cluster, workloads=workloads)

    def _seen(self, workload: Workload, now: int) -> Workload:
        aside = self._aside.get((workload.key, workload.uid))
        return workload if aside is None or now >= aside.until else reduced(workload, aside.depth)

    def why(self, workload: Workload, now: int) -> str:
        """Say why a workload is set aside; nothing where it is not."""
        aside = self._aside.get((workload.key, workload.uid))
        return "" if aside is None or now >= aside.until else aside.why

    def wake(self, now: int) -> int | None:
        """Give when the next one is tried again, in µs since the epoch."""
        return min((a.until for a in self._aside.values() if a.until > now), default=None)

    def count(self, now: int) -> int:
        """Give how many are set aside."""
        return sum(now < a.until for a in self._aside.values())


def reduced(workload: Workload, depth: int) -> Workload:
    """Give a workload with nothing but what it holds: it starts nothing, and its tasks keep their numbers."""
    tasks = tuple(_reduced(task, bare=depth > _FOREIGN) for task in workload.tasks)
    made = Workload(
        name=workload.name,
        namespace=workload.namespace,
        uid=workload.uid,
        queue=workload.queue,
        priority=workload.priority,
        preemptible=workload.preemptible,
        min_member=1,
        tasks=tasks,
        created_at=workload.created_at,
        started_at=workload.started_at,
        scheduler_name=workload.scheduler_name,
    )
    return made if depth == 1 else replace(made, scheduler_name=HELD)


def _reduced(task: Task, *, bare: bool) -> Task:
    requests = {} if bare else dict(task.spec.requests)
    if task.spec.gpu_share is not None and not bare:
        requests[GPU] = task.spec.gpu_share.devices
    spec = TaskSpec(requests=tuple(sorted(requests.items())), labels=() if bare else task.spec.labels)
    phase = Phase.GATED if task.phase is Phase.PENDING else task.phase
    kept = Task(name=task.name, spec=spec, phase=phase, node=task.node, created_at=task.created_at)
    if task.phase not in _PLACED:
        return kept
    return replace(
        kept, started_at=task.started_at, terminating_since=task.terminating_since, grace_period=task.grace_period
    )


class Isolation(Generic[T]):
    """Decides so that a workload that makes deciding fail is left out of it.

    ``decide`` decides on a cluster; of what ``attempt`` does nothing may stay.
    """

    def __init__(
        self,
        decide: Callable[[Cluster], T],
        attempt: Callable[[Cluster], object],
        told: Callable[[Fault], None] = lambda _: None,
    ) -> None:
        self._decide = decide
        self._attempt = attempt
        self._told = told
        self.quarantine = Quarantine()

    def decided(self, cluster: Cluster) -> tuple[T, Cluster]:
        """Give what was decided, and the cluster as it was decided about.

        Raises
        ------
        Exception
            It fails whatever is set aside: then it is no workload's fault.
        """
        seen = self.quarantine.apply(cluster)
        try:
            return self._decide(seen), seen
        except Exception as error:  # noqa: BLE001  found out below whose fault it is; if nobody's, it is raised again
            first = error
        for depth in _DEPTHS:
            found = self._without_culprits(cluster, seen, first, depth)
            if found is not None:
                return found
        raise first

    def _without_culprits(
        self, cluster: Cluster, seen: Cluster, error: Exception, depth: int
    ) -> tuple[T, Cluster] | None:
        everything = _with(seen, range(len(seen.workloads)), depth)
        if self._failure(everything) is not None:
            return None
        culprits: set[int] = set()
        failure: Exception | None = error
        while failure is not None:
            if len(culprits) >= MOST_CULPRITS:
                culprits |= _neighbours(seen.workloads, culprits)
                failure = self._failure(_with(seen, culprits, depth))
                if failure is not None:
                    culprits = set(range(len(seen.workloads)))
                break
            found = self._culprit(seen, culprits, depth)
            culprits.add(found)
            self._told(Fault("decide", seen.workloads[found].key, failure))
            failure = self._failure(_with(seen, culprits, depth))
        why = f"deciding about it failed ({type(error).__name__}); it is tried again later"
        for number in sorted(culprits):
            self.quarantine.add(cluster.workloads[number], cluster.now, why, depth)
        kept = _with(seen, culprits, depth)
        return self._decide(kept), kept

    def _culprit(self, seen: Cluster, known: set[int], depth: int) -> int:
        """Give the first workload with which, and all before it, deciding fails."""
        low, high = 0, len(seen.workloads)
        while high - low > 1:
            middle = (low + high) // 2
            if self._failure(_with(seen, {*known, *range(middle, len(seen.workloads))}, depth)) is None:
                low = middle
            else:
                high = middle
        return low

    def _failure(self, cluster: Cluster) -> Exception | None:
        try:
            self._attempt(cluster)
        except Exception as error:  # noqa: BLE001  what is asked is whether it fails
            return error
        return None


def _with(cluster: Cluster, aside: Iterable[int], depth: int) -> Cluster:
    out = frozenset(aside)
    return replace(
        cluster, workloads=tuple(reduced(w, depth) if n in out else w for n, w in enumerate(cluster.workloads))
    )


def _neighbours(workloads: Sequence[Workload], culprits: set[int]) -> set[int]:
    """Give all workloads of the namespaces of some."""
    spaces = {workloads[n].namespace for n in culprits}
    return {n for n, w in enumerate(workloads) if w.namespace in spaces}
