"""EASY on many nodes, jobs of several tasks, queue trees: every start and every node as an independent pass has it."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from tests.builders import SECOND, node, queue, spec, workload
from tests.effort import tries
from tests.simulator.easy_reference import simulate

from tenure.model.cluster import Cluster
from tenure.model.settings import Settings
from tenure.simulator.log import BIND
from tenure.simulator.run import Simulation, SimulationSetup
from tenure.simulator.traces.records import Trace, TraceJob

MACHINE = tuple(node(f"n{i:02}", cpu=8) for i in range(13))
QUEUES = {
    "two equal queues": (queue("a"), queue("b")),
    "one before the other, which is limited": (queue("a", priority=200), queue("b", max={"cpu": 72})),
    "guarantees": (queue("a", guaranteed={"cpu": 64}), queue("b", guaranteed={"cpu": 40}, weight=2.0)),
    "below one parent": (queue("top"), queue("a", "top"), queue("b", "top", max={"cpu": 80})),
}


def drawn_jobs(seed, count, *, estimated):
    """Jobs of 1 to 9 tasks that arrive in bursts; ``estimated``: the share of them that announce a run time."""
    draw = random.Random(seed)
    jobs, now = [], 0
    for number in range(count):
        now += draw.choice((0, 0, 1, 5, 40)) * SECOND
        runtime = draw.choice((3, 20, 60, 200)) * SECOND
        announced = runtime * draw.choice((1, 1, 2, 5)) if draw.random() < 0.9 else runtime // 2
        one = workload(
            f"j{number}",
            tasks=draw.choice((1, 1, 2, 3, 5, 9)),
            of=spec(cpu=draw.choice((1, 2, 3, 5, 8))),
            queue=draw.choice("ab"),
            priority=draw.choice((0, 0, 0, 10)),
        )
        known = announced if draw.random() < estimated else None
        jobs.append((replace(one, created_at=now, expected_runtime=known), runtime))
    return jobs


def starts_of(cluster, jobs):
    """Run the simulator; time and node by task of every start."""
    trace = Trace("test", tuple(TraceJob(w, runtime, w.name) for w, runtime in jobs))
    found = {}
    for kind, at, job, task, x, _ in Simulation(SimulationSetup(cluster), trace).run().log.events:
        if kind == BIND:
            w = jobs[job][0]
            found.setdefault(w.key, (at, {}))[1][w.tasks[task].name] = cluster.nodes[x].name
    return found


def machine(queues, backfill="easy"):
    """Give 13 nodes of 8 CPUs."""
    return Cluster(now=0, nodes=MACHINE, queues=queues, settings=Settings(backfill=backfill, actions=("allocate",)))


@pytest.mark.parametrize("seed", range(tries(1, 20)))
@pytest.mark.parametrize("estimated", [1.0, 0.7])
@pytest.mark.parametrize("queues", QUEUES.values(), ids=QUEUES)
def test_every_start_and_node_is_the_references(queues, estimated, seed):
    jobs = drawn_jobs(seed, 60, estimated=estimated)
    expected = simulate(machine(queues), jobs)
    assert starts_of(machine(queues), jobs) == expected
    assert len(expected) == len(jobs)


def test_these_jobs_leave_gaps_to_fill():
    """Without backfill the starts are others."""
    queues = QUEUES["two equal queues"]
    jobs = drawn_jobs(0, 60, estimated=1.0)
    assert starts_of(machine(queues, "none"), jobs) != starts_of(machine(queues), jobs)
