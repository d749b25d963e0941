"""What pages and tables ask of a history: the cluster at a moment, who waited longest, queues over time, evictions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from sqlalchemy import Connection, func, select

from tenure.history.query import Query
from tenure.history.record import HistoryRecord
from tenure.history.rollup import DAY
from tenure.history.schema import records_table
from tenure.history.statement import clipped
from tenure.history.store import HistoryStore, months_between, months_of
from tenure.model.cluster import Cluster
from tenure.model.duration import format_time
from tenure.model.load import cluster_of
from tenure.model.resources import GPU, MILLI
from tenure.model.workload import GpuShare, Phase, Task, TaskSpec, Workload

LIFE = ("submitted", "started", "placed", "ended", "evicted")
"""Kinds of records that say where a workload is."""


@dataclass(slots=True)
class Stay:
    """A workload that is there at a moment: what it asked for, and where its tasks are. Times in µs."""

    key: str
    queue: str
    submitted: int
    fields: Mapping[str, Any]
    started: int | None = None
    tasks: dict[str, tuple[str, tuple[int, ...]]] = field(default_factory=dict)


class WorkloadRow(NamedTuple):
    """A workload over a window: when it came, first started and ended (µs, None: not), and how long it waited."""

    workload: str
    queue: str
    submitted: int
    started: int | None
    ended: int | None
    waited: int
    evictions: int


class EvictionRow(NamedTuple):
    """An eviction with what came of it.

    ``gained`` (millionths of a weighted resource-second) and ``paid`` are None where nobody knows yet.
    """

    record: HistoryRecord
    gained: int | None
    paid: bool | None


class UsageSeries(NamedTuple):
    """What a queue held (amounts, GPUs in milli-GPU) at each of ``at`` (µs, the begin of a step); by resource."""

    queue: str
    at: list[int]
    held: dict[str, list[float]]
    within: dict[str, list[float]]
    capacity: dict[str, list[float]]


def version_of_content(store: HistoryStore) -> str:
    """Give a text that changes when something was appended or taken out."""
    with store.reading() as connection:
        marks = [
            (month, connection.execute(select(func.max(records_table(month).c.id))).scalar())
            for month in months_of(connection)
        ]
    return ";".join(f"{month}:{number or 0}" for month, number in marks)


def cluster_then(store: HistoryStore, at: int) -> Cluster | None:
    """Give the cluster as it was at a time: nodes, queues, settings, and the workloads with their places.

    What tasks ask for is told by resource; constraints on nodes are not recorded. None where nothing is known of it.
    """
    with store.reading() as connection:
        origin = origin_at(store, connection, at)
        stays = stays_at(store, connection, at)
    if origin is None:
        return None
    cluster = cluster_of({**origin, "now": format_time(at)}, store.place)
    return replace(cluster, workloads=tuple(workload_of(stay) for _, stay in sorted(stays.items())))


def origin_at(store: HistoryStore, connection: Connection, at: int) -> dict[str, Any] | None:
    """Give the cluster as its file would say it, without workloads, as it was last told of before a time."""
    for record, _ in store.scan(connection, Query(kinds=("origin",), until=at + 1), limit=1, newest=True):
        found = record.payload.get("cluster")
        return found if isinstance(found, dict) else None
    for record, _ in store.scan(connection, Query(kinds=("origin",)), limit=1):
        found = record.payload.get("cluster")
        return found if isinstance(found, dict) else None
    return None


def stays_at(store: HistoryStore, connection: Connection, at: int) -> dict[str, Stay]:
    """Give by name the workloads that were there at a time."""
    found: dict[str, Stay] = {}
    for record, _ in store.scan(connection, Query(kinds=LIFE, until=at + 1)):
        live_on(found, record)
    return found


def live_on(found: dict[str, Stay], record: HistoryRecord) -> None:
    """Let one record of `LIFE` happen to the workloads that are there."""
    key, fields = record.workload or "", record.payload
    if record.kind == "submitted":
        found[key] = Stay(key, record.queue or "", record.at, fields)
        return
    stay = found.get(key)
    if stay is None:
        stay = found[key] = Stay(key, record.queue or "", record.at, {})
    if record.kind == "ended":
        del found[key]
    elif record.kind == "evicted":
        stay.tasks.pop(str(fields.get("task")), None)
        if not stay.tasks:
            stay.started = None
    else:
        if record.kind == "started":
            stay.started = record.at
        for name, node, devices in fields.get("tasks", ()):
            stay.tasks[name] = node, tuple(devices)


def workload_of(stay: Stay) -> Workload:
    """Make the workload of a stay."""
    namespace, _, name = stay.key.partition("/")
    specs = [spec for number, *rest in stay.fields.get("specs", ()) for spec in [_spec(*rest)] * number]
    names = list(stay.tasks) + [made for i in range(len(specs)) if (made := f"{name}-{i}") not in stay.tasks]
    specs += [specs[-1] if specs else TaskSpec()] * (len(stay.tasks) - len(specs))
    tasks = []
    for task, spec in zip(names, specs, strict=False):
        node, devices = stay.tasks.get(task, (None, ()))
        phase = Phase.PENDING if node is None else Phase.RUNNING
        tasks.append(Task(name=task, spec=spec, node=node, devices=devices, phase=phase))
    return Workload(
        name=name, namespace=namespace, queue=stay.queue, priority=stay.fields.get("priority", 0), tasks=tuple(tasks),
        min_member=stay.fields.get("minMember"), created_at=stay.submitted, started_at=stay.started,
        expected_runtime=stay.fields.get("expected"),
    )  # fmt: skip


def _spec(asked: Mapping[str, int], milli: int = 0, devices: int = 1) -> TaskSpec:
    requests = {r: a // MILLI if r == GPU else a for r, a in asked.items()}
    if milli:
        requests.pop(GPU, None)
        return TaskSpec(requests=tuple(sorted(requests.items())), gpu_share=GpuShare(milli=milli, devices=devices))
    return TaskSpec(requests=tuple(sorted(requests.items())))


def workloads_between(store: HistoryStore, since: int, until: int, *, limit: int = 1000) -> list[WorkloadRow]:
    """Give the workloads that came in a window, those that waited longest first; at most ``limit``."""
    found: dict[str, WorkloadRow] = {}
    with store.reading() as connection:
        for record, _ in store.scan(connection, Query(kinds=("submitted", "started", "ended", "evicted"), since=since)):
            key = record.workload or ""
            row = found.get(key)
            if record.kind == "submitted" and record.at < until:
                found[key] = WorkloadRow(key, record.queue or "", record.at, None, None, 0, 0)
            elif row is None:
                continue
            elif record.kind == "started" and row.started is None:
                found[key] = row._replace(started=record.at, waited=record.at - row.submitted)
            elif record.kind == "ended":
                found[key] = row._replace(ended=record.at)
            elif record.kind == "evicted":
                found[key] = row._replace(evictions=row.evictions + 1)
    rows = (
        row if row.started is not None else row._replace(waited=(row.ended or until) - row.submitted)
        for row in found.values()
    )
    return sorted(rows, key=lambda row: (-row.waited, row.workload))[:limit]


def evictions_of(
    store: HistoryStore, query: Query, *, limit: int = 100, after: str | None = None
) -> tuple[list[EvictionRow], str | None]:
    """Give evictions, the newest first, with what they gained; ``kinds`` of the query may ask for shadow instead."""
    asked = replace(query, kinds=query.kinds or ("evicted",))
    page = store.records(asked, limit=limit, after=after, newest=True)
    names = sorted({r.beneficiary for r in page.records if r.beneficiary is not None})
    gains: dict[str, list[tuple[int, int, int]]] = {}
    costs: dict[tuple[str, int], int] = {}
    with store.reading() as connection:
        for name in names:
            for record, _ in store.scan(connection, Query(kinds=("outcome",), workload=name)):
                times = record.payload["evictedAt"], record.payload["start"]
                gains.setdefault(name, []).append((*times, record.value))
            for record, _ in store.scan(connection, Query(kinds=("evicted",), beneficiary=name)):
                begin = _gain(gains.get(name, []), record.at)
                if begin is not None:
                    costs[name, begin[0]] = costs.get((name, begin[0]), 0) + record.value
    rows = []
    for record in page.records:
        gain = _gain(gains.get(record.beneficiary or "", []), record.at)
        paid = None if gain is None else gain[2] >= costs[record.beneficiary or "", gain[0]]
        rows.append(EvictionRow(record, None if gain is None else gain[2], paid))
    return rows, page.next


def _gain(gains: list[tuple[int, int, int]], at: int) -> tuple[int, int, int] | None:
    return next((gain for gain in gains if gain[0] <= at <= gain[1]), None)


def queues_over_time(store: HistoryStore, since: int, until: int, points: int = 300) -> list[UsageSeries]:
    """Give what each queue held over time, as means over equal steps of whole minutes; queue "" has the capacity."""
    minute = 60_000_000
    since -= since % minute
    step = max(minute, -(-(until - since) // max(1, points) // minute) * minute)
    count = max(1, -(-(until - since) // step))
    sums: dict[str, dict[str, dict[str, list[float]]]] = {}
    with store.reading() as connection:
        for record in _usage_records(connection, since - DAY, until):
            first = max(0, (record.at - since) // step)
            last = min(count - 1, (record.at + record.value - 1 - since) // step)
            for number in range(first, last + 1):
                begin = since + number * step
                found = clipped(record, begin, begin + step)
                for name, amounts in found.items():
                    for resource, amount in amounts.items():
                        rows = sums.setdefault(record.queue or "", {}).setdefault(name, {})
                        rows.setdefault(resource, [0.0] * count)[number] += amount / step
    at = [since + number * step for number in range(count)]
    return [
        UsageSeries(queue, at, found.get("held", {}), found.get("within", {}), found.get("capacity", {}))
        for queue, found in sorted(sums.items())
    ]


def _usage_records(connection: Connection, since: int, until: int) -> Iterator[Any]:
    for month in months_between(connection, since, until):
        c = records_table(month).c
        query = select(c.at, c.value, c.queue, c.payload).where(c.kind == "usage", c.at >= since, c.at < until)
        yield from connection.execute(query)
