"""One scenario of the experiment: what is simulated, and which figures come out."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from tenure.model.cluster import Cluster
from tenure.model.node import Node
from tenure.model.queue import Queue
from tenure.model.settings import Action, LossSettings, Settings, WorthSettings
from tenure.model.values.resources import GPU, MILLI
from tenure.model.workload import Checkpoint
from tenure.simulator.checker import check
from tenure.simulator.due_jobs import due_jobs
from tenure.simulator.metrics import summarize
from tenure.simulator.outcomes import Outcomes, outcomes_of
from tenure.simulator.run import Simulation, SimulationSetup
from tenure.simulator.trace import Trace, TraceJob, read_trace, slice_trace

SECOND, HOUR, DAY = 1_000_000, 3_600_000_000, 86_400
NODES, PER_NODE, LARGEST, PARENTS = 56, 8, 11, 3
RESTART = 62 * SECOND
FIRST_DAY, LAST_DAY = 63.0, 114.0
"""2017-10-09 and 2017-11-29, as days of the trace."""
UNBOUNDED = LossSettings(workload=0, queue=0)
"""Nothing is protected for what it has lost."""


@dataclass(frozen=True)
class Scenario:
    """What is varied: durations in µs, None for no checkpoints; without ``reclaim`` nobody gives way."""

    reclaim: bool
    minimum: int
    interval: int | None
    victims: Literal["cost", "youngest"]


@dataclass(frozen=True)
class Period:
    """The part of the trace: days from its beginning."""

    trace: str
    begin: float
    end: float


@dataclass(frozen=True)
class Figures:
    """What comes out. ``due_wait`` and ``due_p95`` are the waits, in hours, of jobs that came while their queue would
    have stayed within its guaranteed with them; ``wait`` those of all. ``lost`` is in GPU-hours, restarts included.
    """

    scenario: Scenario
    jobs: int
    finished: int
    lost: float
    evictions: int
    due: int
    due_wait: float
    due_p95: float
    wait: float
    jain: float
    violations: int
    seconds: float


def simulate(task: tuple[Scenario, Period]) -> dict[str, Any]:
    """Replay the trace under one scenario, and give its figures as plain data."""
    return asdict(replayed(*task))


def figures_of(plain: dict[str, Any]) -> Figures:
    """Give the figures that plain data stand for."""
    return Figures(**{**plain, "scenario": Scenario(**plain["scenario"])})


def replayed(scenario: Scenario, period: Period) -> Figures:
    """Replay the trace under one scenario."""
    trace, names = jobs_of(period)
    trace = replace(trace, jobs=tuple(_saving(job, scenario.interval) for job in trace.jobs))
    cluster = cluster_of(scenario, names)
    began = time.process_time()
    result = Simulation(SimulationSetup(cluster), trace).run()
    seconds = time.process_time() - began
    violations = check(result.log, cluster.nodes, queues=cluster.queues).total
    outcomes = outcomes_of(result.log, trace)
    summary = summarize(outcomes, trace, cluster.nodes, violations=violations, wall_s=seconds)
    lost, evictions = summary["lost"], summary["evictions"]
    assert isinstance(lost, dict)
    assert isinstance(evictions, dict)
    due = due_jobs(result.log, cluster.queues)
    waits = _waits(outcomes, set(range(len(outcomes.names))))
    due_waits = _waits(outcomes, due)
    return Figures(
        scenario, len(trace.jobs), outcomes.state.count("finished"), lost.get(GPU, 0.0) / 3600,
        sum(evictions.values()), len(due_waits), _mean(due_waits), _high(due_waits), _mean(waits),
        float(str(summary["jain"])), violations, seconds,
    )  # fmt: skip


def jobs_of(period: Period) -> tuple[Trace, list[str]]:
    """Give the jobs of the eleven virtual clusters that have most jobs in the published period, and their names."""
    whole = read_trace(period.trace)
    most = Counter(j.workload.queue for j in slice_trace(whole, FIRST_DAY * DAY, LAST_DAY * DAY).jobs)
    names = [name for name, _ in most.most_common(LARGEST)]
    trace = slice_trace(whole, period.begin * DAY, period.end * DAY)
    return replace(trace, jobs=tuple(j for j in trace.jobs if j.workload.queue in names)), names


def cluster_of(scenario: Scenario, names: list[str]) -> Cluster:
    """Give 56 nodes of 8 GPUs, and each virtual cluster an equal guarantee; together they guarantee all but a rest."""
    share = NODES * PER_NODE // LARGEST
    parents = [Queue(name=f"part-{n}") for n in range(PARENTS)]
    leaves = [
        Queue(name=name, parent=parents[n % PARENTS].name, guaranteed={GPU: share * MILLI})
        for n, name in enumerate(names)
    ]
    nodes = tuple(Node(name=f"node-{n:02}", allocatable={GPU: PER_NODE}) for n in range(NODES))
    actions: tuple[Action, ...] = ("allocate", "reclaim") if scenario.reclaim else ("allocate",)
    settings = Settings(
        actions=actions, reclaim_min_runtime=scenario.minimum, victims=scenario.victims,
        worth=WorthSettings(max_evictions=0, max_lost=UNBOUNDED),  # what is seen is the minimum runtime alone
    )  # fmt: skip
    return Cluster(now=0, settings=settings, nodes=nodes, queues=(*parents, *leaves))


def _saving(job: TraceJob, interval: int | None) -> TraceJob:
    checkpoint = Checkpoint(interval=interval, restart_overhead=RESTART)
    return replace(job, workload=replace(job.workload, checkpoint=checkpoint))


def _waits(outcomes: Outcomes, jobs: set[int]) -> list[float]:
    """Waits in hours of those that started, sorted."""
    pairs = ((int(outcomes.first_start[j]), int(outcomes.submit[j])) for j in jobs)
    return sorted((start - came) / HOUR for start, came in pairs if start >= 0)


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _high(values: list[float]) -> float:
    return values[min(len(values) - 1, int(0.95 * len(values)))] if values else 0.0
