"""The account of a simulation while it runs, and that of its history afterwards, are two counts of the same."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace

import pytest
from hypothesis import given, settings
from tests.effort import tries
from tests.history.worlds import worlds

from tenure.history import open_history
from tenure.history.reading.accounts import closed_accounts
from tenure.history.reading.finished_runs import finished_runs
from tenure.history.writing.simulation import PlanListener, write_simulation
from tenure.model.cluster import Cluster
from tenure.model.node import Node
from tenure.model.settings import BreakerSettings, LossSettings, Settings, SurvivalSettings, WorthSettings
from tenure.model.values.resources import CPU
from tenure.model.workload import Task, TaskSpec, Workload
from tenure.simulator.log import END, EVICT
from tenure.simulator.outcomes import outcomes_of
from tenure.simulator.run import Simulation, SimulationSetup, prepare
from tenure.simulator.traces.records import Trace, TraceJob

MOST_TASKS = 50
SECOND = 1_000_000
FOR_EVER = 20_000 * 86_400 * SECOND


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("histories")


@contextmanager
def simulated(folder, world, **worth):
    """Simulate with some settings of what evictions are worth; gives the simulation, and its history, which is open."""
    cluster, trace = world
    cluster = replace(cluster, settings=replace(cluster.settings, worth=replace(cluster.settings.worth, **worth)))
    for file in folder.iterdir():
        file.unlink()
    simulation = Simulation(SimulationSetup(cluster), trace)
    simulation.heard = listener = PlanListener(cluster.now)
    log = simulation.run().log
    with open_history(str(folder / "history.db"), write=True) as store:
        write_simulation(store, "trace", cluster, log, outcomes_of(log, trace, cluster.settings), listener)
        yield simulation, store


@settings(max_examples=tries(15, 300), deadline=None)
@given(world=worlds())
def test_what_is_known_while_it_runs_is_what_its_history_says(folder, world):
    with simulated(folder, world, breaker=BreakerSettings(enabled=True, window=FOR_EVER)) as (simulation, store):
        first, last = store.span() or (0, 0)
        told = closed_accounts(store, first, last + 1)
    known = sorted(simulation.account.closed)
    assert [(k.at, k.cause) for k in known] == [(t.at, t.cause) for t in told]
    for one, other in zip(known, told, strict=True):  # sums are rounded once, or task by task
        assert one.lost == pytest.approx(other.lost, abs=MOST_TASKS)
        assert one.gained == pytest.approx(other.gained, abs=MOST_TASKS)


@pytest.mark.parametrize("runs", [10, 100])
def test_a_task_that_is_leaving_when_its_job_ends_lost_no_more_than_that(folder, runs):
    """One of two tasks goes at 30 s and would leave at 120 s, but the job ends at 100 s: it lost 100 s of a core.

    Whether the account is closed before that, by an urgent job that ends at 45 s beside what still leaves, or after.
    """
    spec = TaskSpec(requests=((CPU, 1000),))
    tasks = tuple(Task(name=f"t{n}", spec=spec, grace_period=90 * SECOND) for n in range(2))
    long = replace(job("long", 0, 0), tasks=tasks, min_member=1)
    other = replace(job("other", 0, 0), tasks=(Task(name="o", spec=spec),))
    urgent = replace(job("urgent", 50, 30 * SECOND), expected_runtime=None)
    jobs = (
        TraceJob(long, 100 * SECOND, "long"), TraceJob(other, 35 * SECOND, "other"),
        TraceJob(urgent, runs * SECOND, "urgent"),
    )  # fmt: skip
    cluster = Cluster(
        now=0, nodes=(Node(name="n", allocatable={CPU: 3000}),), settings=Settings(actions=("allocate", "preempt"))
    )
    trace = Trace("test", jobs)
    world = prepare(cluster, trace), trace
    with simulated(folder, world, breaker=BreakerSettings(enabled=True, window=FOR_EVER)) as (simulation, store):
        (told,) = closed_accounts(store, 0, FOR_EVER)
        assert simulation.account.closed == [told]
    assert told.lost == 5 * SECOND


@settings(max_examples=tries(15, 300), deadline=None)
@given(world=worlds())
def test_run_times_that_a_simulation_knows_are_those_of_its_history(folder, world):
    with simulated(folder, world, survival=SurvivalSettings(enabled=True)) as (simulation, store):
        first, last = store.span() or (0, 0)
        told = finished_runs(store, first, last + 1)
        half = first + (last - first) // 2
        parts = [*finished_runs(store, first, half), *finished_runs(store, half, last + 1)]
    known = simulation.session.run_times.plain()
    names = sorted(known, key=lambda k: (k.queue, k.user or ""))
    assert [(k.queue, k.user, sorted(k.ran)) for k in names] == [(t.queue, t.user, sorted(t.ran)) for t in told]
    assert sum(len(p.ran) for p in parts) == sum(len(t.ran) for t in told)


def test_a_simulation_shows_what_a_pause_does():
    """A long job that saves nothing gives way to a minute of urgent work each hour; paused, it does so once a day."""
    hour = 3600 * SECOND
    long = TraceJob(job("long", 0, 0), 10 * hour, "long")
    urgent = [TraceJob(job(f"urgent-{n}", 50, n * hour), 60 * SECOND, f"urgent-{n}") for n in range(1, 60)]
    trace = Trace("test", (long, *urgent))

    def evictions(*, enabled):
        worth = WorthSettings(breaker=BreakerSettings(enabled=enabled), max_lost=LossSettings(workload=0, queue=0))
        settings = Settings(actions=("allocate", "preempt"), worth=worth)
        cluster = Cluster(now=0, nodes=(Node(name="n", allocatable={CPU: 1000}),), settings=settings)
        log = Simulation(SimulationSetup(prepare(cluster, trace)), trace).run().log
        ends = {log.workloads[event[2]].name: event[1] for event in log.events if event[0] == END}
        return [event[1] // hour for event in log.events if event[0] == EVICT], ends["long"] // hour

    assert evictions(enabled=False) == ([*range(1, 33)], 42)  # it may be evicted 32 times
    assert evictions(enabled=True) == ([1], 11)


def job(name, priority, at):
    task = Task(name=name, spec=TaskSpec(requests=((CPU, 1000),)))
    return Workload(name=name, queue="default", priority=priority, tasks=(task,), min_member=1, created_at=at)
