"""Recorded days as a trace: what was there when they began, what came, and for how long it ran."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from tenure.history.errors import HistoryError
from tenure.history.query import Query
from tenure.history.record import HistoryRecord
from tenure.history.store import HistoryStore
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
    runs: dict[str, RecordedRun] = {}
    came: dict[str, HistoryRecord] = {}
    asked: dict[str, Mapping[str, Any]] = {}
    with store.reading() as connection:
        for record, _ in store.scan(connection, Query(kinds=("submitted", "evicted", "ended"))):
            key = record.workload or ""
            if record.kind == "submitted":
                asked[key] = record.payload
                runs[key] = RecordedRun()
                if since < record.at < until:
                    came[key] = record
            elif record.kind == "evicted":
                runs.setdefault(key, RecordedRun()).saved += _saved(record, asked.get(key, {}))
            elif record.payload.get("state") != "dropped":
                runs.setdefault(key, RecordedRun()).ran = record.value
    present = tuple(_with_runtime(workload, runs.get(workload.key)) for workload in cluster.workloads)
    jobs = sorted((_job(record, runs[key], since) for key, record in came.items()), key=_order)
    return replace(cluster, now=since, workloads=present, evictions=()), Trace(
        "history", tuple(jobs), records=len(jobs)
    )


def _order(job: TraceJob) -> tuple[int, str]:
    return job.workload.created_at, job.record


def _job(record: HistoryRecord, run: RecordedRun, since: int) -> TraceJob:
    stay = Stay(record.workload or "", record.queue or "", record.at, record.payload)
    model = replace(workload_of(stay), created_at=record.at - since)
    runtime = record.payload.get("expected") if run.ran is None else run.ran + run.saved
    return TraceJob(model, runtime, record.workload or "")


def _with_runtime(model: Workload, run: RecordedRun | None) -> Workload:
    """Let what runs already end when it did: the simulator ends it when it is expected to."""
    if run is None or run.ran is None:
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
