"""Finished runs are read off a history beside the loop: each once, and only while they are wanted."""

from __future__ import annotations

import threading
from dataclasses import dataclass

import pytest
from tests.builders import NOW
from tests.live.test_pace import Refusing

from tenure.history import open_history
from tenure.history.reading.finished_runs import RUNS_SINCE
from tenure.history.record import Origin
from tenure.history.writing.simulation import PlanListener, write_simulation
from tenure.live.loop import Loop, Pace
from tenure.live.records.account import SETTLED, EvictionAccount
from tenure.model.cluster import Cluster, FinishedRuns
from tenure.model.node import Node
from tenure.model.values.resources import CPU
from tenure.model.workload import Task, TaskSpec, Workload
from tenure.simulator.outcomes import outcomes_of
from tenure.simulator.run import Simulation, SimulationSetup, prepare
from tenure.simulator.traces.records import Trace, TraceJob

SECOND = 1_000_000
RAN = (300, 100, 200)
LONG = 60
"""So many seconds a look at a history may take."""


@pytest.fixture
def history(tmp_path):
    """Give the address of the history of three jobs, one after the other, and the time of its last record."""
    address = str(tmp_path / "history.db")
    return address, written(address)


def written(address, began=0):
    """Write that history; gives the time of its last record."""
    task = Task(name="t", spec=TaskSpec(requests=((CPU, 1000),)))
    jobs = tuple(
        TraceJob(Workload(name=f"j{n}", queue="default", tasks=(task,), created_at=n * SECOND), ran * SECOND, f"j{n}")
        for n, ran in enumerate(RAN)
    )
    trace = Trace("test", jobs)
    given = prepare(Cluster(now=began, nodes=(Node(name="n", allocatable={CPU: 1000}),)), trace)
    simulation = Simulation(SimulationSetup(given), trace)
    simulation.heard = listener = PlanListener(given.now)
    log = simulation.run().log
    with open_history(address, write=True) as store:
        write_simulation(store, "trace", given, log, outcomes_of(log, trace, given.settings), listener)
        _, last = store.span()
    return last


def looks(address, times, *, wanted=True):
    """Look once at each of some times; gives what is known in the end."""
    asked, failed, done = [], [], threading.Event()

    def clock():
        if len(asked) == len(times):  # the look at the last of them is over
            done.set()
        asked.append(times[min(len(asked), len(times) - 1)])
        return asked[-1]

    account = EvictionAccount(
        address, Origin("trace"), clock, lambda _: None, leads=lambda: True, failed=failed.append, every=0
    )
    account.wanted = wanted
    account.start()
    try:
        assert done.wait(LONG)
    finally:
        account.stop()
    assert failed == []
    return account.finished


def test_each_run_is_read_once_however_often_it_is_looked(history):
    address, last = history
    end = last + SETTLED + 1
    everything = (FinishedRuns(queue="default", ran=tuple(r * SECOND for r in RAN)),)
    assert looks(address, [end]) == everything
    assert looks(address, [end, end, end + SECOND]) == everything
    assert looks(address, [last - 250 * SECOND + SETTLED, last - 150 * SECOND + SETTLED, end]) == everything


def test_what_is_young_waits_and_what_is_old_is_not_looked_for(history):
    """What was written a moment ago may have others before it that are still to be written."""
    address, last = history
    assert looks(address, [last + SETTLED]) == (FinishedRuns(queue="default", ran=(300 * SECOND, 100 * SECOND)),)
    assert looks(address, [last + RUNS_SINCE + 1]) == ()
    assert looks(address, [last + RUNS_SINCE]) == (FinishedRuns(queue="default", ran=(200 * SECOND,)),)


def test_none_are_read_unless_they_are_wanted(history):
    address, last = history
    assert looks(address, [last + SETTLED + 1], wanted=False) == ()


@dataclass
class Seen:
    """What a cluster gives of itself."""

    cluster: Cluster
    identities: dict
    wake: int | None


class Still(Refusing):
    """A cluster on which nothing is refused."""

    def observe(self, now):
        return Seen(**vars(super().observe(now)))


def test_a_cycle_decides_with_what_was_read():
    """The cluster that the loop decides on has the runs, whatever the API server says."""
    runs, seen = (FinishedRuns(queue="default", ran=(SECOND,)),), []

    def told(cycle):
        seen.append(cycle.observed.cluster.finished_runs)
        loop.stop()

    loop = Loop(Still(()), lambda: 1, pace=Pace(least=0.001), wall=lambda: NOW, told=told, finished=lambda: runs)
    loop.run()
    assert seen == [runs]
