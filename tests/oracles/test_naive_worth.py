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


def cost_of(jobs, gpus, worth, expected=None):
    """Simulate, and give waits of due jobs and work that is destroyed, in GPU-seconds.

    ``expected``: for how long jobs say that they will run (s), by name.
    """
    queues = [queue("due", guaranteed={"gpu": gpus}), queue("busy")]
    nodes = [node(f"n{i}", gpu=1) for i in range(gpus)]
    given = cluster(nodes, (), queues, worth=worth, actions=("allocate", "reclaim"))
    records = []
    for job in jobs:
        said = (expected or {}).get(job.name)
        made = workload(job.name, of=ONE, queue="due" if job.due else "busy", expected_runtime=said)
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


def rule(trust):
    """Patience without an end, which trusts estimates so far."""
    patience = PatienceRule(factor=1.0, ahead=0, at_most=1000 * HOUR * SECOND, trust=trust)
    return WorthSettings(patience={"reclaim": patience})


RULE = rule(0.0)


def test_patience_stays_near_the_best_and_evicting_at_once_does_not():
    """On 300 small cases: twice the best on average, and no case is as bad as the worst of evicting at once.

    No job saves its work, so that the bound for one contender and one victim is three times the best with a factor of
    1; the rule as it is unless set waits for longer where evictions are dear.
    """
    rules = {"patient": RULE, "unless set": WorthSettings(patience={"reclaim": PatienceRule()}),
             "at once": WorthSettings()}  # fmt: skip
    ratios = {name: [] for name in rules}
    for seed in range(300):
        jobs, gpus = drawn(seed)
        best = best_cost(jobs, gpus)
        costs = {name: cost_of(jobs, gpus, worth) for name, worth in rules.items()}
        assert best <= min(costs.values())
        if best:
            for name, cost in costs.items():
                ratios[name].append(cost / best)
    assert len(ratios["patient"]) > 80
    for name in ("patient", "unless set"):
        assert sum(ratios[name]) / len(ratios[name]) <= 2
        assert max(ratios[name]) < max(ratios["at once"])


def ratios_of(trust, spread):
    """Give costs beside the best where jobs say 1.5 times what they run, spread so far (sigma); exactly at 0."""
    found = []
    for seed in range(300):
        jobs, gpus = drawn(seed)
        best = best_cost(jobs, gpus)
        rng = random.Random(f"{seed} expected")
        wrong = [1.5 * rng.lognormvariate(0, spread) if spread else 1 for _ in jobs]
        expected = {job.name: max(1, round(job.runs * times)) for job, times in zip(jobs, wrong, strict=True)}
        if best:
            found.append(cost_of(jobs, gpus, rule(trust), expected) / best)
    return found


def test_with_exact_estimates_patience_that_trusts_them_does_the_best_there_is():
    """Whatever is decided, nothing could have been better on any of these cases."""
    assert set(ratios_of(1.0, 0.0)) == {1.0}


def test_trusting_estimates_by_half_pays_though_they_are_poor():
    """On average it costs less than to trust none; where they are exact, much less, and at worst half as much."""
    none, exact, poor = ratios_of(0.0, 0.7), ratios_of(0.5, 0.0), ratios_of(0.5, 0.7)
    assert sum(exact) < 0.8 * sum(none)
    assert max(exact) < 0.5 * max(none)
    assert sum(poor) < 0.9 * sum(none)
