"""Philly on 56 nodes: the eleven largest virtual clusters as leaf queues under three parents."""

from __future__ import annotations

from collections import Counter

from tests.simulator.helpers import PHILLY, real_trace

from tenure.model.cluster import Cluster
from tenure.model.node import Node
from tenure.model.queue import Queue
from tenure.model.settings import Settings
from tenure.model.values.resources import GPU
from tenure.simulator.checker import check
from tenure.simulator.log import BIND, SUBMIT
from tenure.simulator.run import Simulation, SimulationSetup
from tenure.simulator.trace import read_trace, slice_trace

DAY = 24 * 3600
LARGEST = 11


def test_a_week_replays_with_whole_gangs_and_no_violations():
    whole = read_trace(real_trace(PHILLY))
    trace = slice_trace(whole, 63 * DAY, 70 * DAY)
    sizes = Counter(job.workload.queue for job in whole.jobs)
    names = [name for name, _ in sizes.most_common(LARGEST)]
    parents = [Queue(name=f"part-{n}") for n in range(3)]
    leaves = [Queue(name=name, parent=parents[n % 3].name) for n, name in enumerate(names)]
    nodes = tuple(Node(name=f"node-{n:02}", allocatable={GPU: 8}) for n in range(56))
    settings = Settings(actions=("allocate",))
    cluster = Cluster(now=0, settings=settings, nodes=nodes, queues=(*parents, *leaves))

    result = Simulation(SimulationSetup(cluster), trace).run()

    assert check(result.log, nodes, queues=cluster.queues, settings=cluster.settings).total == 0
    bound: dict[int, set[tuple[int, int]]] = {}
    for kind, at, job, task, *_ in result.log.events:
        if kind == BIND:
            bound.setdefault(job, set()).add((at, task))
    gangs = {job: len(result.log.workloads[job].tasks) for job in bound}
    assert all(len(tasks) == gangs[job] and len({at for at, _ in tasks}) == 1 for job, tasks in bound.items())
    submitted = sum(kind == SUBMIT for kind, *_ in result.log.events)
    assert submitted > 2_500
    assert len(bound) > 0.99 * submitted
    assert max(gangs.values()) > 1
