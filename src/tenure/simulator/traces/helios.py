"""SenseTime's Helios traces (Hu et al., SC 2021): ``cluster_log.csv`` of a cluster."""

from __future__ import annotations

from functools import partial

from tenure.simulator.traces.columns import TraceTable, column, needed
from tenure.simulator.traces.dates import MISSING, date_micros
from tenure.simulator.traces.logged import NO_END, RULES, LoggedJob, LoggedTrace
from tenure.simulator.traces.numbers import micros, whole
from tenure.simulator.traces.records import ReadOptions, Trace, TraceFormat
from tenure.simulator.traces.source import ProblemList, TraceSource
from tenure.simulator.traces.spreading import spread
from tenure.simulator.traces.table import (
    TableLayout,
    TableRow,
    TraceTableReader,
    UniqueNames,
    first_line,
    plain_name,
)

JOBS = TraceTable(
    "cluster_log.csv",
    (
        needed("job_id", "name of the job"),
        needed("submit_time", "submit time", "date"),
        column("start_time", "start", "date"),
        column("end_time", "end", "date"),
        column("duration", "run time where the end is missing", "seconds"),
        needed("gpu_num", "GPUs of all pods together"),
        column("cpu_num", "CPU of all pods together", "cores"),
        column("node_num", "pods; empty: 1"),
        column("vc", "leaf queue, and label `vc`"),
        column("user", "label `user`"),
        column("state", "label `state`; `RUNNING` without an end is still running"),
        column("queue"),
    ),
)
LABELS = ("vc", "user", "state")
RUNNING = ("RUNNING", "SUSPENDED")
LAYOUT = TableLayout(missing=MISSING)

_gpus = partial(whole, low=0, high=100_000)
_cpus = partial(whole, low=0, high=10**8)
_nodes = partial(whole, low=0, high=100_000)


def read(source: TraceSource, options: ReadOptions) -> Trace:
    """Read a log of jobs; the virtual cluster is the queue, and each node of a job a pod.

    Raises
    ------
    InvalidInputError
        A line is malformed, or a needed column is missing.
    """
    problems, names = ProblemList(source), UniqueNames()
    trace = LoggedTrace(source, options, "helios", dated=True)
    table = TraceTableReader(source, JOBS, problems, layout=LAYOUT, mapping=options.mapping)
    for row in table.rows():
        trace.records += 1
        job = _job(row, trace)
        names.check(row, "job_id", job.name)
        if not row.ok:
            continue
        if job.held is None and job.open_since is None and row.text("start_time"):
            trace.drop(NO_END)
        else:
            trace.add(job)
    problems.raise_if_any()
    return trace.trace(table.notes())


def _job(row: TableRow, trace: LoggedTrace) -> LoggedJob:
    gpus, cpus = row.need("gpu_num", _gpus, 0), row.value("cpu_num", _cpus, 0)
    nodes = max(row.value("node_num", _nodes, 1), 1)
    labels = {key: text for key in LABELS if (text := row.value(key, plain_name, ""))}
    job = LoggedJob(
        row.line,
        row.need("job_id", plain_name, ""),
        row.need("submit_time", date_micros, 0),
        spread(nodes, cpus * 1000, 0, gpus) if gpus or cpus else (),
        labels.get("vc", ""),
        labels=row.labels() | labels,
    )
    start, end = row.value("start_time", date_micros, None), row.value("end_time", date_micros, None)
    if end is None and start is not None and (took := row.value("duration", micros, None)) is not None:
        end = start + took
    trace.saw(start, end)
    if end is not None or row.text("state").upper() in RUNNING:
        job.ran(start, end)
    return job


def _recognises(_name: str, head: str) -> bool:
    return set(JOBS.needed) | {"vc", "node_num"} <= set(first_line(head))


FORMAT = TraceFormat(
    "helios",
    _recognises,
    read,
    "SenseTime's [Helios traces](https://github.com/S-Lab-System-Group/HeliosData) of 2020: `cluster_log.csv` of a "
    "cluster.",
    (JOBS,),
    (
        *RULES,
        "GPUs and cores are shared out evenly over the pods; the first ones have one more where that does not go out.",
        "Dates are local ones without an offset; second 0 is the first submission.",
    ),
)
