"""From the model's numbers to gangs of pods in queues.

The model knows rigid jobs with a size, a run time and an arrival. What is added for clusters of today:

* The size is in GPUs (or processors). A job that needs more than a node has is a gang of pods of a whole node each,
  its size rounded up to whole nodes; a smaller one is a single pod.
* A part of the one-GPU jobs asks for a quarter or a half of a GPU, as a large part of the pods in shared GPU clusters
  does (Weng et al., USENIX ATC 2023).
* Queue *k* gets jobs in proportion to 1/k, and its users get theirs likewise; ``guaranteed`` of a queue in the matching
  cluster file is its part of the capacity.
* Priorities: 70% of the jobs have 0, 25% have 50, and 5% have 100 and are not preemptible. One that is larger than what
  its queue is guaranteed has 50 instead of 100: what may not be taken back is not lent, so it could never start.
* ``expectedRuntime`` is the user's estimate (`tenure.simulator.generate.estimates`).
* A part of the jobs makes checkpoints, every 10, 30 or 60 minutes; a restart takes a minute.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tenure.model.cluster import Cluster
from tenure.model.node import Node
from tenure.model.queue import Queue
from tenure.model.values.resources import CPU, GPU, MEMORY, MILLI, PODS
from tenure.model.workload import Checkpoint, Task, Workload
from tenure.simulator.generate.config import DEFAULT_JOBS, DEFAULT_LOAD, MAX_JOBS, GeneratorConfig, TooManyJobsError
from tenure.simulator.generate.estimates import draw_estimates
from tenure.simulator.generate.lublin import (
    DAY_S,
    Floats,
    Ints,
    draw_gaps,
    draw_runtimes,
    draw_sizes,
    with_daily_cycle,
)
from tenure.simulator.traces.records import SECOND, Trace, TraceJob
from tenure.simulator.traces.specs import MIB, PodRequest, SpecCache

PRIORITIES = (0, 50, 100)
PRIORITY_SHARES = (0.7, 0.25, 0.05)
FRACTIONS = (250, 500)
CHECKPOINTS_S = (600, 1800, 3600)
RESTART = 60 * SECOND

CORES_PER_GPU = 8
GIB_PER_GPU = 64
GIB_PER_CORE = 4
NODE_CORES_PER_GPU = 12
NODE_GIB_PER_GPU = 96
NODE_PODS = 110
GIB = 1024 * MIB

BLOCK = 1024
"""Jobs that are drawn at once where their number follows from the load."""


@dataclass(frozen=True, slots=True)
class _Jobs:
    """What the model draws: sizes in devices or processors, in thousandths of them, and run times in seconds."""

    sizes: Ints
    milli: Ints
    runtimes: Floats

    @property
    def work(self) -> Floats:
        """Device-seconds of each job."""
        work: Floats = self.sizes * self.milli / MILLI * self.runtimes
        return work

    def first(self, count: int) -> _Jobs:
        """Keep the first jobs."""
        return _Jobs(self.sizes[:count], self.milli[:count], self.runtimes[:count])


def generate(config: GeneratorConfig, seed: int) -> Trace:
    """Generate a workload; the same configuration and seed give the same one (numpy's PCG64, one stream per aspect).

    Raises
    ------
    ValueError
        The configuration is not valid; the message says why. `TooManyJobsError` where it only turns out on the way.
    """
    problems = config.problems()
    if problems:
        raise ValueError("; ".join(problems))
    jobs_stream, gap_stream, user_stream, detail_stream = (
        np.random.Generator(np.random.PCG64(child)) for child in np.random.SeedSequence(seed).spawn(4)
    )
    jobs = _draw_jobs(jobs_stream, config)
    arrivals = _arrivals(gap_stream, config, jobs)
    estimates = draw_estimates(user_stream, jobs.runtimes)
    return Trace(
        format="tenure",
        jobs=_trace_jobs(detail_stream, config, jobs, arrivals, estimates),
        nodes=_nodes(config),
        records=len(jobs.sizes),
    )


def _draw_jobs(generator: np.random.Generator, config: GeneratorConfig) -> _Jobs:
    if config.days is None or config.load is None:
        return _block(generator, config, config.jobs or DEFAULT_JOBS)
    target = config.load * config.capacity * config.days * DAY_S
    drawn = _block(generator, config, BLOCK)
    while drawn.work.sum() < target:
        if len(drawn.sizes) > MAX_JOBS:
            raise TooManyJobsError(f"these days, load and capacity take more than {MAX_JOBS} jobs")
        more = _block(generator, config, max(BLOCK, len(drawn.sizes)))
        drawn = _Jobs(
            np.concatenate((drawn.sizes, more.sizes)),
            np.concatenate((drawn.milli, more.milli)),
            np.concatenate((drawn.runtimes, more.runtimes)),
        )
    return drawn.first(int(np.searchsorted(np.cumsum(drawn.work), target)) + 1)


def _block(generator: np.random.Generator, config: GeneratorConfig, count: int) -> _Jobs:
    sizes = draw_sizes(generator, count, config.capacity)
    runtimes = np.maximum(np.rint(draw_runtimes(generator, sizes)), 1.0)
    nodes = -(-sizes // config.node_size)
    most = max(config.capacity // config.node_size, 1)
    sizes = np.where(sizes > config.node_size, np.minimum(nodes, most) * config.node_size, sizes)
    shared = (generator.random(count) < config.shared) & (sizes == 1) & (config.unit == "gpu")
    parts = np.array(FRACTIONS)[generator.integers(0, len(FRACTIONS), count)]
    return _Jobs(sizes, np.where(shared, parts, MILLI), runtimes)


def _arrivals(generator: np.random.Generator, config: GeneratorConfig, jobs: _Jobs) -> Ints:
    """Arrival times in whole seconds. Time is stretched before the daily cycle is laid over it, so that days stay."""
    gaps = draw_gaps(generator, len(jobs.sizes))
    even = np.cumsum(gaps) - gaps[0]
    span = even[-1]
    if span > 0:
        even *= _wanted_span(config, jobs) / span
    return np.rint(with_daily_cycle(even)).astype(np.int64)


def _wanted_span(config: GeneratorConfig, jobs: _Jobs) -> float:
    if config.days is not None:
        return config.days * DAY_S
    load = DEFAULT_LOAD if config.load is None else config.load
    return float(jobs.work.sum()) / (load * config.capacity)


def _shares(count: int) -> Floats:
    parts = 1.0 / np.arange(1, count + 1)
    shares: Floats = parts / parts.sum()
    return shares


def _guaranteed(config: GeneratorConfig) -> list[int]:
    """Whole devices or processors of each queue, in thousandths."""
    return [int(config.capacity * share) * MILLI for share in _shares(config.queues)]


def _trace_jobs(
    generator: np.random.Generator, config: GeneratorConfig, jobs: _Jobs, arrivals: Ints, estimates: Ints
) -> tuple[TraceJob, ...]:
    count = len(jobs.sizes)
    specs = SpecCache()
    queues = generator.choice(config.queues, count, p=_shares(config.queues)) + 1
    users = generator.choice(config.users, count, p=_shares(config.users)) + 1
    priorities = generator.choice(PRIORITIES, count, p=PRIORITY_SHARES)
    saves = generator.random(count) < config.saving
    intervals = generator.choice(CHECKPOINTS_S, count)
    unborrowed = jobs.sizes * jobs.milli <= np.array(_guaranteed(config))[queues - 1]
    priorities = np.where(unborrowed, priorities, np.minimum(priorities, PRIORITIES[1]))
    made = []
    for index in range(count):
        pods, ask = _pods(config, int(jobs.sizes[index]), int(jobs.milli[index]))
        name = f"job-{index + 1}"
        interval = int(intervals[index]) * SECOND if saves[index] else None
        workload = Workload(
            name=name,
            queue=f"queue-{queues[index]}",
            priority=int(priorities[index]),
            tasks=tuple(Task(name=f"{name}-{pod}", spec=specs.spec(ask)) for pod in range(pods)),
            created_at=int(arrivals[index]) * SECOND,
            expected_runtime=int(estimates[index]) * SECOND,
            checkpoint=Checkpoint(interval=interval, restart_overhead=RESTART),
            labels={"user": f"user-{queues[index]}-{users[index]}"},
        )
        made.append(TraceJob(workload, int(jobs.runtimes[index]) * SECOND, name))
    return tuple(made)


def _pods(config: GeneratorConfig, size: int, milli: int) -> tuple[int, PodRequest]:
    """How many pods a job has, and what each asks for."""
    pods = -(-size // config.node_size)
    each = size if pods == 1 else config.node_size
    if config.unit == "cpu":
        return pods, PodRequest(cpu_milli=each * MILLI, memory_mib=each * GIB_PER_CORE * 1024)
    cores = CORES_PER_GPU * each * milli
    return pods, PodRequest(
        cpu_milli=cores, memory_mib=GIB_PER_GPU * each * milli * 1024 // MILLI, gpus=each, milli=milli
    )


def _nodes(config: GeneratorConfig) -> tuple[Node, ...]:
    full, rest = divmod(config.capacity, config.node_size)
    sizes = [config.node_size] * full + ([rest] if rest else [])
    return tuple(Node(name=f"node-{index}", allocatable=_allocatable(config, size)) for index, size in enumerate(sizes))


def _allocatable(config: GeneratorConfig, size: int) -> dict[str, int]:
    if config.unit == "cpu":
        return {CPU: size * MILLI, MEMORY: size * GIB_PER_CORE * GIB, PODS: NODE_PODS}
    return {
        CPU: size * NODE_CORES_PER_GPU * MILLI,
        MEMORY: size * NODE_GIB_PER_GPU * GIB,
        GPU: size,
        PODS: NODE_PODS,
    }


def cluster_for(config: GeneratorConfig) -> Cluster:
    """Give the cluster that the workload is made for: its nodes, and its queues with their parts guaranteed."""
    resource = CPU if config.unit == "cpu" else GPU
    queues = tuple(
        Queue(name=f"queue-{index + 1}", guaranteed={resource: amount})
        for index, amount in enumerate(_guaranteed(config))
    )
    return Cluster(now=0, nodes=_nodes(config), queues=queues)


def offered_load(trace: Trace, config: GeneratorConfig) -> float | None:
    """Work of all jobs divided by capacity and the time between first and last arrival; ``None`` without such time."""
    span = trace.jobs[-1].workload.created_at - trace.jobs[0].workload.created_at if trace.jobs else 0
    resource = CPU if config.unit == "cpu" else GPU
    work = sum(_milli_of(job.workload, resource) * (job.runtime or 0) for job in trace.jobs)
    return work / MILLI / (config.capacity * span) if span else None


def _milli_of(workload: Workload, resource: str) -> int:
    """What a workload asks for, in millicores or milli-GPU."""
    total = 0
    for task in workload.tasks:
        share = task.spec.gpu_share
        amount = dict(task.spec.requests).get(resource, 0)
        whole = amount * MILLI if resource == GPU else amount
        total += whole if share is None or resource != GPU else share.milli * share.devices
    return total
