"""One replay of the experiment: what is replayed, under which policy, and which figures come out."""

from __future__ import annotations

import functools
import random
import time
from collections import Counter
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from tenure.model.cluster import Cluster
from tenure.model.node import Node
from tenure.model.queue import Queue
from tenure.model.settings import (
    BreakerSettings,
    MinRuntimeSettings,
    PatienceRule,
    Settings,
    SurvivalSettings,
    WorthSettings,
)
from tenure.model.values.resources import CPU, GPU, MILLI
from tenure.model.workload import Checkpoint
from tenure.simulator.checker import check
from tenure.simulator.due_jobs import due_jobs
from tenure.simulator.generate import GeneratorConfig, cluster_for, generate
from tenure.simulator.log import EventLog
from tenure.simulator.metrics import summarize
from tenure.simulator.outcomes import outcomes_of
from tenure.simulator.run import Simulation, SimulationSetup, prepare
from tenure.simulator.shaking import shake
from tenure.simulator.trace import Trace, read_trace, scale_load, slice_trace

SECOND, MINUTE, HOUR, DAY = 1_000_000, 60_000_000, 3_600_000_000, 86_400
RESTART, SAVES = 62 * SECOND, 30 * MINUTE
SHAKEN = 30 * SECOND
"""How much a job is submitted earlier or later, at most, for each seed but 0."""

BASE = "no reclaim"
"""The policy that the others are held against."""

POLICIES: dict[str, Settings] = {
    BASE: Settings(actions=("allocate",)),
    "youngest first": Settings(victims="youngest"),
    "cheapest first": Settings(),
    "shield 30m": Settings(reclaim_min_runtime=30 * MINUTE),
    "price 30m": Settings(reclaim_min_runtime=30 * MINUTE, min_runtime=MinRuntimeSettings(mode="price")),
    "notice 2m": Settings(eviction_notice=2 * MINUTE),
    "patience": Settings(worth=WorthSettings(patience={"reclaim": PatienceRule()})),
    "factor 1, 4h": Settings(
        worth=WorthSettings(patience={"reclaim": PatienceRule(factor=1, ahead=5 * MINUTE, at_most=4 * HOUR)})
    ),
    "patience, at most 4": Settings(
        worth=WorthSettings(patience={"reclaim": PatienceRule()}, max_evictions=4, forgotten_after=30 * 24 * HOUR)
    ),
    "patience, survival": Settings(
        worth=WorthSettings(patience={"reclaim": PatienceRule(trust=0.5)}, survival=SurvivalSettings(enabled=True))
    ),
    "cheapest, paused": Settings(worth=WorthSettings(breaker=BreakerSettings(enabled=True))),
    "patience, notice 2m": Settings(
        eviction_notice=2 * MINUTE, worth=WorthSettings(patience={"reclaim": PatienceRule()})
    ),
}
"""What is compared; without reclaim nobody gives way. ``patience`` is the rule as it is unless set, ``factor 1,
4h`` one that evicts sooner. ``at most 4``: evictions of a job, remembered for a month. ``paused``: where it loses.
``survival``: patience trusts an estimate of the start by half, which goes by how long other jobs of the queue ran."""

NONE = "none save"
MIXES = {NONE: 0.0, "half save": 0.5, "all save": 1.0}
"""The share of jobs that make a checkpoint every half hour."""


@dataclass(frozen=True, kw_only=True)
class Replay:
    """What is replayed: a trace or a generated workload, by its load; the share that saves; the policy; the seed.

    ``split``: of the guarantees, ``even``, or ``demand``, by the work that the queues' jobs ask for.
    """

    source: str
    load: float
    mix: str
    policy: str
    seed: int = 0
    split: Literal["even", "demand"] = "even"
    begin: float | None = None
    end: float | None = None
    nodes: int = 56
    queues: int = 11
    jobs: int = 5000


@dataclass(frozen=True)
class Figures:
    """What comes out: times in hours, ``lost`` in weighted hours, ``destroyed`` as a share of all work.

    ``due`` are the jobs that, without reclaim, come while their queue would stay within its guaranteed with them: the
    same jobs under each policy. Of them there are their mean wait, and their mean time from arrival to end;
    ``due_waited`` is what all of them waited in weighted hours, that is, times the resources that they ask for.
    ``most`` is how often one job was evicted.
    """

    jobs: int
    lost: float
    destroyed: float
    evictions: int
    most: int
    due: int
    due_wait: float
    due_end: float
    due_waited: float
    wait: float
    violations: int
    seconds: float


def simulate(replay: Replay) -> dict[str, Any]:
    """Replay, and give the figures as plain data."""
    return asdict(replayed(replay))


def replayed(replay: Replay) -> Figures:
    """Replay a workload under a policy."""
    settings = POLICIES[replay.policy]
    cluster, trace = _workload(replay)
    began = time.process_time()
    cluster, log = _logged(cluster, trace, replay.policy)
    seconds = time.process_time() - began
    outcomes = outcomes_of(log, trace)
    due = _due(cluster, log) if replay.policy == BASE else _due_without_reclaim(replace(replay, policy=BASE, mix=NONE))
    started = [j for j in range(len(outcomes.names)) if outcomes.first_start[j] >= 0]
    waits = {j: (int(outcomes.first_start[j]) - int(outcomes.submit[j])) / HOUR for j in started}
    ends = [(int(outcomes.end[j]) - int(outcomes.submit[j])) / HOUR for j in due if outcomes.end[j] >= 0]
    violations = check(log, cluster.nodes, queues=cluster.queues).total
    due_waited = sum(_rate(outcomes.workloads[j].tasks, settings) * waits[j] for j in sorted(due) if j in waits)
    summary = summarize(outcomes, trace, cluster.nodes, violations=violations, wall_s=seconds)
    lost = _weighted(summary["lost"], settings) / 3600
    work = sum(_rate(job.workload.tasks, settings) * (job.runtime or 0) for job in trace.jobs) / HOUR
    return Figures(
        len(trace.jobs), lost, lost / max(work + lost, 1e-9), sum(outcomes.by_cause.values()),
        int(outcomes.evictions.max(initial=0)), len(due), _mean([waits[j] for j in due if j in waits]), _mean(ends),
        due_waited, _mean(list(waits.values())), violations, seconds,
    )  # fmt: skip


@functools.lru_cache(maxsize=8)
def _due_without_reclaim(replay: Replay) -> frozenset[int]:
    """Give the jobs that are due, by a replay without reclaim; it takes little time beside the others."""
    return _due(*_logged(*_workload(replay), replay.policy))


def _due(cluster: Cluster, log: EventLog) -> frozenset[int]:
    guaranteed = next((name for q in cluster.queues for name in q.guaranteed), GPU)
    return frozenset(due_jobs(log, cluster.queues, guaranteed))


def _logged(cluster: Cluster, trace: Trace, policy: str) -> tuple[Cluster, EventLog]:
    """Replay under a policy; gives the cluster with its settings, and what happened."""
    settings = POLICIES[policy]
    actions = settings.actions if settings.actions == ("allocate",) else ("allocate", "reclaim")
    cluster = prepare(replace(cluster, settings=replace(settings, actions=actions)), trace)
    return cluster, Simulation(SimulationSetup(cluster), trace).run().log


def _workload(replay: Replay) -> tuple[Cluster, Trace]:
    """Give the cluster and the jobs of a replay."""
    if replay.source == "generated":
        config = GeneratorConfig(jobs=replay.jobs, load=replay.load, capacity=256, saving=0.0, shared=0.0)
        cluster, trace = cluster_for(config), generate(config, seed=replay.seed + 1)
    else:
        cluster, trace = _traced(replay)
        trace = scale_load(shake(trace, SHAKEN, replay.seed), replay.load)
    draw = random.Random(f"{replay.seed} {replay.mix}")  # noqa: S311  a draw, no secret
    saving = [draw.random() < MIXES[replay.mix] for _ in trace.jobs]
    points = {s: Checkpoint(interval=SAVES if s else None, restart_overhead=RESTART) for s in (False, True)}
    jobs = (
        replace(job, workload=replace(job.workload, checkpoint=points[s]))
        for job, s in zip(trace.jobs, saving, strict=True)
    )
    return cluster, replace(trace, jobs=tuple(jobs))


def _traced(replay: Replay) -> tuple[Cluster, Trace]:
    """Give the jobs of the largest queues of a trace, and nodes of 8 GPUs, or the trace's own machine."""
    whole = read_trace(replay.source)
    if replay.begin is not None or replay.end is not None:
        begin = (replay.begin or 0.0) * DAY
        whole = slice_trace(whole, begin, (replay.end or 1e6) * DAY)
    jobs = [j for j in whole.jobs if j.runtime]
    if whole.format == "swf":  # the log's users are spread over as many queues as are asked for
        jobs = [replace(j, workload=replace(j.workload, queue=f"part-{_user(j) % replay.queues}")) for j in jobs]
    largest = [name for name, _ in Counter(j.workload.queue for j in jobs).most_common(replay.queues)]
    trace = replace(whole, jobs=tuple(j for j in jobs if j.workload.queue in largest))
    nodes = whole.nodes or tuple(Node(name=f"n{n:03}", allocatable={GPU: 8}) for n in range(replay.nodes))
    resource = CPU if whole.format == "swf" else GPU
    capacity = sum(n.allocatable.get(resource, 0) for n in nodes) * (MILLI if resource == GPU else 1)
    wanted = dict.fromkeys(largest, 1.0)
    if replay.split == "demand":
        wanted = dict.fromkeys(largest, 0.0)
        for job in trace.jobs:
            asked = sum(dict(t.spec.requests).get(resource, 0) for t in job.workload.tasks)
            wanted[job.workload.queue] += asked * (job.runtime or 0)
    each = {name: int(capacity * part / sum(wanted.values())) // MILLI * MILLI for name, part in wanted.items()}
    queues = tuple(Queue(name=name, guaranteed={resource: each[name]}) for name in largest)
    return Cluster(now=0, nodes=nodes, queues=queues), trace


def _user(job: Any) -> int:
    text = job.workload.labels.get("user", "0")
    return int(text) if text.isdigit() else sum(map(ord, text))


def _rate(tasks: Any, settings: Settings) -> float:
    """Weighted resources that tasks ask for."""
    prices = settings.disruption.cost
    found = 0.0
    for task in tasks:
        for name, amount in task.spec.requests:
            found += prices.get(name, 0.0) * amount / (1000 if name == CPU else 1)
    return found


def _weighted(amounts: Any, settings: Settings) -> float:
    """Weigh resource-seconds by resource."""
    return sum(settings.disruption.cost.get(name, 0.0) * amount for name, amount in amounts.items())


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0
