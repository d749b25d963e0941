"""Microsoft's Philly trace (Jeon et al., USENIX ATC 2019), as a table of jobs."""

from __future__ import annotations

from collections import Counter
from functools import partial

from tenure.model.cluster import DEFAULT_QUEUE
from tenure.model.workload import Task, TaskSpec, Workload
from tenure.simulator.traces.columns import TraceTable, column, needed
from tenure.simulator.traces.numbers import micros, whole
from tenure.simulator.traces.records import ReadOptions, Trace, TraceFormat, TraceJob
from tenure.simulator.traces.source import ProblemList, TraceSource
from tenure.simulator.traces.specs import PodRequest, SpecCache
from tenure.simulator.traces.table import (
    TableRow,
    TaskLimit,
    TraceTableReader,
    UniqueNames,
    first_line,
    plain_name,
)
from tenure.simulator.traces.template import Template

JOBS = TraceTable(
    "jobs",
    (
        needed("job_id", "name of the job"),
        needed("submit_s", "submit time", "seconds of the trace's own time"),
        needed("runtime_s", "time from start to end", "seconds"),
        needed("pods", "pods of the gang"),
        needed("gpus_per_pod", "GPUs of each pod"),
        column("req_time_s", "expected run time, where it is not less than the run time", "seconds"),
        column("cpu_milli_per_pod", "CPU of each pod", "millicores"),
        column("mem_mib_per_pod", "memory of each pod", "MiB"),
        column("user", "label `user`"),
        column("group", "label `group`"),
        column("queue", "leaf queue; empty: `default`"),
        column("status"),
        column("logged_wait_s"),
    ),
)
MAX_GPUS_PER_POD = 8
MAX_PODS = 100_000

SHAPE = ("pods", "gpus_per_pod", "cpu_milli_per_pod", "mem_mib_per_pod")
TASK = Template(Task(name=""), "name", "spec")
WORKLOAD = Template(Workload(name=""), "name", "queue", "tasks", "created_at", "expected_runtime", "labels")

NO_RUNTIME = "negative run time"

_amount = partial(whole, low=0, high=10**12)
_pods = partial(whole, low=1, high=MAX_PODS)


def read(source: TraceSource, options: ReadOptions) -> Trace:
    """Read a table of gangs: ``pods`` pods of ``gpus_per_pod`` GPUs, all or nothing, queue = virtual cluster.

    A pod of more than eight GPUs is split into pods of eight and one of the rest, with its CPU and memory in
    proportion. Jobs with a negative run time are dropped and counted. ``expectedRuntime`` is the larger of
    requested and actual run time; where none was requested, as in all of Philly, it is not set.

    Raises
    ------
    InvalidInputError
        A line is malformed.
    """
    problems = ProblemList(source)
    names = UniqueNames()
    gangs, limit = _Gangs(), TaskLimit()
    dropped: Counter[str] = Counter()
    keyed: list[tuple[tuple[int, int], TraceJob]] = []
    records = 0
    table = TraceTableReader(source, JOBS, problems, mapping=options.mapping)
    for row in table.rows():
        records += 1
        submitted = row.need("submit_s", micros, 0)
        if row.ok and not options.holds(submitted):
            continue
        runtime = row.need("runtime_s", micros, 0)
        specs = gangs.specs(row)
        limit.take(source, row.line, len(specs))
        job = _job(row, submitted, runtime, specs)
        names.check(row, "job_id", job.record)
        if runtime < 0:
            dropped[NO_RUNTIME] += 1
        else:
            keyed.append(((job.workload.created_at, row.line), job))
    problems.raise_if_any()
    keyed.sort(key=lambda pair: pair[0])
    jobs = tuple(job for _, job in keyed)
    return Trace(
        format="philly",
        jobs=jobs,
        dropped=dropped.total(),
        drop_reasons=dict(dropped),
        records=records,
        notes=table.notes(),
    )


class _Gangs:
    """Pod specs of a gang, worked out once for equal rows."""

    def __init__(self) -> None:
        self._cache = SpecCache()
        self._known: dict[tuple[str, ...], list[TaskSpec]] = {}

    def specs(self, row: TableRow) -> list[TaskSpec]:
        """Give the specs of a row's pods."""
        key = tuple(map(row.text, SHAPE))
        known = self._known.get(key)
        if known is None:
            known = self._read(row)
            if row.ok:
                self._known[key] = known
        return known

    def _read(self, row: TableRow) -> list[TaskSpec]:
        pods = row.need("pods", _pods, 1)
        gpus = row.need("gpus_per_pod", _amount, 0)
        cpu = row.value("cpu_milli_per_pod", _amount, 0)
        memory = row.value("mem_mib_per_pod", _amount, 0)
        if gpus <= MAX_GPUS_PER_POD:
            return [self._cache.spec(PodRequest(cpu, memory, gpus))] * pods
        if pods * gpus > MAX_PODS:
            row.reject("gpus_per_pod", f"{pods} pods of {gpus} GPUs are more than {MAX_PODS}")
            return []
        parts = [MAX_GPUS_PER_POD] * (gpus // MAX_GPUS_PER_POD)
        parts += [gpus % MAX_GPUS_PER_POD] if gpus % MAX_GPUS_PER_POD else []
        return [self._cache.spec(PodRequest(cpu * part // gpus, memory * part // gpus, part)) for part in parts] * pods


def _job(row: TableRow, submitted: int, runtime: int, specs: list[TaskSpec]) -> TraceJob:
    name = row.need("job_id", plain_name, "")
    requested = row.value("req_time_s", micros, -1)
    workload = WORKLOAD.make(
        name,
        row.value("queue", plain_name, DEFAULT_QUEUE),
        tuple(TASK.make(f"{name}-{index}", spec) for index, spec in enumerate(specs)),
        submitted,
        max(requested, runtime) if requested >= 0 else None,
        row.labels() | {key: value for key in ("user", "group") if (value := row.text(key))},
    )
    return TraceJob(workload, runtime, name)


def _recognises(_name: str, head: str) -> bool:
    return set(JOBS.needed) <= set(first_line(head))


FORMAT = TraceFormat(
    "philly",
    _recognises,
    read,
    "Microsoft's Philly trace of 2017 as a table of jobs, as several simulators pass it on. It is made of the file "
    "that [Microsoft publishes](https://github.com/msr-fiddle/philly-traces), and that is read too: `philly-json`.",
    (JOBS,),
    (
        "A pod of more than eight GPUs is split into pods of eight and one of the rest.",
        "Jobs with a negative run time are dropped.",
    ),
)
