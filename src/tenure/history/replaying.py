"""Recorded days as a trace: what was there when they began, what came, and for how long it ran."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from tenure.history.errors import HistoryError
from tenure.history.query import Query
from tenure.history.record import HistoryRecord
from tenure.history.store import HistoryStore, in_batches
from tenure.history.views import Stay, cluster_then, workload_of
from tenure.model.cluster import Cluster
from tenure.model.workload import Workload
from tenure.simulator.traces.records import Trace, TraceJob


@dataclass(slots=True)
class RecordedRun:
    """How long a workload needs, as far as its records say, in µs: its last run, and what it had saved before."""

    saved: int = 0
    ran: int | None = None


def recorded_days(store: HistoryStore, since: int, until: int) -> tuple[Cluster, Trace]:
    """Give the cluster as it was at ``since``, and as a trace what came until ``until`` (µs since the epoch).

    A workload that did not end runs, in the replay, for what it was expected to, or for ever where it said nothing.
    What it asks for is told by resource; constraints on nodes, checkpoints and grace periods are not recorded.

    Raises
    ------
    HistoryError
        Nothing is known of the cluster at that time, or the store cannot be read.
    """
    cluster = cluster_then(store, since)
    if cluster is None:
        raise HistoryError(store.place, "does not say what cluster it is of, so it cannot be played again")
    names = [workload.key for workload in cluster.workloads]
    runs = _Runs(since, until, names)
    with store.reading() as connection:
        for some in in_batches(names):  # what they had saved before
            for record, _ in store.scan(connection, Query(kinds=_TOLD, workloads=some, until=since + 1)):
                runs.take(record)
        for record, _ in store.scan(connection, Query(kinds=_TOLD, since=since + 1)):
            runs.take(record)
    present = tuple(_with_runtime(workload, runs.of[workload.key]) for workload in cluster.workloads)
    jobs = sorted((_job(record, runs.of[key], since) for key, record in runs.came.items()), key=_order)
    return replace(cluster, now=since, workloads=present, evictions=()), Trace(
        "history", tuple(jobs), records=len(jobs)
    )


class _Runs:
    """Follows what records say of runs, and which workloads come in a window (µs since the epoch)."""

    def __init__(self, since: int, until: int, present: Iterable[str]) -> None:
        self.since, self.until = since, until
        self.of = {key: RecordedRun() for key in present}
        self.came: dict[str, HistoryRecord] = {}
        self._asked: dict[str, Mapping[str, Any]] = {}
        self._over: set[str] = set()

    def take(self, record: HistoryRecord) -> None:
        """Take the next record; those of workloads that came after the window are passed over."""
        key = record.workload or ""
        if record.kind == "submitted":
            self._submitted(key, record)
        elif key not in self.of or key in self._over:
            return
        elif record.kind == "evicted":
            self.of[key].saved += _saved(record, self._asked.get(key, {}))
        elif record.payload.get("state") != "dropped":
            self.of[key].ran = record.value

    def _submitted(self, key: str, record: HistoryRecord) -> None:
        if record.at >= self.until:
            self._over.add(key)
            return
        self.of[key], self._asked[key] = RecordedRun(), record.payload
        if record.at > self.since:
            self.came[key] = record


_TOLD: Final = ("submitted", "evicted", "ended")
"""Kinds of records that say how long a workload needs."""


def _order(job: TraceJob) -> tuple[int, str]:
    return job.workload.created_at, job.record


def _job(record: HistoryRecord, run: RecordedRun, since: int) -> TraceJob:
    stay = Stay(record.workload or "", record.queue or "", record.at, record.payload)
    model = replace(workload_of(stay), created_at=record.at - since)
    runtime = record.payload.get("expected") if run.ran is None else run.ran + run.saved
    return TraceJob(model, runtime, record.workload or "")


def _with_runtime(model: Workload, run: RecordedRun) -> Workload:
    """Let what runs already end when it did: the simulator ends it when it is expected to."""
    if run.ran is None:
        return model
    return replace(model, expected_runtime=max(1, run.ran + run.saved))


def _saved(record: HistoryRecord, asked: Mapping[str, Any]) -> int:
    """Give how much of a run's time an eviction did not destroy: of one task, for all are saved together."""
    specs = asked.get("specs", ())
    saved = record.payload.get("saved", {})
    for _, amounts, *_rest in specs[:1]:
        for resource, amount in amounts.items():
            tasks = max(1, int(asked.get("tasks", 1)))
            return int(saved.get(resource, 0) // amount // tasks) if amount else 0
    return 0
