"""Tenure's own trace format: one row per job, as CSV or as Parquet with the same columns."""

from __future__ import annotations

from functools import partial

from tenure.model.cluster import DEFAULT_QUEUE
from tenure.model.values.problems import shorten
from tenure.model.values.resources import MILLI
from tenure.model.workload import Checkpoint, Task, Workload
from tenure.simulator.traces.columns import TraceTable, column, needed
from tenure.simulator.traces.numbers import bare, micros, whole
from tenure.simulator.traces.records import ReadOptions, Trace, TraceFormat, TraceJob
from tenure.simulator.traces.source import ProblemList, TraceSource
from tenure.simulator.traces.specs import PodRequest, SpecCache, models_of
from tenure.simulator.traces.table import (
    PLAIN,
    TableLayout,
    TableRow,
    TaskLimit,
    TraceTableReader,
    UniqueNames,
    first_line,
    plain_name,
)

JOBS = TraceTable(
    "jobs",
    (
        needed("job", "name of the job"),
        needed("submit_s", "submit time", "seconds of the trace's own time"),
        column("runtime_s", "time from start to end; empty: it never ends", "seconds"),
        column("expected_runtime_s", "what the user expects; empty: nothing is expected", "seconds"),
        column("namespace", "namespace; empty: `default`"),
        column("queue", "leaf queue; empty: `default`"),
        column("priority", "priority; empty: 0"),
        column("preemptible", "`true` or `false`; empty: by priority"),
        column("pods", "equal pods of the gang; empty: 1"),
        column("min_member", "how many of them are the core; empty: all"),
        column("cpu_milli", "CPU of each pod; empty: 0", "millicores"),
        column("memory_mib", "memory of each pod; empty: 0", "MiB"),
        column("gpus", "GPUs of each pod; empty: 0"),
        column("gpu_milli", "how much of each of these, 1 to 1000; empty: 1000", "thousandths of a GPU"),
        column("gpu_models", "GPU models that will do, separated by `|`; empty: any"),
        column("checkpoint_s", "interval between checkpoints; empty: none are made", "seconds"),
        column("restart_s", "time that a restart takes before work goes on; empty: 0", "seconds"),
        column("labels", "labels: `key=value` pairs separated by `;`"),
    ),
)
"""Columns in the order in which they are written."""

COLUMNS = JOBS.names

MAX_PODS = 100_000
HEADER_BYTES = 64 * 1024
NO_RUNTIME = "negative run time"

_amount = partial(whole, low=0, high=10**12)
_count = partial(whole, low=1, high=MAX_PODS)
_gpus = partial(whole, low=0, high=1024)
_milli = partial(whole, low=1, high=MILLI)
_priority = partial(whole, low=-(2**31), high=2**31 - 1)


def read(source: TraceSource, options: ReadOptions) -> Trace:
    """Read a trace of Tenure's own format. Jobs with a negative run time are dropped and counted.

    Raises
    ------
    InvalidInputError
        A line is malformed.
    ModuleNotFoundError
        The file is Parquet and pyarrow is not installed.
    """
    problems = ProblemList(source)
    layout = TableLayout(separator=_separator(source)) if options.mapping.pairs else PLAIN
    table = TraceTableReader(source, JOBS, problems, layout=layout, mapping=options.mapping)
    names = UniqueNames()
    specs, limit = SpecCache(), TaskLimit()
    keyed: list[tuple[tuple[int, int], TraceJob]] = []
    dropped = records = 0
    for row in table.rows():
        records += 1
        pods, submitted = row.value("pods", _count, 1), row.need("submit_s", micros, 0)
        if row.ok and not options.holds(submitted):
            continue
        limit.take(source, row.line, pods)
        job = _job(row, specs, submitted, pods)
        names.check(row, "job", job.workload.key)
        if job.runtime is not None and job.runtime < 0:
            dropped += 1
        else:
            keyed.append(((job.workload.created_at, row.line), job))
    problems.raise_if_any()
    keyed.sort(key=lambda pair: pair[0])
    reasons = {NO_RUNTIME: dropped} if dropped else {}
    return Trace(
        format="tenure",
        jobs=tuple(job for _, job in keyed),
        dropped=dropped,
        drop_reasons=reasons,
        records=records,
        notes=table.notes(),
    )


def _separator(source: TraceSource) -> str:
    """Give what stands between the columns of a table whose names a user maps: a comma where there is one."""
    head = source.data[:HEADER_BYTES].split(b"\n", 1)[0]
    return next((chr(sign) for sign in b",\t;|" if sign in head), ",")


def _job(row: TableRow, specs: SpecCache, submitted: int, pods: int) -> TraceJob:
    name = row.need("job", plain_name, "")
    spec = specs.spec(_ask(row))
    workload = Workload(
        name=name,
        namespace=row.value("namespace", plain_name, "default"),
        queue=row.value("queue", plain_name, DEFAULT_QUEUE),
        priority=row.value("priority", _priority, 0),
        preemptible=row.value("preemptible", _boolean, None),
        min_member=_min_member(row, pods),
        tasks=tuple(Task(name=f"{name}-{index}", spec=spec) for index in range(pods)),
        created_at=submitted,
        expected_runtime=row.value("expected_runtime_s", _duration, None),
        checkpoint=_checkpoint(row),
        labels={**row.labels(), **row.value("labels", labels_of, {})},
    )
    return TraceJob(workload, row.value("runtime_s", micros, None), name)


def _ask(row: TableRow) -> PodRequest:
    gpus = row.value("gpus", _gpus, 0)
    return PodRequest(
        cpu_milli=row.value("cpu_milli", _amount, 0),
        memory_mib=row.value("memory_mib", _amount, 0),
        gpus=gpus,
        milli=row.value("gpu_milli", _milli, MILLI) if gpus else MILLI,
        models=models_of(row.text("gpu_models")),
    )


def _min_member(row: TableRow, pods: int) -> int | None:
    members = row.value("min_member", _count, None)
    if members is not None and members > pods:
        row.reject("min_member", f"{members} of {pods} pods: a core cannot have more than there are")
    return members


def _checkpoint(row: TableRow) -> Checkpoint | None:
    interval = row.value("checkpoint_s", _duration, None)
    overhead = row.value("restart_s", _duration, 0)
    if interval is None and not overhead:
        return None
    return Checkpoint(interval=interval, restart_overhead=overhead)


def _duration(text: str) -> int:
    value = micros(text)
    if value < 0:
        raise ValueError(f"{bare(text)} s is negative")
    return value


def _boolean(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(f"{shorten(text)} is neither true nor false")
    return text.lower() == "true"


def labels_of(text: str) -> dict[str, str]:
    """Read ``key=value`` pairs separated by ``;``.

    Raises
    ------
    ValueError
        A part has no key, or no ``=``.
    """
    labels = {}
    for part in text.split(";"):
        key, equals, value = part.strip().partition("=")
        if not key or not equals:
            raise ValueError(f"{shorten(part)} is not key=value")
        labels[key] = value
    return labels


def _recognises(name: str, head: str) -> bool:
    return head.startswith("PAR1") or name.endswith(".parquet") or set(JOBS.needed) <= set(first_line(head))


FORMAT = TraceFormat(
    "tenure",
    _recognises,
    read,
    "Tenure's own format, as CSV or Parquet; `tenure generate` writes it. With `--columns` any table is read as this.",
    (JOBS,),
    (
        "Columns may stand in any order.",
        "Jobs with a negative run time are dropped.",
        "With `--columns`, cells may also be separated by tabs, `;` or `|`.",
    ),
)
