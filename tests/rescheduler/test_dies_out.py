"""Moves die out: once nothing arrives and nothing ends any more, the cluster comes to rest and stays there."""

from dataclasses import replace

import pytest
from tests.effort import tries

from tenure.model.settings import BackgroundSettings, ExactSettings, ReschedulerSettings, Settings
from tenure.simulator.checker import check
from tenure.simulator.generate import GeneratorConfig, cluster_for, generate
from tenure.simulator.run import Simulation, SimulationSetup, prepare

HOUR = 3600 * 1_000_000
DAY = 24 * HOUR


@pytest.mark.parametrize(("load", "someone_waits"), [(0.6, False), (1.3, True)])
def test_nothing_moves_once_arrivals_and_ends_have_stopped(load, someone_waits):
    """A day or two of arrivals; what would end later runs for ever, and cycles go on for days, at least hourly.

    With a queue that grows from day to day, each cycle looks at all of it: two days are for thorough runs.
    """
    days = tries(3, 8) / 4 if someone_waits else 2
    trace = generate(GeneratorConfig(days=days, load=load * 4, capacity=16), 2)
    last = max(job.workload.created_at for job in trace.jobs)
    over = (job.runtime is not None and job.workload.created_at + job.runtime <= last for job in trace.jobs)
    jobs = tuple(job if ends else replace(job, runtime=None) for job, ends in zip(trace.jobs, over, strict=True))
    trace = replace(trace, jobs=jobs)
    rescheduler = ReschedulerSettings(
        exact=ExactSettings(enabled=False),
        background=BackgroundSettings(interval=HOUR, objective="pack", min_gain=0.001),
    )
    settings = Settings(actions=("allocate", "reschedule"), rescheduler=rescheduler)
    base = replace(cluster_for(GeneratorConfig(capacity=64)), settings=settings)
    simulation = Simulation(SimulationSetup(prepare(base, trace)), trace)

    def stop(progress):
        """Those that wait are looked at again and again: the replay would not end by itself."""
        if progress.now > last + DAY:
            raise KeyboardInterrupt

    result = simulation.run(stop, every=1)
    for hour in range(1, 49):
        at = last + DAY + hour * HOUR
        simulation.scheduler.pass_time(simulation.origin + at)
        simulation._end_all(at)
        simulation._depart_all(at)
        simulation._decide(at)
    moves = sorted(m.at - simulation.origin for m in simulation.scheduler.context.rescheduling.sent)
    assert len(moves) > 5, "while things change, there is something to move"
    assert all(at <= last + 12 * HOUR for at in moves), "what still lands and settles takes hours, not days"
    assert bool(simulation.session.waiting.all()) == someone_waits
    found = check(
        result.log,
        simulation.setup.cluster.nodes,
        queues=simulation.setup.cluster.queues,
        settings=simulation.setup.cluster.settings,
    )
    assert not found.total
