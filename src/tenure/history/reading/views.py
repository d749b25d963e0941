"""What pages and tables ask of a history: the cluster at a moment, and queues over time."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, case, func, or_, select, union_all

from tenure.history.query import Query
from tenure.history.reading.statement import clipped
from tenure.history.record import HistoryRecord
from tenure.history.rollup import HOUR, MINUTE, SUMMED
from tenure.history.schema import records_table
from tenure.history.scope import records_seen, usage_seen
from tenure.history.store import IN_PARTS, HistoryStore, changed_of, in_batches, months_between, months_of
from tenure.history.writing.said import GRACE, as_said
from tenure.model.cluster import Cluster
from tenure.model.file.load import cluster_of
from tenure.model.values.duration import DAY, format_time
from tenure.model.values.resources import GPU, MILLI
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


class UsageSeries(NamedTuple):
    """What a queue held (amounts, GPUs in milli-GPU) at each of ``at`` (µs, the begin of a step); by resource."""

    queue: str
    at: list[int]
    held: dict[str, list[float]]
    within: dict[str, list[float]]
    capacity: dict[str, list[float]]


def version_of_content(store: HistoryStore) -> str:
    """Give a text that changes when something was appended, taken out, or written over."""
    with store.reading() as connection:
        changed = changed_of(connection)
        marks = [
            (month, connection.execute(select(func.max(records_table(month).c.id))).scalar())
            for month in months_of(connection)
        ]
    return ";".join([*(f"{month}:{number or 0}" for month, number in marks), changed])


def cluster_then(store: HistoryStore, at: int, *, before: bool = False) -> Cluster | None:
    """Give the cluster as it was at a time: nodes, queues, settings, and the workloads with their places.

    What tasks ask for is told by resource; constraints on nodes are not recorded. None where nothing is known of it.
    ``before``: what happened to workloads at that very time has not happened yet.
    """
    with store.reading() as connection:
        origin = origin_at(store, connection, at)
        stays = stays_at(store, connection, at - before)
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
    """Give by name the workloads that were there at a time; only their records are read."""
    begins = present_at(connection, at)
    found: dict[str, Stay] = {}
    for names in in_batches(list(begins)):
        since = min(begins[name] for name in names)
        for record, _ in store.scan(connection, Query(kinds=LIFE, workloads=names, since=since, until=at + 1)):
            if record.at >= begins[record.workload or ""]:
                live_on(found, record)
    return found


def present_at(connection: Connection, at: int, source: int | None = None) -> dict[str, int]:
    """Give by name the workloads that may be there at a time, and since when (µs) their records count.

    ``source``: the number of the cluster and node pool whose workloads they are; None: of all that are seen.
    """
    months = months_between(connection, None, at + 1)
    if not months:
        return {}
    parts = []
    for month in months:
        c = records_seen(connection, month).c
        part = select(c.workload, c.kind, c.at).where(c.kind.in_(LIFE), c.at <= at)
        parts.append(part if source is None else part.where(c.source == source))
    life = union_all(*parts).subquery().c
    ended = func.max(case((life.kind == "ended", life.at)))
    came = func.max(case((life.kind == "submitted", life.at)))
    first = func.min(life.at)
    lives_on = func.max(case((life.kind != "ended", life.at))) >= ended
    query = select(life.workload, ended, came, first).group_by(life.workload).having(or_(ended.is_(None), lives_on))
    return {
        row[0] or "": max((time for time in row[1:3] if time is not None), default=row[3])
        for row in connection.execute(query)
    }


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
    own = [f"{name}-{number}" for number in range(len(specs))]
    names = own if stay.tasks.keys() <= set(own) else [*stay.tasks, *(one for one in own if one not in stay.tasks)]
    specs += [specs[-1] if specs else TaskSpec()] * (len(stay.tasks) - len(specs))
    tasks, grace = [], stay.fields.get(GRACE)
    for task, spec in zip(names, specs, strict=False):
        node, devices = stay.tasks.get(task, (None, ()))
        phase = Phase.PENDING if node is None else Phase.RUNNING
        tasks.append(Task(name=task, spec=spec, node=node, devices=devices, phase=phase, grace_period=grace))
    return Workload(
        name=name, namespace=namespace, queue=stay.queue, priority=stay.fields.get("priority", 0), tasks=tuple(tasks),
        min_member=stay.fields.get("minMember"), created_at=stay.submitted, started_at=stay.started,
        expected_runtime=stay.fields.get("expected"), **as_said(stay.fields),
    )  # fmt: skip


def _spec(asked: Mapping[str, int], milli: int = 0, devices: int = 1) -> TaskSpec:
    requests = {r: a // MILLI if r == GPU else a for r, a in asked.items()}
    if milli:
        requests.pop(GPU, None)
        return TaskSpec(requests=tuple(sorted(requests.items())), gpu_share=GpuShare(milli=milli, devices=devices))
    return TaskSpec(requests=tuple(sorted(requests.items())))


FINE: Final = 50_000
"""Records of usage from which on a series is made of the sums by the hour."""


def queues_over_time(store: HistoryStore, since: int, until: int, points: int = 300) -> list[UsageSeries]:
    """Give what each queue held over time, as means over equal steps; queue "" has the capacity.

    Steps are whole minutes; of more than `FINE` records of usage, whole hours, of which the store has sums.
    """
    fine = store.count(Query(kinds=("usage",), since=since - DAY, until=until)) <= FINE
    unit = MINUTE if fine else HOUR
    since -= since % unit
    step = max(unit, -(-(until - since) // max(1, points) // unit) * unit)
    count = max(1, -(-(until - since) // step))
    sums: dict[str, dict[str, dict[str, list[float]]]] = {}
    with store.reading() as connection:
        parts = _of_records if fine else _of_hours
        for queue, number, found in parts(connection, since, step, count):
            for name, amounts in found.items():
                for resource, amount in amounts.items():
                    rows = sums.setdefault(queue, {}).setdefault(name, {})
                    rows.setdefault(resource, [0.0] * count)[number] += amount / step
    at = [since + number * step for number in range(count)]
    return [
        UsageSeries(queue, at, found.get("held", {}), found.get("within", {}), found.get("capacity", {}))
        for queue, found in sorted(sums.items())
    ]


Part = tuple[str, int, Mapping[str, Mapping[str, float]]]
"""What a queue held in a step: its name, the number of the step, and amounts times µs by name and resource."""


def _of_records(connection: Connection, since: int, step: int, count: int) -> Iterator[Part]:
    """Give what each record of usage says of each step."""
    until = since + count * step
    for month in months_between(connection, since - DAY, until):
        c = records_seen(connection, month).c
        query = select(c.at, c.value, c.queue, c.payload).where(c.kind == "usage", c.at >= since - DAY, c.at < until)
        for record in connection.execute(query, execution_options=IN_PARTS):
            for number in _steps(record.at, record.at + record.value, since, step, count):
                begin = since + number * step
                yield record.queue or "", number, clipped(record, begin, begin + step)


def _of_hours(connection: Connection, since: int, step: int, count: int) -> Iterator[Part]:
    """Give what the sums by the hour say of each step; what is longer than a step was held evenly."""
    c = usage_seen(connection).c
    query = select(c.since, c.until, c.queue, c.payload).where(c.until > since, c.since < since + count * step)
    for row in connection.execute(query, execution_options=IN_PARTS):
        fields = json.loads(row.payload)
        for number in _steps(row.since, row.until, since, step, count):
            begin = since + number * step
            part = (min(row.until, begin + step) - max(row.since, begin)) / (row.until - row.since)
            amounts = {
                name: {r: amount * part for r, amount in fields[name].items()} for name in SUMMED if name in fields
            }
            yield row.queue, number, amounts


def _steps(begin: int, end: int, since: int, step: int, count: int) -> range:
    """Give the numbers of the steps that a span touches."""
    return range(max(0, (begin - since) // step), min(count - 1, (end - 1 - since) // step) + 1)
