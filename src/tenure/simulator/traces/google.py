"""Google's cluster traces of 2011 and 2019: events of tasks, and events of jobs beside them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from tenure.simulator.traces.columns import TraceTable, column, needed
from tenure.simulator.traces.dates import MISSING
from tenure.simulator.traces.json_objects import JsonObjects
from tenure.simulator.traces.logged import RULES, LoggedJob, LoggedTrace
from tenure.simulator.traces.mapping import FurtherColumns
from tenure.simulator.traces.numbers import scaled, whole
from tenure.simulator.traces.records import ReadOptions, Trace, TraceFormat
from tenure.simulator.traces.source import ProblemList, TraceSource, open_source
from tenure.simulator.traces.specs import PodRequest
from tenure.simulator.traces.spreading import PodGroups
from tenure.simulator.traces.table import TableHead, TableLayout, TableRow, TraceTableReader, first_line, plain_name

MICROS = "µs of the trace's own time"
PART = "of the largest machine, which is read as 100 {}"
INSTANCES = TraceTable(
    "instance_events (2019)",
    (
        needed("time", "time of the event", MICROS),
        needed("type", "what happened: submitted, scheduled, or any of the ends"),
        needed("collection_id", "name of the job"),
        needed("instance_index", "which pod of the job"),
        column("collection_type", "1: a set of reservations, not a job, and dropped"),
        column("priority", "priority of the job"),
        column("resource_request.cpus", "CPU of the pod; `cpus` is the same", PART.format("cores")),
        column("resource_request.memory", "memory of the pod; `memory` is the same", PART.format("GiB")),
        column("scheduling_class", "label `scheduling_class`"),
        column("machine_id"),
    ),
    others=True,
)
COLLECTIONS = TraceTable(
    "collection_events (2019, `--beside`)",
    (
        needed("time", "time of the event", MICROS),
        needed("type", "the first submission is the job's submit time"),
        needed("collection_id", "name of the job"),
        column("user", "label `user`"),
        column("collection_logical_name", "label `logical_name`"),
    ),
    others=True,
)
TASK_EVENTS = TraceTable(
    "task_events (2011)",
    (
        needed("time", "time of the event", MICROS),
        column("missing info"),
        needed("job ID", "name of the job"),
        needed("task index", "which pod of the job"),
        column("machine ID"),
        needed("event type", "what happened: submitted, scheduled, or any of the ends"),
        column("user", "label `user`"),
        column("scheduling class", "label `scheduling_class`"),
        column("priority", "priority of the job"),
        column("CPU request", "CPU of the pod", PART.format("cores")),
        column("memory request", "memory of the pod", PART.format("GiB")),
        column("disk space request"),
        column("different machines restriction"),
    ),
)
JOB_EVENTS = TraceTable(
    "job_events (2011, `--beside`)",
    (
        needed("time", "time of the event", MICROS),
        column("missing info"),
        needed("job ID", "name of the job"),
        needed("event type", "the first submission is the job's submit time"),
        column("user", "label `user`"),
        column("scheduling class"),
        column("job name"),
        column("logical job name", "label `logical_name`"),
    ),
)
SAME = {"cpus": "resource_request.cpus", "memory": "resource_request.memory"}
OF_PODS = (
    "instance_index",
    "machine_id",
    "resource_request",
    "resource_request.cpus",
    "resource_request.memory",
    *SAME,
)
"""Names that stand in events of pods, and not in those of jobs."""

AFTER = 2**63 - 1
"""The time of events after the end of the trace."""

SUBMIT, SCHEDULE, END, OTHER = range(4)
RESERVATION = "set of reservations"
MOST_LETTERS = 1000
"""Letters of a value that are looked at; what is longer is too long for anything, and is told shorter."""

LARGEST = 100
"""Cores, and GiB, that a request of 1.0 becomes: all of the largest machine."""

_index = partial(whole, low=0, high=10**9)
_priority = partial(whole, low=-(2**31), high=2**31 - 1)
_cpu = partial(scaled, factor=LARGEST * 1000, high=LARGEST * 1000 * 100)
_memory = partial(scaled, factor=LARGEST * 1024, high=LARGEST * 1024 * 100)


@dataclass(frozen=True, slots=True)
class _Version:
    """One of the two traces: its tables, its names of their columns, and its numbers of events."""

    tasks: TraceTable
    jobs: TraceTable
    job: str
    index: str
    kind: str
    cpu: str
    memory: str
    scheduling_class: str
    logical_name: str
    schedule: int
    ends: frozenset[int]

    def event(self, text: str) -> int:
        """Read what happened, as a number or by its name."""
        value = EVENT_NAMES[text.upper()] if text.upper() in EVENT_NAMES else whole(text, 0, 10)
        if value == 0:
            return SUBMIT
        return SCHEDULE if value == self.schedule else END if value in self.ends else OTHER


EVENT_NAMES = {
    "SUBMIT": 0, "QUEUE": 1, "ENABLE": 2, "SCHEDULE": 3, "EVICT": 4, "FAIL": 5, "FINISH": 6, "KILL": 7, "LOST": 8,
    "UPDATE_PENDING": 9, "UPDATE_RUNNING": 10,
}  # fmt: skip
"""Events of 2019; exports may have their names."""

OF_2019 = _Version(
    INSTANCES, COLLECTIONS, "collection_id", "instance_index", "type", "resource_request.cpus",
    "resource_request.memory", "scheduling_class", "collection_logical_name", 3, frozenset(range(4, 9)),
)  # fmt: skip
OF_2011 = _Version(
    TASK_EVENTS, JOB_EVENTS, "job ID", "task index", "event type", "CPU request", "memory request", "scheduling class",
    "logical job name", 1, frozenset(range(2, 7)),
)  # fmt: skip


@dataclass(slots=True)
class _Pod:
    request: PodRequest | None = None
    events: list[tuple[int, int]] = field(default_factory=list)


@dataclass(slots=True)
class _Job:
    line: int
    priority: int = 0
    submitted: int | None = None
    labels: dict[str, str] = field(default_factory=dict)
    pods: dict[int, _Pod] = field(default_factory=dict)


def read(source: TraceSource, options: ReadOptions) -> Trace:
    """Read events of tasks (2011: ``task_events``; 2019: ``instance_events``, as CSV or one JSON object a line).

    All tasks of a job are the pods of one gang, which runs as long as the task that ran longest. ``options.beside`` may
    have the events of jobs.

    Raises
    ------
    InvalidInputError
        A line is malformed, or the file is another table than that of tasks.
    """
    problems = ProblemList(source)
    trace = LoggedTrace(source, options, "google", dated=False)
    version = _version(source, options)
    rows = _Rows(source, version.tasks, problems, options)
    jobs: dict[str, _Job] = {}
    for row in rows:
        trace.records += 1
        if row.text("collection_type") in {"1", "ALLOC_SET"}:
            trace.drop(RESERVATION)
            continue
        _take(row, version, jobs, trace)
    problems.raise_if_any()
    for path in options.beside:
        _read_beside(path, version, jobs)
    while jobs:  # what was made of a job need not be kept beside it
        name, job = jobs.popitem()
        _add(name, job, trace)
    return trace.trace(rows.notes())


def _take(row: TableRow, version: _Version, jobs: dict[str, _Job], trace: LoggedTrace) -> None:
    time, name = row.need("time", _index_time, 0), row.need(version.job, plain_name, "")
    what, index = row.need(version.kind, version.event, OTHER), row.need(version.index, _index, 0)
    request = PodRequest(row.value(version.cpu, _cpu, 0), row.value(version.memory, _memory, 0))
    priority = row.value("priority", _priority, 0)
    if not row.ok or time == AFTER:
        return
    trace.saw(time)
    job = jobs.get(name)
    if job is None:
        named = {"user": row.text("user"), "scheduling_class": row.text(version.scheduling_class)}
        job = jobs[name] = _Job(row.line, priority, labels={key: text for key, text in named.items() if text})
        job.labels |= row.labels()
    if what == SUBMIT:
        job.submitted = time if job.submitted is None else min(job.submitted, time)
    pod = job.pods.setdefault(index, _Pod())
    if pod.request is None and (request.cpu_milli or request.memory_mib):
        pod.request = request
    if what in {SCHEDULE, END}:
        pod.events.append((time, what))


def _index_time(text: str) -> int:
    return whole(text, 0, AFTER)


def _add(name: str, job: _Job, trace: LoggedTrace) -> None:
    runs = [_run_of(pod, trace.last) for pod in job.pods.values()]
    held = max((run for run, _ in runs if run is not None), default=None)
    first = min((time for pod in job.pods.values() for time, _ in pod.events), default=0)
    submitted = first if job.submitted is None else job.submitted
    made = LoggedJob(job.line, name, submitted, _groups(job), priority=job.priority, held=held, labels=job.labels)
    if any(running for _, running in runs) and held is not None:
        made.held, made.open_since = None, trace.last - held
    trace.add(made)


def _run_of(pod: _Pod, last: int) -> tuple[int | None, bool]:
    """Give how long a task ran in all its attempts, and whether it still ran at the end of the trace."""
    held, since = None, None
    for time, what in sorted(pod.events, key=lambda event: event[0]):
        if what == SCHEDULE:
            since = time if since is None else since
        elif since is not None:
            held, since = (held or 0) + time - since, None
    return (held, False) if since is None else ((held or 0) + last - since, True)


def _groups(job: _Job) -> PodGroups:
    """Give the pods of a job in the order of their numbers, equal ones that follow each other together."""
    groups: list[tuple[PodRequest, int]] = []
    for _, pod in sorted(job.pods.items()):
        request = pod.request or PodRequest()
        if groups and groups[-1][0] == request:
            groups[-1] = (request, groups[-1][1] + 1)
        else:
            groups.append((request, 1))
    return tuple(groups) if any(request != PodRequest() for request, _ in groups) else ()


def _read_beside(path: Path, version: _Version, jobs: dict[str, _Job]) -> None:
    """Take submit times, users and logical names of jobs from their own events."""
    source = open_source(path)
    problems = ProblemList(source)
    for row in _Rows(source, version.jobs, problems, ReadOptions()):
        time, job = row.need("time", _index_time, 0), jobs.get(row.need(version.job, plain_name, ""))
        what = row.need(version.kind, version.event, OTHER)
        if job is None or time == AFTER:
            continue
        if what == SUBMIT:
            job.submitted = time if job.submitted is None else min(job.submitted, time)
        named = {
            "user": row.value("user", plain_name, ""),
            "logical_name": row.value(version.logical_name, plain_name, ""),
        }
        job.labels |= {key: text for key, text in named.items() if text}
    problems.raise_if_any()


class _Rows:
    """The rows of a table of events: CSV with column names (2019) or without (2011), or JSON."""

    def __init__(self, source: TraceSource, table: TraceTable, problems: ProblemList, options: ReadOptions) -> None:
        self._source = source
        self._table = table
        self._problems = problems
        nameless = table in {TASK_EVENTS, JOB_EVENTS} and not options.mapping.pairs
        layout = TableLayout(header=table.names if nameless else None, missing=MISSING, same=SAME)
        self._reader = TraceTableReader(source, table, problems, layout=layout, mapping=options.mapping)

    def __iter__(self) -> Iterator[TableRow]:
        return self._json() if _is_json(self._source) else self._reader.rows()

    def notes(self) -> tuple[str, ...]:
        """Say what was left out, once all are read."""
        return self._reader.notes()

    def _json(self) -> Iterator[TableRow]:
        names = self._table.names
        head = TableHead({name: place for place, name in enumerate(names)}, self._problems, FurtherColumns({}), MISSING)
        for line, values in JsonObjects(self._source):
            cells = [_text(_inside(values, name)) for name in names]
            yield TableRow(line, cells, head)


def _inside(values: dict[str, Any], name: str) -> Any:
    """Give a value by its path."""
    found: Any = values
    for key in name.split("."):
        found = found.get(key) if isinstance(found, dict) else None
    return found


def _text(value: Any) -> str:
    return str(value)[:MOST_LETTERS] if isinstance(value, str | int | float) and not isinstance(value, bool) else ""


def _is_json(source: TraceSource) -> bool:
    return source.data[:1024].lstrip()[:1] in {b"{", b"["}


def _version(source: TraceSource, options: ReadOptions) -> _Version:
    """Tell which of the two traces a file is of.

    Raises
    ------
    InvalidInputError
        It is a table of jobs, which says nothing of what they ask for.
    """
    head = source.head
    names = first_line(head)
    jobs_only = len(names) == len(JOB_EVENTS.columns) and names[0].isdecimal()
    if not _is_json(source) and not source.is_parquet and not options.mapping.pairs:
        jobs_only = jobs_only or ("collection_id" in names and not any(name in names for name in OF_PODS))
    elif _is_json(source):
        jobs_only = '"collection_id"' in head and not any(f'"{name}"' in head for name in OF_PODS)
    if jobs_only:
        raise source.fail(
            "these are events of jobs, which say nothing of what jobs ask for: name task_events (2011) or "
            "instance_events (2019) as the trace, and this file with --beside", 1)  # fmt: skip
    return OF_2011 if names[0].isdecimal() else OF_2019


def _recognises(_name: str, head: str) -> bool:
    if {"collection_id", "instance_index", "time", "type"} <= set(first_line(head)):
        return True
    return head.lstrip()[:1] in {"{", "["} and '"collection_id"' in head and '"type"' in head


FORMAT = TraceFormat(
    "google",
    _recognises,
    read,
    "Google's [cluster traces](https://github.com/google/cluster-data): `task_events` of 2011, which need "
    "`--trace-format google`, or `instance_events` of 2019, as CSV or with one JSON object a line; with `--beside` the "
    "events of jobs.",
    (INSTANCES, COLLECTIONS, TASK_EVENTS, JOB_EVENTS),
    (
        *RULES,
        "All tasks of a job are one gang, which runs as long as the task that ran longest in all its attempts.",
        (
            "Requests are published as a part of the largest machine: 1.0 becomes 100 cores, or 100 GiB, so describe "
            "the nodes of the cluster file in the same measure."
        ),
        "Events before the trace have the time 0, and count as of then; those after it are not used.",
    ),
    joins=True,
)
