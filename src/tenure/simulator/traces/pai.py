"""Alibaba's PAI trace (Weng et al., NSDI 2022): a table of tasks, and tables of jobs and instances beside it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from tenure.model.values.resources import MILLI
from tenure.simulator.traces.columns import TraceTable, column, needed
from tenure.simulator.traces.dates import MISSING
from tenure.simulator.traces.logged import NO_END, RULES, LoggedJob, LoggedTrace
from tenure.simulator.traces.numbers import micros, scaled, whole
from tenure.simulator.traces.records import ReadOptions, Trace, TraceFormat
from tenure.simulator.traces.source import ProblemList, TraceSource, open_source
from tenure.simulator.traces.specs import PodRequest
from tenure.simulator.traces.table import TableLayout, TableRow, TraceTableReader, first_line, is_header, plain_name

SECONDS = "seconds of the trace's own time"
TASKS = TraceTable(
    "pai_task_table",
    (
        needed("job_name", "name of the job; all tasks of a job are one gang"),
        column("task_name"),
        needed("inst_num", "pods of the task"),
        column("status", "label `status`; `Running` without an end is still running"),
        needed("start_time", "start, and submit time where no table of jobs is beside it", SECONDS),
        needed("end_time", "end", SECONDS),
        needed("plan_cpu", "CPU of each pod", "hundredths of a core"),
        needed("plan_mem", "memory of each pod", "GB, read as GiB"),
        needed(
            "plan_gpu", "GPUs of each pod; 50 is half a GPU, 150 three quarters of each of two", "hundredths of a GPU"
        ),
        column("gpu_type", "label `gpu_type`: it is the type that was given, not one that was asked for"),
    ),
)
JOBS = TraceTable(
    "pai_job_table (`--beside`)",
    (
        needed("job_name", "name of the job"),
        column("inst_id"),
        column("user", "label `user`"),
        column("status"),
        needed("start_time", "submit time", SECONDS),
        column("end_time"),
    ),
)
INSTANCES = TraceTable(
    "pai_instance_table (`--beside`)",
    (
        needed("job_name", "name of the job"),
        column("task_name"),
        column("inst_name"),
        column("worker_name"),
        column("inst_id"),
        column("status"),
        needed("start_time", "start of an instance: the first is the job's start, instead of its tasks'", SECONDS),
        needed("end_time", "end of an instance: the last is the job's end, instead of its tasks'", SECONDS),
        column("machine"),
    ),
)
TABLES = (TASKS, JOBS, INSTANCES)
MAX_GPU_PERCENT = 102_400

_pods = partial(whole, low=1, high=100_000)
_cpu = partial(scaled, factor=10, high=10**12)
_memory = partial(scaled, factor=1024, high=10**12)
_percent = partial(whole, low=0, high=MAX_GPU_PERCENT)


@dataclass(slots=True)
class _Span:
    """From the first start to the last end, in µs; ``open`` if something of it has no end."""

    start: int | None = None
    end: int | None = None
    open: bool = False

    def take(self, start: int | None, end: int | None) -> None:
        if start is not None:
            self.start = start if self.start is None else min(self.start, start)
        if end is not None:
            self.end = end if self.end is None else max(self.end, end)


@dataclass(slots=True)
class _Job:
    line: int
    name: str
    pods: list[tuple[PodRequest, int]] = field(default_factory=list)
    span: _Span = field(default_factory=_Span)
    labels: dict[str, str] = field(default_factory=dict)


def read(source: TraceSource, options: ReadOptions) -> Trace:
    """Read a table of tasks; the tasks of a job are the pods of one gang, which runs until the last of them ends.

    Files with and without a line of column names are read. ``options.beside`` may have the tables of jobs (users and
    submit times) and of instances (starts and ends), also in parts.

    Raises
    ------
    InvalidInputError
        A line is malformed, a needed column is missing, or the file is another table than that of tasks.
    """
    problems = ProblemList(source)
    trace = LoggedTrace(source, options, "pai", dated=False)
    _check(source, TASKS, _table_of(source, options))
    table = _reader(source, TASKS, problems, options)
    jobs: dict[str, _Job] = {}
    for row in table.rows():
        trace.records += 1
        _take_task(row, jobs, trace)
    problems.raise_if_any()
    submits, users, spans = _beside(options.beside, trace)
    for job in jobs.values():
        _add(job, spans.get(job.name, job.span), submits.get(job.name), users.get(job.name), trace)
    return trace.trace(table.notes())


def _take_task(row: TableRow, jobs: dict[str, _Job], trace: LoggedTrace) -> None:
    name = row.need("job_name", plain_name, "")
    job = jobs.setdefault(name, _Job(row.line, name, labels=dict(row.labels())))
    job.pods.append((_ask(row), row.value("inst_num", _pods, 1)))
    start, end = _time(row, "start_time"), _time(row, "end_time")
    trace.saw(start, end)
    job.span.take(start, end)
    status = row.value("status", plain_name, "")
    job.span.open |= status == "Running" and end is None
    job.labels |= {key: text for key in ("status", "gpu_type") if (text := row.value(key, plain_name, ""))}


def _ask(row: TableRow) -> PodRequest:
    percent = row.value("plan_gpu", _percent, 0)
    gpus = -(-percent // 100)
    return PodRequest(
        row.value("plan_cpu", _cpu, 0),
        row.value("plan_mem", _memory, 0),
        gpus,
        percent * 10 // gpus if gpus else MILLI,
    )


def _time(row: TableRow, name: str) -> int | None:
    """Read a time; 0 stands where there is none."""
    return row.value(name, micros, None) or None


def _beside(
    paths: tuple[Path, ...], trace: LoggedTrace
) -> tuple[dict[str, int], dict[str, str], dict[str, _Span]]:  # fmt: skip
    """Read the tables beside that of tasks: submit times and users by job, and from when to when its instances ran."""
    submits: dict[str, int] = {}
    users: dict[str, str] = {}
    spans: dict[str, _Span] = {}
    for path in paths:
        source = open_source(path)
        problems = ProblemList(source)
        table = _table_of(source, ReadOptions())
        if table is TASKS or table is None:
            raise source.fail(
                "beside the table of tasks goes that of jobs or that of instances, and this is neither", 1
            )
        for row in _reader(source, table, problems, ReadOptions()).rows():
            name, start = row.need("job_name", plain_name, ""), _time(row, "start_time")
            if table is INSTANCES:
                end = _time(row, "end_time")
                trace.saw(start, end)
                span = spans.setdefault(name, _Span())
                span.take(start, end)
                span.open |= row.text("status") == "Running" and end is None
                continue
            if start is not None:
                submits[name] = start
            if user := row.value("user", plain_name, ""):
                users[name] = user
        problems.raise_if_any()
    return submits, users, spans


def _add(job: _Job, span: _Span, submitted: int | None, user: str | None, trace: LoggedTrace) -> None:
    at = span.start if submitted is None else submitted
    if span.start is not None and span.end is None and not span.open:
        trace.drop(NO_END)
        return
    logged = LoggedJob(job.line, job.name, at or 0, _asking(job.pods), labels=job.labels)
    if user:
        logged.labels["user"] = user
    logged.ran(span.start, None if span.open else span.end)
    trace.add(logged)


def _asking(pods: list[tuple[PodRequest, int]]) -> tuple[tuple[PodRequest, int], ...]:
    """Give the pods of a job, none if all of them together ask for nothing."""
    asks = any(request.cpu_milli or request.memory_mib or request.gpus for request, _ in pods)
    return tuple(pods) if asks else ()


def _check(source: TraceSource, wanted: TraceTable, found: TraceTable | None) -> None:
    if found in {None, wanted}:
        return
    assert found is not None
    message = f"this is {found.name.split(' ')[0]}, which says nothing of what jobs ask for: name {wanted.name} as the "
    raise source.fail(message + "trace, and this file with --beside", 1)


def _table_of(source: TraceSource, options: ReadOptions) -> TraceTable | None:
    """Tell which table a file is: by most of its column names, or else by how many columns it has."""
    if options.mapping.pairs or source.is_parquet:
        return TASKS
    head = first_line(source.head)
    if _has_names(source, options):
        return max(TABLES, key=lambda table: len(set(table.names).intersection(head)))
    return next((table for table in TABLES if len(table.columns) == len(head)), None)


def _reader(source: TraceSource, table: TraceTable, problems: ProblemList, options: ReadOptions) -> TraceTableReader:
    layout = TableLayout(header=None if _has_names(source, options) else table.names, missing=MISSING)
    return TraceTableReader(source, table, problems, layout=layout, mapping=options.mapping)


def _has_names(source: TraceSource, options: ReadOptions) -> bool:
    named = is_header(first_line(source.head), (name for table in TABLES for name in table.names))
    return bool(options.mapping.pairs) or source.is_parquet or named


def _recognises(name: str, head: str) -> bool:
    return name.startswith("pai_") or any(set(table.needed) <= set(first_line(head)) for table in TABLES)


FORMAT = TraceFormat(
    "pai",
    _recognises,
    read,
    "Alibaba's GPU trace of 2020 ([cluster-trace-gpu-v2020](https://github.com/alibaba/clusterdata/tree/master/"
    "cluster-trace-gpu-v2020), PAI): the table of tasks; with `--beside` those of jobs and of instances, or parts of "
    "them.",
    TABLES,
    (*RULES, "The files as they are published have no line of column names; both kinds are read."),
    joins=True,
)
