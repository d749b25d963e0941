"""Recorded days as a trace: what was there when they began, what came, and for how long it ran."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from tenure.history.errors import HistoryError
from tenure.history.query import Query
from tenure.history.reading.views import Stay, cluster_then, stays_at, workload_of
from tenure.history.record import HistoryRecord
from tenure.history.store import HistoryStore
from tenure.history.writing.said import CHECKPOINT, restart_of
from tenure.model.cluster import Cluster
from tenure.simulator.traces.records import Trace, TraceJob


@dataclass(slots=True)
class RecordedRun:
    """How long a workload needs, as far as its records say. Times and durations in µs.

    ``fields`` is what it said when it came; ``ran`` how long its last run was, which begins with ``restart`` where one
    before was evicted; ``kept`` what those before had done and saved; ``started`` when it began.
    """

    fields: Mapping[str, Any]
    started: int | None = None
    ran: int | None = None
    restart: int = 0
    kept: int = 0
    evicted_at: int | None = None
    evicted: int = 0
    saved: dict[str, int] = field(default_factory=dict)

    @property
    def needs(self) -> int | None:
        """How long it needs without an eviction; None where it did not end."""
        return None if self.ran is None else max(1, self.ran - self.restart + self.kept)

    def take(self, record: HistoryRecord) -> None:
        """Take the next record of it."""
        if record.kind == "evicted":
            self._evicted(record)
        elif record.kind == "started":
            self.started = record.at
            if self.evicted_at is not None and record.payload.get("again"):
                self._again()
        elif record.payload.get("state") != "dropped":
            self.ran = record.value

    def replaced(self, at: int) -> None:
        """Another one has its name from ``at`` on (µs since the epoch): it is over, also where no record says so."""
        if self.ran is None:
            self.ran = 0 if self.started is None else at - self.started

    def _evicted(self, record: HistoryRecord) -> None:
        """Tasks that are evicted at one time go together."""
        if record.at != self.evicted_at:
            self.evicted_at, self.evicted, self.saved = record.at, 0, {}
        self.evicted += 1
        for resource, amount in record.payload.get("saved", {}).items():
            self.saved[resource] = self.saved.get(resource, 0) + amount

    def _again(self) -> None:
        """It starts again: what the run before had saved, beyond its own restart, has not to be done again."""
        ask, tasks = self.fields.get("ask", {}), max(1, int(self.fields.get("tasks", 1)))
        resource = next((name for name, amount in ask.items() if amount), None)
        saved = 0 if resource is None else self.saved.get(resource, 0) * tasks // (ask[resource] * self.evicted)
        self.kept += max(0, saved - self.restart)
        self.restart, self.evicted_at = restart_of(self.fields), None


def recorded_days(store: HistoryStore, since: int, until: int) -> tuple[Cluster, Trace]:
    """Give the cluster as it was before ``since``, and as a trace what came from then until ``until`` (µs, left out).

    A workload that did not end runs, in the replay, for what it was expected to, or for ever where it said nothing.
    What it asks for is told by resource, with what it says of checkpoints and grace periods; constraints on nodes are
    not recorded. A note of the trace says so where an earlier version recorded less. Of workloads that had one name
    after each other all are played; those after the first are called ``NAME.2``, ``NAME.3`` and so on.

    Raises
    ------
    HistoryError
        Nothing is known of the cluster at that time, or the store cannot be read.
    """
    cluster = cluster_then(store, since, before=True)
    if cluster is None:
        raise HistoryError(store.place, "does not say what cluster it is of, so it cannot be played again")
    with store.reading() as connection:
        runs = _Runs(since, until, stays_at(store, connection, since - 1))
        for record, _ in store.scan(connection, Query(kinds=_TOLD, since=since)):
            runs.take(record)
    jobs = sorted((_job(key, *came, since) for key, came in runs.came.items()), key=_came_at)
    present = {w.key: needs for w in cluster.workloads if (needs := runs.present[w.key].needs) is not None}
    trace = Trace("history", tuple(jobs), records=len(jobs), present=present, notes=runs.notes())
    return replace(cluster, now=since, evictions=()), trace


class _Runs:
    """Follows what records say of runs, and which workloads come in a window (µs since the epoch).

    ``present`` are those that are there when it begins. For how long they had run is their past: a replay
    begins with what was left.
    """

    def __init__(self, since: int, until: int, present: Mapping[str, Stay]) -> None:
        self.since, self.until = since, until
        self.present = {key: RecordedRun(stay.fields, stay.started) for key, stay in present.items()}
        self.came: dict[str, tuple[HistoryRecord, RecordedRun]] = {}
        self._last = dict(self.present)
        self._again: Counter[str] = Counter()

    def take(self, record: HistoryRecord) -> None:
        """Take the next record; those of workloads that came after the window are passed over."""
        key = record.workload or ""
        if record.kind == "submitted":
            self._submitted(key, record)
        elif key in self._last:
            self._last[key].take(record)

    def _submitted(self, key: str, record: HistoryRecord) -> None:
        """Another one has this name from now on."""
        before = self._last.pop(key, None)
        if before is not None:
            before.replaced(record.at)
        if record.at < self.until:
            run = self._last[key] = RecordedRun(record.payload)
            self.came[self._free(key)] = record, run

    def _free(self, key: str) -> str:
        """Give a name as it is, or with a number where it is taken."""
        name = key
        while name in self.came or name in self.present:
            self._again[key] += 1
            name = f"{key}.{self._again[key] + 1}"
        return name

    def notes(self) -> tuple[str, ...]:
        """Say of how many workloads less is known than is recorded now."""
        runs = [*self.present.values(), *(run for _, run in self.came.values())]
        count = sum(CHECKPOINT not in run.fields for run in runs)
        whose = f"checkpoints and grace periods of {count:,} of the {len(runs):,} workloads"
        note = f"{whose} are not recorded (earlier versions of Tenure did not); they are played as if they had none"
        return (note,) if count else ()


_TOLD: Final = ("submitted", "started", "evicted", "ended")
"""Kinds of records that say how long a workload needs."""


def _came_at(job: TraceJob) -> int:
    """Give when a job comes; those that come at one time stay in the order in which they were recorded."""
    return job.workload.created_at


def _job(key: str, record: HistoryRecord, run: RecordedRun, since: int) -> TraceJob:
    stay = Stay(key, record.queue or "", record.at, record.payload)
    model = replace(workload_of(stay), created_at=record.at - since)
    return TraceJob(model, record.payload.get("expected") if run.needs is None else run.needs, key)
