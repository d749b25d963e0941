"""Who finds no room may take what is promised to others behind it; where one could not, those alike are not tried."""

from dataclasses import replace

import pytest
from tests.effort import tries

from tenure.cycle import Scheduler
from tenure.engine.serving.nominations import BeatableNominations
from tenure.engine.state.session import Session
from tenure.simulator.generate import GeneratorConfig, cluster_for, generate

NOW = 10**12


def jobs_for_few_gpus(seed):
    config = GeneratorConfig(jobs=230, load=1.0, capacity=64, unit="gpu", node_size=8)
    jobs = [replace(job.workload, created_at=n) for n, job in enumerate(generate(config, seed).jobs)]
    return cluster_for(config), jobs


@pytest.mark.parametrize("seed", range(1, 1 + tries(2, 20)))
def test_those_that_stand_alike_take_no_promised_room_either(monkeypatch, seed):
    """Whenever a contender is taken for one that can take none, it is tried all the same: it takes none."""
    asked, tried, calls, granted = BeatableNominations.beaten_by, BeatableNominations._beaten_by, [], []

    def counted(self, contender, step):
        calls.append(contender.key)
        return tried(self, contender, step)

    def checked(self, contender, step):
        before = len(calls)
        lost = asked(self, contender, step)
        if len(calls) == before:
            granted.append(contender.key)
            assert not lost
            assert not tried(self, contender, step), contender.key
        return lost

    monkeypatch.setattr(BeatableNominations, "_beaten_by", counted)
    monkeypatch.setattr(BeatableNominations, "beaten_by", checked)
    cluster, jobs = jobs_for_few_gpus(seed)
    session = Session(cluster.nodes, cluster.queues, cluster.settings)
    scheduler = Scheduler(session)
    session.add_workloads(jobs[:-30])
    scheduler.cycle(NOW)
    for number, job in enumerate(jobs[-30:], 1):  # what is evicted has not ended, so that its room is only promised
        session.remove_workload(next(key for key, state in session.workloads.items() if state.occupied()))
        session.add_workload(replace(job, created_at=NOW + number))
        scheduler.cycle(NOW + number)
    assert len(granted) > len(calls) > 10
