"""Patience against the best that could be done: every decision tried, with all run times known."""

from __future__ import annotations

import random
from dataclasses import replace

from tests.builders import cluster, node, queue, spec, workload
from tests.oracles.naive_worth import Job, best_cost

from tenure.model.settings import PatienceRule, WorthSettings
from tenure.simulator.log import BIND, EVICT
from tenure.simulator.run import Simulation, SimulationSetup
from tenure.simulator.traces.records import Trace, TraceJob

SECOND, HOUR = 1_000_000, 3600
ONE = spec(cpu=0, gpu=1)


def drawn(seed):
    rng = random.Random(seed)
    gpus = rng.randint(1, 3)
    comes = rng.sample(range(0, 4 * HOUR, 60), rng.randint(gpus + 1, 6))
    runs = [60 + 60 * round(rng.lognormvariate(3.5, 1.2)) for _ in comes]
    jobs = [
        Job(f"j{n}", rng.random() < 0.4, at, run) for n, (at, run) in enumerate(zip(sorted(comes), runs, strict=True))
    ]
    return jobs, gpus


def cost_of(jobs, gpus, worth):
    """Simulate, and give waits of due jobs and work that is destroyed, in GPU-seconds."""
    queues = [queue("due", guaranteed={"gpu": gpus}), queue("busy")]
    nodes = [node(f"n{i}", gpu=1) for i in range(gpus)]
    given = cluster(nodes, (), queues, worth=worth, actions=("allocate", "reclaim"))
    records = []
    for job in jobs:
        made = workload(job.name, of=ONE, queue="due" if job.due else "busy")
        made = replace(made, created_at=job.comes * SECOND)
        records.append(TraceJob(made, job.runs * SECOND, job.name))
    result = Simulation(SimulationSetup(given), Trace("test", tuple(records))).run()
    assert result.complete
    first, began, lost = {}, {}, 0
    for kind, at, number, *_ in result.log.events:
        if kind == BIND:
            first.setdefault(number, at)
            began[number] = at
        elif kind == EVICT:
            lost += at - began[number]
    waits = sum(first[n] - job.comes * SECOND for n, job in enumerate(jobs) if job.due)
    return round((waits + lost) / SECOND)


RULE = WorthSettings(patience={"reclaim": PatienceRule(factor=1.0, ahead=0, at_most=1000 * HOUR * SECOND)})


def test_patience_stays_near_the_best_and_evicting_at_once_does_not():
    """On 300 small cases: twice the best on average, and no case is as bad as the worst of evicting at once.

    No job saves its work, so that the bound for one contender and one victim is three times the best.
    """
    ratios = {"patient": [], "at once": []}
    for seed in range(300):
        jobs, gpus = drawn(seed)
        best = best_cost(jobs, gpus)
        costs = {"patient": cost_of(jobs, gpus, RULE), "at once": cost_of(jobs, gpus, WorthSettings())}
        assert best <= min(costs.values())
        if best:
            for name, cost in costs.items():
                ratios[name].append(cost / best)
    assert len(ratios["patient"]) > 80
    assert sum(ratios["patient"]) / len(ratios["patient"]) <= 2
    assert max(ratios["patient"]) < max(ratios["at once"])
