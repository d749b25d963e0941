"""Jobs of a log that says when each was submitted, started and ended, made into a trace.

All logs are treated alike: what never started is dropped, since nothing says how long it would have run; what was
still running when the log ends, ends with it; a job that ran several times ran for the sum of these.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from tenure.model.cluster import DEFAULT_QUEUE
from tenure.model.workload import Task, TaskSpec, Workload
from tenure.simulator.traces.records import ReadOptions, Trace, TraceJob
from tenure.simulator.traces.source import TraceSource
from tenure.simulator.traces.specs import SpecCache
from tenure.simulator.traces.spreading import PodGroups
from tenure.simulator.traces.table import TaskLimit
from tenure.simulator.traces.template import Template

MAX_JOBS = 1_000_000
"""Jobs of a log that are read."""

NEVER_STARTED = "never started"
NO_END = "no end recorded"
NO_RUNTIME = "negative run time"
NO_PODS = "asks for nothing"

RULES = (
    "A job that never started is dropped: nothing says how long it would have run.",
    "A job that was still running when the log ends, ends with it: at the last time that stands in the log.",
    "A job that ran several times ran for the sum of these.",
)
"""What holds for all of these logs, as the page about traces says it."""

TASK = Template(Task(name=""), "name", "spec")
WORKLOAD = Template(Workload(name=""), "name", "queue", "priority", "tasks", "created_at", "expected_runtime", "labels")


@dataclass(slots=True)
class LoggedJob:
    """A job as a log tells it; times are µs on the log's own axis, durations µs.

    ``held`` is how long its finished runs took together, ``open_since`` when a run began that has no end in the log;
    a job has started if it has either.
    """

    line: int
    name: str
    submitted: int
    pods: PodGroups
    queue: str = ""
    priority: int = 0
    expected: int | None = None
    held: int | None = None
    open_since: int | None = None
    labels: dict[str, str] = field(default_factory=dict)

    def ran(self, start: int | None, end: int | None) -> None:
        """Count a run; one without a start was none, one without an end goes on."""
        if start is None:
            return
        if end is None:
            self.open_since = start
        else:
            self.held = (self.held or 0) + end - start


class LoggedTrace:
    """Collects the jobs of a log, and makes a trace of them.

    Where times are ``dated``, second 0 of the trace is the first submission in the log.
    """

    def __init__(self, source: TraceSource, options: ReadOptions, format_name: str, *, dated: bool) -> None:
        self.jobs: list[LoggedJob] = []
        self.dropped: Counter[str] = Counter()
        self.records = 0
        self.last = 0
        self._source = source
        self._options = options
        self._format = format_name
        self._dated = dated
        self._specs = SpecCache()

    def add(self, job: LoggedJob) -> None:
        """Add a job.

        Raises
        ------
        InvalidInputError
            They are too many.
        """
        if len(self.jobs) >= MAX_JOBS:
            raise self._source.fail(f"more than {MAX_JOBS:,} jobs up to here: cut the log into parts", job.line)
        self.jobs.append(job)
        self.saw(job.submitted)

    def saw(self, *times: int | None) -> None:
        """Note times that stand in the log: the last of all is where it ends."""
        self.last = max(self.last, *(time for time in times if time is not None), self.last)

    def drop(self, reason: str) -> None:
        """Count a record that becomes no job."""
        self.dropped[reason] += 1

    def trace(self, notes: tuple[str, ...] = ()) -> Trace:
        """Give what was collected.

        Raises
        ------
        InvalidInputError
            The tasks of the jobs that are kept are too many.
        """
        zero = min((job.submitted for job in self.jobs), default=0) if self._dated else 0
        limit, running = TaskLimit(), 0
        found: list[TraceJob] = []
        for job in sorted(self.jobs, key=lambda job: (job.submitted, job.line)):
            submitted = job.submitted - zero
            if not self._options.holds(submitted):
                continue
            runtime = self._runtime(job)
            if runtime is None:
                continue
            limit.take(self._source, job.line, sum(number for _, number in job.pods))
            running += job.open_since is not None
            found.append(self._made(job, submitted, runtime))
        if running:
            what = "1 job was" if running == 1 else f"{running:,} jobs were"
            notes = (*notes, f"{what} still running where the log ends; that counts as the end of the run")
        return Trace(
            format=self._format,
            jobs=tuple(found),
            dropped=self.dropped.total(),
            drop_reasons=dict(sorted(self.dropped.items())),
            records=self.records,
            notes=notes,
        )

    def _runtime(self, job: LoggedJob) -> int | None:
        """Give how long a job ran, or count why it is none."""
        held = job.held
        if job.open_since is not None:
            held = (held or 0) + self.last - job.open_since
        if held is None or not job.pods:
            self.drop(NEVER_STARTED if held is None else NO_PODS)
            return None
        if held < 0:
            self.drop(NO_RUNTIME)
            return None
        return held

    def _made(self, job: LoggedJob, submitted: int, runtime: int) -> TraceJob:
        specs: list[TaskSpec] = []
        for request, number in job.pods:
            specs += [self._specs.spec(request)] * number
        workload = WORKLOAD.make(
            job.name,
            job.queue or DEFAULT_QUEUE,
            job.priority,
            tuple([TASK.make(f"{job.name}-{index}", spec) for index, spec in enumerate(specs)]),
            submitted,
            job.expected,
            job.labels,
        )
        return TraceJob(workload, runtime, job.name)
