"""Slurm's accounting: what ``sacct --parsable2`` or ``sacct --json`` writes."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from tenure.simulator.traces.columns import TraceTable, column, needed
from tenure.simulator.traces.dates import MISSING, DateReader, date_micros, length_micros
from tenure.simulator.traces.logged import NO_END, RULES, LoggedJob, LoggedTrace
from tenure.simulator.traces.numbers import micros
from tenure.simulator.traces.records import ReadOptions, Trace, TraceFormat
from tenure.simulator.traces.sacct_json import json_rows
from tenure.simulator.traces.source import ProblemList, TraceSource
from tenure.simulator.traces.spreading import PodGroups
from tenure.simulator.traces.table import TableLayout, TableRow, TraceTableReader, first_text, lower, plain_name
from tenure.simulator.traces.tres import pods_of

JOBS = TraceTable(
    "sacct",
    (
        needed("JobID", "name of the job; `12_3` is one of an array, `12.batch` a step"),
        needed("Submit", "submit time", "date"),
        column("Start", "start; `Unknown`: it never started", "date"),
        column("End", "end", "date"),
        column("Elapsed", "run time where the end is missing", "[days-]hours:minutes:seconds"),
        column("ElapsedRaw", "the same", "seconds"),
        column("State", "label `state`, its first word; without an end, `RUNNING` and the like go on"),
        column("Timelimit", "expected run time", "[days-]hours:minutes:seconds"),
        column("TimelimitRaw", "the same", "minutes"),
        column("ReqTRES", "pods (`node`), and `cpu`, `mem` and `gres/gpu` of all of them together", "K, M, G, T, P"),
        column("AllocTRES", "the same, where `ReqTRES` is empty"),
        column("ReqNodes", "pods, where `ReqTRES` has no `node`"),
        column("NNodes", "the same"),
        column("AllocNodes", "the same"),
        column("ReqCPUS", "CPU of all pods, where `ReqTRES` has no `cpu`", "cores"),
        column("NCPUS", "the same", "cores"),
        column("AllocCPUS", "the same", "cores"),
        column("ReqMem", "memory of all pods, where `ReqTRES` has no `mem`; with `n` of each node, `c` of each core",
               "K, M, G, T, P"),
        column("ReqGRES", "GPUs of each pod, where `ReqTRES` has no `gres/gpu`: `gpu:2`, `gpu:a100:2`"),
        column("Account", "leaf queue, and label `account`"),
        column("User", "label `user`"),
        column("Partition", "label `partition`"),
        column("QOS", "label `qos`"),
        column("Cluster", "label `cluster`"),
    ),
    others=True,
)  # fmt: skip
LABELS = ("account", "user", "partition", "qos", "cluster")
GOES_ON = frozenset(
    {"RUNNING", "SUSPENDED", "COMPLETING", "STOPPED", "CONFIGURING", "RESIZING", "SIGNALING", "STAGE_OUT"}
)
JOB_ID = re.compile(r"(?P<job>\d+(?:_\d+|_\[[^\]]*\]?(?:%\d+)?)?)(?:\+(?P<part>\d+))?(?P<step>\..+)?")
NO_LIMIT = frozenset({"unlimited", "partition_limit", "infinite", "invalid"})
STEP = "step of a job"
REVOKED = "ran in another cluster"
MAX_MINUTES = 10**9


@dataclass(slots=True)
class _Part:
    """A component of a job with all its runs: a heterogeneous job has several, others one."""

    pods: PodGroups = ()
    runs: LoggedJob | None = None


@dataclass(slots=True)
class _Job:
    line: int
    name: str
    submitted: int
    expected: int | None
    labels: dict[str, str]
    parts: dict[str, _Part] = field(default_factory=dict)


def read(source: TraceSource, options: ReadOptions) -> Trace:
    """Read jobs; the account is the queue, and each node of a job a pod.

    A job that stands there several times, because it was requeued, ran several times; the components of a
    heterogeneous job are one gang.

    Raises
    ------
    InvalidInputError
        A line is malformed, or a needed column is missing.
    """
    problems = ProblemList(source)
    trace = LoggedTrace(source, options, "sacct", dated=True)
    jobs: dict[str, _Job] = {}
    dates = DateReader()
    if _is_json(source):
        for row in json_rows(source, lower(JOBS.names), problems):
            _take(row, jobs, trace, dates)
        notes: tuple[str, ...] = ()
    else:
        layout = TableLayout(_separator(source), quoted=False, any_case=True, missing=MISSING)
        table = TraceTableReader(source, JOBS, problems, layout=layout, mapping=options.mapping)
        for row in table.rows():
            _take(row, jobs, trace, dates)
        notes = table.notes()
    problems.raise_if_any()
    for job in jobs.values():
        trace.add(_joined(job))
    return trace.trace((*notes, *dates.notes()))


def _take(row: TableRow, jobs: dict[str, _Job], trace: LoggedTrace, dates: DateReader) -> None:
    """Take a line into account."""
    trace.records += 1
    text = row.text("jobid")
    found = JOB_ID.fullmatch(text)
    if found is None:
        row.reject("jobid", f"{text!r} is no job; it is written as 12, 12_3 or 12+1, steps as 12.batch")
        return
    if found["step"]:
        trace.drop(STEP)
        return
    state = (row.value("state", plain_name, "").split() or [""])[0].rstrip("+").upper()
    if state == "REVOKED":
        trace.drop(REVOKED)
        return
    submitted = row.need("submit", dates.micros, 0)
    start, end = row.value("start", dates.micros, None), _end(row, dates)
    if start is not None and end is None and state not in GOES_ON and row.ok:
        trace.drop(NO_END)
        return
    pods = pods_of(row)
    labels = {key: value for key in LABELS if (value := row.value(key, plain_name, ""))}
    expected = _limit(row)
    if not row.ok:
        return
    trace.saw(submitted, start, end)
    labels |= {"state": state} if state else {}
    cluster, name = labels.get("cluster", ""), found["job"]
    first = next(iter(jobs.values())).labels.get("cluster", "") if jobs else cluster
    name = name if cluster == first else f"{name}.{cluster}"
    job = jobs.setdefault(name, _Job(row.line, name, submitted, expected, row.labels() | labels))
    job.submitted = min(job.submitted, submitted)
    job.labels |= {"state": labels["state"]} if state else {}
    part = job.parts.setdefault(found["part"] or "", _Part(pods))
    part.runs = part.runs or LoggedJob(row.line, name, submitted, pods)
    part.runs.ran(start, end)


def _end(row: TableRow, dates: DateReader) -> int | None:
    """Give when a run ended; where its end is missing, from how long it took."""
    end = row.value("end", dates.micros, None)
    start = row.value("start", date_micros, None)
    if end is not None or start is None or (row.text("state").split() or [""])[0].upper() in GOES_ON:
        return end
    took = row.value("elapsedraw", micros, None)
    took = row.value("elapsed", length_micros, None) if took is None else took
    return None if took is None else start + took


def _limit(row: TableRow) -> int | None:
    """Give the time limit in µs, if there is one."""
    for name, read in (("timelimitraw", _minutes), ("timelimit", length_micros)):
        text = row.text(name)
        if text and text.lower() not in NO_LIMIT:
            return row.value(name, read, None)
    return None


def _minutes(text: str) -> int:
    value = micros(text) * 60
    if not 0 <= value <= MAX_MINUTES * 60_000_000:
        raise ValueError(f"{text} is not between 0 and {MAX_MINUTES}")
    return value


def _joined(job: _Job) -> LoggedJob:
    """Make one job of all components: it runs until the last of them ends."""
    pods = tuple(group for part in job.parts.values() for group in part.pods)
    made = LoggedJob(
        job.line, job.name, job.submitted, pods, job.labels.get("account", ""), expected=job.expected, labels=job.labels
    )
    runs = [part.runs for part in job.parts.values() if part.runs is not None]
    held = [run.held for run in runs if run.held is not None]
    opened = [run.open_since for run in runs if run.open_since is not None]
    made.held = max(held, default=None)
    made.open_since = min(opened, default=None)
    return made


def _is_json(source: TraceSource) -> bool:
    return source.data[:1024].lstrip()[:1] == b"{"


def _separator(source: TraceSource) -> str:
    return "|" if "|" in first_text(source.head) else ","


def _recognises(_name: str, head: str) -> bool:
    names = {name.strip().lower() for name in first_text(head).split("|")}
    return {"jobid", "submit"} <= names or re.match(r"\s*\{\s*\"(jobs|meta)\"\s*:", head) is not None


TOLD = (
    "A step of a job (`12.0`, `12.batch`, `12.extern`) is not a job, and dropped; `sacct -X` leaves them out.",
    "A heterogeneous job (`12+0`, `12+1`) is one gang with pods of several kinds.",
    "Of GPUs of several types (`gres/gpu:a100=2,gres/gpu:v100=1`) the sum counts; types are not asked for.",
    "Where a file has jobs of several clusters, the names of those of all but the first end with their cluster.",
    "Names of columns are read in any case, lines may end with the separator, and other columns are not used.",
    "Amounts are shared out evenly over the pods; the first ones have one more where that does not go out.",
    "Second 0 is the first submission. Dates are those of `SLURM_TIME_FORMAT=standard`, or seconds (`%s`).",
    "Priorities of Slurm change with the age of a job, and are not used.",
    "Of `--json`, keys with the same meaning are used: `array`, `het`, `time`, `tres`, `state` and names.",
)

FORMAT = TraceFormat(
    "sacct",
    _recognises,
    read,
    "Slurm's accounting: `sacct -a -X --parsable2 --format=JobID,User,Account,Partition,QOS,State,Submit,Start,End,"
    "Timelimit,ReqTRES`, with any `--units`, or `sacct --json`.",
    (JOBS,),
    (*RULES, *TOLD),
)
