"""Clusters at real scale: a generated load is simulated, and each state in which something was evicted is varied.

They are the counterpart of small clusters: 128 nodes of 8 GPUs, gangs of up to 128 tasks, four queues, so that there
are more candidates than any search looks at all sets of.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from itertools import groupby

from tests.properties import adding_up
from tests.properties.adding_up import ACTIONS, HALF, MINUTE

from tenure.model.workload import Checkpoint, Phase
from tenure.simulator.generate import GeneratorConfig, cluster_for, generate
from tenure.simulator.log import BIND, DROP, END, EVICT, SUBMIT
from tenure.simulator.run import Simulation, SimulationSetup

GPUS = 1024


def states(seed, jobs):
    """Simulate a load drawn from a seed; give the cluster as it stood before each plan that evicted something."""
    config = GeneratorConfig(jobs=jobs, load=0.9, capacity=GPUS, unit="gpu", node_size=8)
    log = Simulation(SimulationSetup(cluster_for(config)), generate(config, seed)).run()
    base, live = log.setup.cluster, {}
    for at, events in groupby(log.log.events, key=lambda event: event[1]):
        before, decided = [], list(events)
        while decided and decided[0][0] in (END, SUBMIT):
            before.append(decided.pop(0))
        _go_on(live, before)
        if at and any(event[0] == EVICT for event in decided):
            now = base.now + at
            yield replace(base, now=now, workloads=tuple(job.as_model(log, number) for number, job in live.items()))
        _go_on(live, decided)


def varied(cluster, seed):
    """Give a cluster other settings, opt-outs, expected runtimes and minima, drawn from a seed; a quota may fall.

    As on small clusters no clock strikes while it is played: everything began half a minute before a whole minute.
    """
    rng = random.Random(f"{seed} {cluster.now}")
    quota = rng.random() < 0.3
    drawn = adding_up.settings(rng, quota=quota)
    disruption = replace(cluster.settings.disruption, budgets=drawn.disruption.budgets)
    settings = replace(drawn, actions=ACTIONS, disruption=disruption, eviction_notice=0)
    queues = tuple(replace(q, priority=rng.choice([q.priority, q.priority, 50])) for q in cluster.queues)
    workloads = tuple(_varied(rng, w) for w in cluster.workloads)
    found = replace(cluster, settings=settings, queues=queues, workloads=workloads)
    return adding_up.lowered(rng, found) if quota else found


def _varied(rng, workload):
    ran = workload.started_at is not None
    return replace(
        workload,
        expected_runtime=rng.choice([None, None, 5 * MINUTE, 30 * MINUTE, 100 * MINUTE]),
        min_member=rng.choice([workload.min_member, workload.min_member, rng.randint(1, len(workload.tasks))]),
        allow_preemption=rng.random() > 0.1,
        checkpoint=rng.choice([workload.checkpoint, Checkpoint(interval=10 * MINUTE, restart_overhead=MINUTE)]),
        created_at=workload.created_at - HALF - 1,
        started_at=workload.started_at - HALF if ran else None,
        tasks=tuple(replace(t, started_at=t.started_at - HALF) if t.started_at else t for t in workload.tasks),
    )


@dataclass
class _Live:
    """A job that was submitted and has not ended: where its tasks run and since when, and when its run began."""

    created: int
    runs: dict = field(default_factory=dict)
    since: int | None = None

    def as_model(self, result, number):
        """Give its workload as a cluster file would have it."""
        base, model = result.setup.cluster, result.log.workloads[number]
        tasks = list(model.tasks)
        for index, (node, devices, at) in self.runs.items():
            tasks[index] = replace(
                tasks[index], phase=Phase.RUNNING, node=base.nodes[node].name, devices=tuple(devices or ()),
                started_at=base.now + at,
            )  # fmt: skip
        since = None if self.since is None else base.now + self.since
        return replace(model, tasks=tuple(tasks), created_at=base.now + self.created, started_at=since)


def _go_on(live, events):
    """Carry events of the log out on the jobs that live."""
    for kind, at, number, task, node, extra in events:
        if kind == SUBMIT:
            live[number] = _Live(at)
        elif kind == BIND:
            job = live[number]
            job.since = at if job.since is None else job.since
            job.runs[task] = node, extra, at
        elif kind == DROP:
            del live[number]
        elif kind in (END, EVICT):
            job = live[number]
            del job.runs[task]
            if not job.runs and kind == END:
                del live[number]
            elif not job.runs:
                job.since = None
