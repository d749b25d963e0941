"""What evictions gave their beneficiaries: whether these started, when, and what they had of it.

When they would have started without is estimated beside the loop, on the cluster as it was when it was decided. After
a change of leader that is unknown: then what the run lasts is what was gained.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final, NamedTuple

from tenure.engine.otherwise import RoomOverTime
from tenure.history.record import Draft, key_of, payload_of
from tenure.history.who import Who
from tenure.live.records.eviction_records import GrantedEviction
from tenure.live.records.life_records import Ended, Started, holder_of
from tenure.live.records.planned_records import WorkloadsByName
from tenure.live.records.queue_levels import QueueLevels
from tenure.model.amounts import Holder, weighted
from tenure.model.cluster import DEFAULT_QUEUE, Cluster
from tenure.model.workload import Phase, Workload

_PLACED: Final = (Phase.BOUND, Phase.RUNNING, Phase.TERMINATING)
_MOST: Final = 10_000


class _Gain(NamedTuple):
    """A workload for which was evicted first ``at`` (µs), and why; and when it would have started otherwise.

    None: that is unknown.
    """

    at: int
    cause: str
    estimated: Future[int | None] | None


@dataclass(slots=True)
class _Run:
    """A run that began because of an eviction."""

    gain: _Gain
    workload: Workload
    uid: str
    at: int
    ended: int | None = None


class OutcomeRecords:
    """Makes the records. ``pool`` stands in their keys."""

    def __init__(self, pool: str) -> None:
        self.pool = pool
        self._waiting: dict[str, _Gain] = {}
        self._runs: dict[str, list[_Run]] = {}
        self._estimates = ThreadPoolExecutor(1, thread_name_prefix="estimates")

    def begin(self) -> None:
        """Lead from now on: what was known of an earlier term is read off the cluster again."""
        self._waiting, self._runs = {}, {}

    def stop(self) -> None:
        """End."""
        self._estimates.shutdown(wait=False, cancel_futures=True)

    def records(
        self,
        cluster: Cluster,
        queues: QueueLevels,
        workloads: WorkloadsByName,
        granted: Iterable[GrantedEviction],
        life: tuple[Iterable[Started], Iterable[Ended]],
    ) -> Iterator[Draft]:
        """Give the outcomes that are known now."""
        for one in granted:
            self._note(one, cluster, queues, workloads)
        started, ended = life
        for start in started:
            gain = self._waiting.get(start.workload.key)
            if gain is not None and gain.at <= start.at:
                del self._waiting[start.workload.key]
                self._run(gain, start.workload, start.uid, start.at)
        for end in ended:
            for run in self._runs.get(end.key, ()):
                if run.at == end.began and run.ended is None:
                    run.ended = end.at
        for key, runs in list(self._runs.items()):
            drafts = [self._outcome(run, cluster, queues) for run in runs]
            yield from filter(None, drafts)
            self._runs[key] = [run for run, draft in zip(runs, drafts, strict=True) if draft is None]
            if not self._runs[key]:
                del self._runs[key]

    def _run(self, gain: _Gain, workload: Workload, uid: str, at: int) -> None:
        """A run began because of evictions; the first of them counts."""
        runs = self._runs.setdefault(workload.key, [])
        for run in runs:
            if run.at == at:
                run.gain = min(run.gain, gain, key=lambda g: g.at)
                return
        runs.append(_Run(gain, workload, uid, at))

    def _note(self, one: GrantedEviction, cluster: Cluster, queues: QueueLevels, workloads: WorkloadsByName) -> None:
        """Keep the beneficiary of an eviction; the first eviction for a start counts."""
        whom = workloads.get(one.entry.beneficiary)
        if whom is None or one.at < (whom.last_evicted_at or whom.created_at) or len(self._waiting) >= _MOST:
            return  # it is gone, or that was for an earlier start
        if whom.started_at is not None:
            if one.at <= whom.started_at:
                self._run(_Gain(one.at, one.entry.cause, None), whom, whom.uid, whom.started_at)
            return  # else it runs already, and grows
        known = self._waiting.get(whom.key)
        if known is None or known.at > one.at:
            estimated = self._estimates.submit(estimate, cluster, queues, whom) if one.is_fresh else None
            self._waiting[whom.key] = _Gain(one.at, one.entry.cause, estimated)

    def _outcome(self, run: _Run, cluster: Cluster, queues: QueueLevels) -> Draft | None:
        """Give the outcome of a run, once enough is known of it."""
        gain, estimated = run.gain, None
        if gain.estimated is not None:
            if not gain.estimated.done():
                return None
            estimated = None if gain.estimated.exception() is not None else gain.estimated.result()
        if estimated is None and run.ended is None:
            return None  # it is known when it ends what it had of it
        time = max(0, estimated - run.at) if estimated is not None else max(0, (run.ended or run.at) - run.at)
        holder = holder_of(queues, cluster)
        gained = {r: amount * time for r, amount in _asked(run.workload, holder).items() if amount * time}
        payload = payload_of(
            evictedAt=gain.at, estimated=estimated, start=run.at, gained=gained, ran=_ran(run),
            **Who(cluster).named(run.workload),
        )  # fmt: skip
        draft = Draft(
            cluster.now, "outcome", run.workload.key, run.workload.queue or DEFAULT_QUEUE, gain.cause, None,
            weighted(gained, cluster.settings.disruption.cost), payload, str(gain.at),
        )  # fmt: skip
        return draft._replace(key=key_of(self.pool, "outcome", run.uid, gain.at, run.at))


def _ran(run: _Run) -> int | None:
    return None if run.ended is None else run.ended - run.at


def _asked(workload: Workload, holder: Holder) -> Mapping[str, int]:
    found: dict[str, int] = {}
    for task in workload.tasks:
        if task.phase in _PLACED:
            for resource, amount in holder.named(holder.held(task.spec, -1)).items():
                found[resource] = found.get(resource, 0) + amount
    return found


def estimate(cluster: Cluster, queues: QueueLevels, whom: Workload) -> int | None:
    """Say when a workload would have started, had nothing been evicted; None where that is unknown."""
    holder = holder_of(queues, cluster)
    room = RoomOverTime(cluster.nodes, holder.resources)
    nodes = {node.name: number for number, node in enumerate(cluster.nodes)}
    for number, workload in enumerate(cluster.workloads):
        placed = False
        for index, task in enumerate(workload.tasks):
            node = nodes.get(task.node or "", -1)
            if node >= 0 and task.phase in _PLACED:
                room.occupy(number, index, node, holder.asked(task.spec, node))
                placed = True
        if placed and workload.expected_runtime and workload.started_at is not None:
            room.ends[number] = workload.started_at + workload.expected_runtime
    ask: dict[tuple[int, ...], int] = {}
    for task in whom.tasks[: whom.least]:
        amounts = tuple(holder.asked(task.spec, -1))
        ask[amounts] = ask.get(amounts, 0) + 1
    return room.start_without(list(ask.items()), cluster.now)
