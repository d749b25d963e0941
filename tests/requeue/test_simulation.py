"""Requeue over long simulations."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from tests.builders import SECOND, cluster, node, spec
from tests.effort import tries
from tests.simulator.helpers import gang

from tenure.model.queue import Queue
from tenure.model.settings import Settings
from tenure.simulator.checker import check
from tenure.simulator.log import EVICT
from tenure.simulator.outcomes import outcomes_of
from tenure.simulator.run import Simulation, SimulationSetup
from tenure.simulator.traces.records import Trace, TraceJob

MINUTE = 60 * SECOND
DELAY = 10 * MINUTE


def replay(seed, *, jobs=300, apart=400, expected=(0.2, 0.5, 1, 2)):
    """Jobs of two queues that run for minutes to hours, and expect to take less or more: so much of it."""
    draw = random.Random(seed)
    at, made = 0, []
    for number in range(jobs):
        at += draw.randint(0, 2 * apart) * SECOND
        runtime = draw.randint(1, 180) * MINUTE
        one = gang(
            f"j{number}", draw.choice((1, 1, 2)), spec(gpu=draw.choice((1, 2, 4))), queue=draw.choice("ab"),
            priority=draw.choice((0, 0, 10, 50)), created_at=at,
            expected_runtime=round(runtime * draw.choice(expected)),
        )  # fmt: skip
        made.append(TraceJob(one, runtime, str(number)))
    machines = [node(f"n{i}", cpu=64, gpu=8) for i in range(2)]
    start = cluster(machines, queues=[Queue(name="a"), Queue(name="b")])
    start = SimulationSetup(start.__class__(now=start.now, nodes=start.nodes, queues=start.queues,
                                  settings=Settings(actions=("allocate", "requeue"))))  # fmt: skip
    trace = Trace(format="tenure", jobs=tuple(made), records=jobs)
    return start, trace, Simulation(start, trace).run()


@pytest.mark.parametrize("seed", range(tries(1, 10)))
def test_much_is_requeued_and_everything_ends(seed):
    """No invariant is broken, and every beneficiary then ran."""
    setup, trace, result = replay(seed)
    out = outcomes_of(result.log, trace)
    assert out.by_cause.get("requeue", 0) > 20
    assert set(out.state) == {"finished"}
    assert (
        check(result.log, setup.cluster.nodes, queues=setup.cluster.queues, settings=setup.cluster.settings).total == 0
    )


def test_no_workload_is_requeued_twice_within_its_cooldown():
    """Jobs that are overdue again within seconds of their start."""
    _, _, result = replay(0, jobs=150, apart=100, expected=(0.002,))
    times = {}
    for kind, at, job, *_ in result.log.events:
        if kind == EVICT:
            times.setdefault(job, set()).add(at)
    apart = [later - earlier for found in times.values() for earlier, later in pairwise(sorted(found))]
    assert DELAY <= min(apart) < 2 * DELAY


def test_jobs_that_hardly_ever_meet_are_hardly_ever_requeued():
    """Where nine in ten start at once, next to nobody gives way, however overdue."""
    _, trace, result = replay(1, jobs=100, apart=36_000)
    out = outcomes_of(result.log, trace)
    assert (out.first_start == out.submit).sum() >= 90
    assert out.by_cause.get("requeue", 0) <= 5
