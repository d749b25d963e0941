"""The Standard Workload Format of the Parallel Workloads Archive.

Eighteen numbers a line, -1 where a value is unknown; header lines begin with ``;``
(Chapin et al., "Benchmarks and standards for the evaluation of parallel job schedulers", JSSPP 1999).
"""

from __future__ import annotations

import re
from collections import Counter
from operator import itemgetter

from tenure.model.cluster import DEFAULT_QUEUE
from tenure.model.node import Node
from tenure.model.values.resources import CPU
from tenure.model.workload import Task, TaskSpec, Workload
from tenure.simulator.traces.columns import TraceTable, column, needed
from tenure.simulator.traces.numbers import micros, whole
from tenure.simulator.traces.records import SECOND, ReadOptions, Trace, TraceFormat, TraceJob
from tenure.simulator.traces.source import ProblemList, TraceSource
from tenure.simulator.traces.table import TaskLimit
from tenure.simulator.traces.template import Template

FIELDS = 18
JOB, SUBMIT, RUN, ALLOCATED, REQUESTED, REQUESTED_TIME, STATUS, USER, GROUP, QUEUE = 0, 1, 3, 4, 7, 8, 10, 11, 12, 14
RECORDS = TraceTable(
    "records",
    (
        needed("job number", "name of the job"),
        needed("submit time", "submit time", "seconds of the log's own time"),
        column("wait time"),
        needed("run time", "run time", "seconds"),
        needed("allocated processors", "CPU of its one pod, where it is more than 0", "processors"),
        column("average CPU time used"),
        column("used memory"),
        needed("requested processors", "CPU of its one pod where none are allocated", "processors"),
        needed("requested time", "expected run time, where it is more than the run time", "seconds"),
        column("requested memory"),
        needed("status", "2, 3 and 4 are parts of an execution, and dropped"),
        column("user", "label `user`"),
        column("group", "label `group`"),
        column("executable"),
        column("queue", "label `queue`; `--queue-from queue` makes it the queue"),
        column("partition"),
        column("preceding job"),
        column("think time"),
    ),
)
NAMES = {place: field.name for place, field in enumerate(RECORDS.columns) if field.needed}
PARTIAL = (2, 3, 4)
"""Status of a line that describes a part of an execution; the whole job has a line of its own."""

MILLICORES = 1000
MAX_PROCESSORS = 10**9
TAKE = itemgetter(JOB, SUBMIT, RUN, ALLOCATED, REQUESTED, REQUESTED_TIME, STATUS)
HEADER = re.compile(r"^;\s*MaxProcs:\s*(\d{1,9})\b", re.MULTILINE)

TASK = Template(Task(name=""), "name", "spec")
WORKLOAD = Template(Workload(name="", queue=DEFAULT_QUEUE), "name", "tasks", "created_at", "expected_runtime", "labels")

NO_PROCESSORS = "no processors"
NO_RUNTIME = "negative run time"
NO_SUBMIT = "negative submit time"
TOO_LARGE = "more processors than the machine"
PART = "part of an execution"

_Key = tuple[int, int]
_Numbers = tuple[int, int, int, int, int, int, int]


class _Reader:
    """Builds jobs from lines, with one object for all equal specs and one for all equal sets of labels."""

    def __init__(self, machine: int | None) -> None:
        self.machine = machine
        self.specs: dict[int, TaskSpec] = {}
        self.labels: dict[tuple[str, str, str], dict[str, str]] = {}
        self.dropped: Counter[str] = Counter()

    def job(self, numbers: _Numbers, fields: list[str]) -> TraceJob | None:
        """Make the job of a record, or count why it is none."""
        number, submit, run, allocated, requested, requested_time, status = numbers
        processors = allocated if allocated > 0 else requested
        reason = self._drop_reason(submit, run, processors, status)
        if reason:
            self.dropped[reason] += 1
            return None
        spec = self.specs.get(processors)
        if spec is None:
            spec = self.specs[processors] = TaskSpec(requests=((CPU, processors * MILLICORES),))
        name = str(number)
        workload = WORKLOAD.make(
            name,
            (TASK.make(name + "-0", spec),),
            submit,
            max(run, requested_time),
            self._labels(fields[USER], fields[GROUP], fields[QUEUE]),
        )
        return TraceJob(workload, run, name)

    def _drop_reason(self, submit: int, run: int, processors: int, status: int) -> str | None:
        if status in PARTIAL:
            return PART
        if processors <= 0:
            return NO_PROCESSORS
        if run < 0:
            return NO_RUNTIME
        if submit < 0:
            return NO_SUBMIT
        return TOO_LARGE if self.machine is not None and processors > self.machine else None

    def _labels(self, user: str, group: str, queue: str) -> dict[str, str]:
        key = (user, group, queue)
        labels = self.labels.get(key)
        if labels is None:
            pairs = (("user", user), ("group", group), ("queue", queue))
            labels = self.labels[key] = {name: value for name, value in pairs if not value.startswith("-")}
        return labels


def read(source: TraceSource, options: ReadOptions) -> Trace:
    """Read a log. The machine is one node with ``MaxProcs`` CPUs, or with ``options.processors``.

    Records with no processors, a negative run time or more processors than the machine are dropped and counted.
    Where neither header nor options say how large the machine is, none is implied and no job is too large.

    Raises
    ------
    InvalidInputError
        A line has too few or too many fields, a field is no number, or a job number stands twice.
    """
    machine = options.processors if options.processors is not None else _max_processors(source.text())
    reader = _Reader(machine)
    keyed, records = _read_lines(source, options, reader)
    keyed.sort(key=lambda pair: pair[0])
    nodes = () if machine is None else (Node(name="machine", allocatable={CPU: machine * MILLICORES}),)
    return Trace(
        format="swf",
        jobs=tuple(job for _, job in keyed),
        dropped=reader.dropped.total(),
        drop_reasons=dict(sorted(reader.dropped.items())),
        nodes=nodes,
        records=records,
    )


def _read_lines(source: TraceSource, options: ReadOptions, reader: _Reader) -> tuple[list[tuple[_Key, TraceJob]], int]:
    problems, limit = ProblemList(source), TaskLimit()
    keyed: list[tuple[_Key, TraceJob]] = []
    seen: dict[int, int] = {}
    records = 0
    for number, line in enumerate(source.lines(), 1):
        fields = line.split()
        if not fields or fields[0].startswith(";"):
            continue
        records += 1
        numbers = _plain(line, fields) or _numbers(number, fields, problems)
        if numbers is None or not options.holds(numbers[1]):
            continue
        limit.take(source, number, 1)
        job = reader.job(numbers, fields)
        if job is None:
            continue
        first = seen.setdefault(numbers[0], number)
        if first != number:
            problems.add(number, f"job number {numbers[0]} stands in line {first} already: each job has its own")
            continue
        keyed.append(((numbers[1], numbers[0]), job))
    problems.raise_if_any()
    if not records:
        raise source.fail("no records: a line of a Standard Workload Format file has 18 numbers")
    return keyed, records


def _plain(line: str, fields: list[str]) -> _Numbers | None:
    """Do what `_numbers` does, for the common record: small whole numbers everywhere. ``None`` for any other."""
    if len(fields) != FIELDS or "_" in line:
        return None
    try:
        numbers = tuple(map(int, TAKE(fields)))
    except ValueError:
        return None
    if max(numbers) > MAX_PROCESSORS or min(numbers) < -1:
        return None
    job, submit, run, allocated, requested, requested_time, status = numbers
    return job, submit * SECOND, run * SECOND, allocated, requested, requested_time * SECOND, status


def _numbers(line: int, fields: list[str], problems: ProblemList) -> _Numbers | None:
    """Give the numbers that count, times in µs."""
    if len(fields) != FIELDS:
        problems.add(line, f"{len(fields)} fields where a record has {FIELDS}: was the line cut?")
        return None
    try:
        return (
            whole(fields[JOB]),
            micros(fields[SUBMIT]),
            micros(fields[RUN]),
            whole(fields[ALLOCATED], -1, MAX_PROCESSORS),
            whole(fields[REQUESTED], -1, MAX_PROCESSORS),
            micros(fields[REQUESTED_TIME]),
            whole(fields[STATUS]),
        )
    except ValueError:
        _explain(line, fields, problems)
        return None


def _explain(line: int, fields: list[str], problems: ProblemList) -> None:
    """Say which fields are no numbers; only done for a line that is known to be wrong."""
    for index, name in NAMES.items():
        try:
            if index in (SUBMIT, RUN, REQUESTED_TIME):
                micros(fields[index])
            else:
                whole(fields[index], -1, MAX_PROCESSORS if index in (ALLOCATED, REQUESTED) else 10**15)
        except ValueError as error:
            problems.add(line, str(error), f"field {index + 1} ({name})")


def _max_processors(text: str) -> int | None:
    found = HEADER.search(text)
    return int(found.group(1)) if found else None


def _recognises(name: str, head: str) -> bool:
    if head.lstrip().startswith(";") or name.endswith((".swf", ".swf.gz")):
        return True
    first = next((line for line in head.split("\n") if line.strip()), "")
    return len(first.split()) == FIELDS and "," not in first


FORMAT = TraceFormat(
    "swf",
    _recognises,
    read,
    "The Standard Workload Format of the [Parallel Workloads Archive](https://www.cs.huji.ac.il/labs/parallel/"
    "workload/): 18 numbers a line, -1 where a value is unknown.",
    (RECORDS,),
    (
        "The machine is one node with the CPUs of `MaxProcs` in the header, or of `--processors`.",
        (
            "Records with no processors, a negative run time or submit time, or more processors than the machine are "
            "dropped."
        ),
    ),
    maps=False,
)
