"""Microsoft's Philly trace (Jeon et al., USENIX ATC 2019) as it is published: ``cluster_job_log``, a list of jobs."""

from __future__ import annotations

from typing import Any

from tenure.simulator.traces.columns import TraceTable, column, needed
from tenure.simulator.traces.dates import MISSING, date_micros
from tenure.simulator.traces.json_objects import JsonObjects
from tenure.simulator.traces.logged import RULES, LoggedJob, LoggedTrace
from tenure.simulator.traces.records import ReadOptions, Trace, TraceFormat
from tenure.simulator.traces.source import ProblemList, TraceSource
from tenure.simulator.traces.specs import PodRequest
from tenure.simulator.traces.spreading import PodGroups
from tenure.simulator.traces.table import plain_name

JOBS = TraceTable(
    "cluster_job_log",
    (
        needed("jobid", "name of the job"),
        needed("submitted_time", "submit time", "date"),
        needed("attempts", "runs of the job, below"),
        column("attempts[].start_time", "start of a run", "date"),
        column("attempts[].end_time", "end of a run", "date"),
        column("attempts[].detail[].gpus", "pods of the first run that has any: one for each server, with its GPUs"),
        column("attempts[].detail[].ip"),
        column("vc", "leaf queue, and label `vc`"),
        column("user", "label `user`"),
        column("status", "label `status`"),
    ),
    others=True,
)
LABELS = ("vc", "user", "status")
MAX_GPUS = 1024


class _Record:
    """A job's object. What cannot be read of it is reported with the path inside of it."""

    def __init__(self, line: int, values: dict[str, Any], problems: ProblemList) -> None:
        self.line = line
        self.ok = True
        self._values = values
        self._problems = problems

    def reject(self, path: str, message: str) -> None:
        self.ok = False
        self._problems.add(self.line, message, path)

    def text(self, key: str, *, needed: bool = False) -> str:
        value = self._values.get(key)
        if value is None or (isinstance(value, str) and value.lower() in MISSING):
            value = ""
        if not isinstance(value, str | int):
            self.reject(key, "is no text")
            return ""
        if needed and not value:
            self.reject(key, "missing, but every record needs it")
        try:
            return plain_name(str(value))
        except ValueError as error:
            self.reject(key, str(error))
            return ""

    def time(self, value: Any, path: str) -> int | None:
        if value is None or (isinstance(value, str) and (not value or value.lower() in MISSING)):
            return None
        try:
            return date_micros(value if isinstance(value, str) else repr(value))
        except ValueError as error:
            self.reject(path, str(error))
            return None

    def objects(self, value: Any, path: str) -> list[dict[str, Any]]:
        if value is None:
            return []
        if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
            self.reject(path, "is no list of objects")
            return []
        return value


def read(source: TraceSource, options: ReadOptions) -> Trace:
    """Read the list of jobs; each server of an attempt is a pod, the virtual cluster is the queue.

    Raises
    ------
    InvalidInputError
        The file is no JSON, or a record lacks what is needed or has it otherwise than published.
    """
    problems = ProblemList(source)
    trace = LoggedTrace(source, options, "philly-json", dated=True)
    seen: dict[str, int] = {}
    for line, values in JsonObjects(source):
        trace.records += 1
        record = _Record(line, values, problems)
        job = _job(record, values, trace)
        first = seen.setdefault(job.name, line)
        if record.ok and first != line:
            record.reject("jobid", f"{job.name!r} stands in line {first} already: each job has its own")
        if record.ok:
            trace.add(job)
    problems.raise_if_any()
    return trace.trace()


def _job(record: _Record, values: dict[str, Any], trace: LoggedTrace) -> LoggedJob:
    submitted = record.time(values.get("submitted_time"), "submitted_time")
    if submitted is None and record.ok:
        record.reject("submitted_time", "missing, but every record needs it")
    job = LoggedJob(record.line, record.text("jobid", needed=True), submitted or 0, ())
    if "attempts" not in values:
        record.reject("attempts", "missing, but every record needs it")
    attempts = record.objects(values.get("attempts"), "attempts")
    for number, attempt in enumerate(attempts):
        path = f"attempts[{number}]"
        start = record.time(attempt.get("start_time"), f"{path}.start_time")
        end = record.time(attempt.get("end_time"), f"{path}.end_time")
        trace.saw(start, end)
        if end is not None or number == len(attempts) - 1:  # an end that is missing before another attempt got lost
            job.ran(start, end)
        job.pods = job.pods or _pods(record, attempt, path)
    job.labels = {key: text for key in LABELS if (text := record.text(key))}
    job.queue = job.labels.get("vc", "")
    return job


def _pods(record: _Record, attempt: dict[str, Any], path: str) -> PodGroups:
    pods = []
    for number, server in enumerate(record.objects(attempt.get("detail"), f"{path}.detail")):
        gpus = server.get("gpus")
        if not isinstance(gpus, list) or len(gpus) > MAX_GPUS:
            record.reject(f"{path}.detail[{number}].gpus", f"is no list of at most {MAX_GPUS} GPUs")
        elif gpus:
            pods.append((PodRequest(gpus=len(gpus)), 1))
    return tuple(pods)


def _recognises(_name: str, head: str) -> bool:
    return head.lstrip()[:1] == "[" and '"jobid"' in head and '"attempts"' in head


FORMAT = TraceFormat(
    "philly-json",
    _recognises,
    read,
    "Microsoft's Philly trace of 2017 [as it is published](https://github.com/msr-fiddle/philly-traces): the JSON file "
    "`cluster_job_log`.",
    (JOBS,),
    (
        *RULES,
        "An attempt without an end, before another one, is not counted: the end got lost.",
        "Dates are local ones without an offset; second 0 is the first submission.",
    ),
    maps=False,
)
