"""Bounds on what workloads and queues lose to evictions: worked out by hand, and counted anew from the log."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.builders import NOW, SECOND
from tests.effort import tries
from tests.shields.test_patience import HOUR, contended, evicted

from tenure.clusters.embedded import EmbeddedCluster
from tenure.clusters.kubernetes.write.eviction_log_writer import horizon
from tenure.explanation.explain import explain_workload, find_workload
from tenure.model.cluster import Cluster, Eviction
from tenure.model.node import Node
from tenure.model.queue import Queue
from tenure.model.settings import LossSettings, Settings, WorthSettings
from tenure.model.values.duration import format_time
from tenure.model.values.resources import CPU, GPU
from tenure.model.workload import Checkpoint, Task, TaskSpec, Workload
from tenure.playthrough import play
from tenure.shields.repeated import BOUNDED
from tenure.simulator.log import BIND, END, EVICT
from tenure.simulator.run import Simulation, SimulationSetup
from tenure.simulator.traces.records import Trace, TraceJob

DAY = 24 * HOUR
TIGHT = {"worth": WorthSettings(max_lost=LossSettings(workload=0.25, queue=0))}
"""Six hours of all that a workload asks for."""


def lost(hours, ago, whose="v0", queue="busy"):
    """An eviction so long ago (s) that cost so many hours of a GPU."""
    return Eviction(
        at=NOW - ago * SECOND, workload=f"default/{whose}", task="t", cause="reclaim", queue=queue,
        lost={GPU: round(hours * HOUR) * SECOND},
    )  # fmt: skip


def with_log(cluster, *entries):
    return replace(cluster, evictions=entries)


def again(hours, ago, whose="v0"):
    """An eviction that cost so much, after a first one an hour before, which repeats nothing."""
    return lost(20, ago + HOUR, whose), lost(hours, ago, whose)


def busy(*victims, waited=0, **settings):
    """Victims that were there when the log began."""
    there = [(ran, {"created_at": NOW - 3 * DAY * SECOND, **more}) for ran, more in victims]
    return contended(*there, waited=waited, **settings)


def test_what_has_lost_as_much_as_it_may_is_protected():
    """The younger lost five and one hours, after 20; the elder goes in its place, though it loses more."""
    cluster = busy((600, {}), (2000, {}), **TIGHT)
    assert evicted(with_log(cluster, lost(20, HOUR)))[0] == ["default/v0"]
    assert evicted(with_log(cluster, *again(5, 2 * HOUR)))[0] == ["default/v0"]
    assert evicted(with_log(cluster, *again(5, 2 * HOUR), lost(1, HOUR)))[0] == ["default/v1"]


def test_a_log_without_queues_counts_for_the_queues_that_the_workloads_are_in():
    """A file need not say in which queue an eviction was: queue `busy` lost 17 hours of the 16.8 that it may."""
    bound = {"worth": WorthSettings(max_lost=LossSettings(workload=0, queue=0.25))}
    cluster = with_log(busy((600, {}), (2000, {}), **bound), lost(17, HOUR, queue=None))
    found, plan = evicted(cluster)
    assert found == []
    assert {r.shield for r in plan.refused} == {"lost-much"}


def test_protection_ends_when_enough_is_past():
    """Once the first eviction is past, the next one is the first: of 5, 2 and 1 hours three are left to count."""
    entries = *again(5, 20 * HOUR), lost(2, 10 * HOUR), lost(1, HOUR), *again(9, 9 * HOUR, "v1")
    cluster = with_log(busy((600, {}), (2000, {}), guaranteed=0, **TIGHT), *entries)
    found, plan = evicted(cluster)
    assert found == []
    refused = {r.workload: r for r in plan.refused}
    assert {r.shield for r in refused.values()} == {"lost-much"}
    assert [refused[f"default/v{n}"].until for n in (0, 1)] == [NOW + hours * HOUR * SECOND for hours in (3, 14)]
    until = refused["default/v0"].until
    text = "default/v0 lost 8 weighted hours to evictions within 1d, and worth.maxLost.workload allows 6 weighted hours"
    assert refused["default/v0"].message == f"{text}: protected until {format_time(until)}"
    assert evicted(replace(cluster, now=until - 1))[0] == []
    assert evicted(replace(cluster, now=until))[0] == ["default/v0"]


def test_the_story_of_a_workload_tells_it():
    """What waits hears why the other is kept."""
    cluster = with_log(busy((600, {}), **TIGHT), *again(9, HOUR))
    played = play(cluster)
    story = explain_workload(played, find_workload(cluster, "waits", "file"))
    assert any("worth.maxLost.workload allows 6" in line for line in story.lines())


def test_who_is_owed_its_guaranteed_waits_no_longer_than_that():
    """Four hours, where patience says nothing else; who is owed nothing waits on."""
    cluster = busy((600, {}), waited=60, **TIGHT)
    found, plan = evicted(with_log(cluster, *again(9, HOUR)))
    assert (found, plan.wake) == ([], NOW + (4 * HOUR - 60) * SECOND)
    assert evicted(with_log(busy((600, {}), waited=4 * HOUR, **TIGHT), *again(9, HOUR)))[0] == ["default/v0"]
    beyond = busy((600, {}), (600, {}), waited=4 * HOUR, guaranteed=0, **TIGHT)
    assert evicted(with_log(beyond, *again(5, HOUR), *again(9, HOUR, "v1")))[0] == ["default/v0"]
    assert evicted(with_log(beyond, *again(9, HOUR), *again(9, HOUR, "v1")))[0] == []


def test_a_queue_is_measured_by_the_cluster():
    """Twice a GPU and eight cores for a day: 67.2 weighted hours. Whoever loses a tenth, it protects the leaf."""
    cluster = busy((600, {}), (2000, {}), worth=WorthSettings(max_lost=LossSettings(workload=0, queue=0.1)))
    assert evicted(with_log(cluster, lost(6.71, HOUR, "gone")))[0] == ["default/v0"]
    found, plan = evicted(with_log(cluster, lost(6.72, HOUR, "gone")))
    assert found == []
    assert {r.workload for r in plan.refused} == {"default/v0", "default/v1"}
    assert all(r.message.startswith("queue busy lost 6.72 weighted hours") for r in plan.refused)
    assert evicted(with_log(cluster, lost(9, HOUR, "gone", queue="due")))[0] == ["default/v0"]


@pytest.mark.parametrize("bounds", [LossSettings(workload=0, queue=0), LossSettings(workload=1, queue=1)])
def test_bounds_may_be_wide_or_none(bounds):
    cluster = with_log(busy((600, {}), (2000, {}), worth=WorthSettings(max_lost=bounds)), *again(23, HOUR))
    assert evicted(cluster)[0] == ["default/v0"]


def test_losses_of_an_earlier_workload_of_that_name_do_not_count():
    """The workload was made an hour ago; that the one before it lost much is nothing to it."""
    young = (600, {"created_at": NOW - HOUR * SECOND})
    cluster = with_log(contended(young, waited=0, **TIGHT), *again(9, 2 * HOUR))
    assert evicted(cluster)[0] == ["default/v0"]
    evicted_itself = (600, {"created_at": NOW - HOUR * SECOND, "last_evicted_at": NOW - 2 * HOUR * SECOND})
    assert evicted(with_log(contended(evicted_itself, waited=0, **TIGHT), *again(9, 2 * HOUR)))[0] == []


def test_a_lowered_quota_is_enforced_all_the_same():
    """As with the bound on how often a workload is evicted."""
    assert BOUNDED.isdisjoint({"quota", "stale-gang"})


def test_what_a_plan_evicts_is_in_the_log_with_what_it_lost():
    """So that the next cycle, and another process, knows of it."""
    cluster = busy((7 * HOUR, {}), **TIGHT)
    there = EmbeddedCluster(cluster)
    there.carry_out(evicted(cluster)[1])
    assert [e.lost[GPU] for e in there.observe().evictions] == [7 * HOUR * SECOND]


def test_the_log_keeps_what_counts():
    """On a live cluster entries stay for as long as the window is."""
    week = WorthSettings(max_lost=LossSettings(window=7 * DAY * SECOND))
    assert horizon(contended((600, {}), waited=0, worth=week)) > 7 * DAY * SECOND


bounds_drawn = st.builds(
    LossSettings, workload=st.sampled_from([0, 0.02, 0.1]), queue=st.sampled_from([0, 0.02, 0.1]),
    window=st.sampled_from([6 * HOUR * SECOND, DAY * SECOND]),
)  # fmt: skip


@st.composite
def contending(draw):
    """Draw a full cluster in which long jobs give way to short ones again and again, some after a notice."""
    sizes = [draw(st.integers(1, 3)) for _ in range(draw(st.integers(1, 3)))]
    nodes = tuple(Node(name=f"n{i}", allocatable={CPU: 8_000, GPU: size}) for i, size in enumerate(sizes))
    queues = (Queue(name="due", guaranteed={GPU: 1_000}), Queue(name="busy"))
    long = [drawn_job(draw, f"long-{n}", "busy", 0, n, (20 * HOUR, 60 * HOUR)) for n in range(sum(sizes))]
    short, at = [], 0
    for n in range(draw(st.integers(5, 25))):
        at += draw(st.sampled_from([600, HOUR, 5 * HOUR]))
        queue, priority = draw(st.sampled_from([("due", 0), ("busy", 50)]))
        short.append(drawn_job(draw, f"short-{n}", queue, priority, at, (60, HOUR)))
    settings = Settings(actions=("allocate", "reclaim", "preempt", "requeue"))
    return Cluster(now=0, nodes=nodes, queues=queues, settings=settings), Trace("test", (*long, *short))


def drawn_job(draw, name, queue, priority, at, runtimes):
    """Draw a job of one or two tasks, one of which may be beyond its core."""
    runtime = draw(st.sampled_from(runtimes)) * SECOND
    spec = TaskSpec(requests=((CPU, 1_000), (GPU, 1)))
    count = draw(st.integers(1, 2))
    saves = st.sampled_from([None, None, Checkpoint(interval=HOUR * SECOND, restart_overhead=60 * SECOND)])
    model = Workload(
        name=name, queue=queue, priority=priority, created_at=at * SECOND, min_member=draw(st.integers(1, count)),
        tasks=tuple(
            Task(name=f"{name}-{i}", spec=spec, grace_period=draw(st.sampled_from([None, 90 * SECOND])))
            for i in range(count)
        ),
        checkpoint=draw(saves), expected_runtime=draw(st.sampled_from([None, runtime // 2])),
        eviction_notice=draw(st.sampled_from([None, None, 300 * SECOND])),
    )  # fmt: skip
    return TraceJob(model, runtime, name)


@settings(max_examples=tries(25, 1000), deadline=None)
@given(world=contending(), bounds=bounds_drawn)
def test_nothing_is_taken_from_who_has_lost_as_much_as_it_may(world, bounds):
    """In no simulation, but for what a contender is owed after four hours."""
    cluster, trace = world
    cluster = replace(cluster, settings=replace(cluster.settings, worth=WorthSettings(max_lost=bounds)))
    log = Simulation(SimulationSetup(cluster), trace).run().log
    capacity = sum(rate({**node.allocatable, GPU: 1000 * node.allocatable.get(GPU, 0)}) for node in cluster.nodes)
    before: list[tuple[int, int, str, float]] = []
    for at, job, other, cause, time, task in losses(log):
        model = log.workloads[job]
        recent = [entry for entry in before if at - bounds.window < entry[0] < at]
        if not (cause == "reclaim" and other >= 0 and at - waits_since(log, other, at) >= 4 * HOUR * SECOND):
            size = sum(rate(held(t)) for t in model.tasks)
            own = [entry for entry in recent if entry[1] == job]
            repeated = sum(entry[3] for entry in own if entry[0] > own[0][0])
            assert not bounds.workload or repeated < size * bounds.workload * bounds.window
            queues = sum(entry[3] for entry in recent if entry[2] == model.queue)
            assert not bounds.queue or queues < capacity * bounds.queue * bounds.window
        before.append((at, job, model.queue, rate(held(task)) * time))


def held(task):
    """What a task asks for, both in thousandths."""
    return {name: amount * (1000 if name == GPU else 1) for name, amount in task.spec.requests}


def rate(amounts):
    """Weighted resources, as `disruption.cost` has them by default."""
    return (amounts.get(GPU, 0) + 0.05 * amounts.get(CPU, 0)) / 1000


def losses(log):
    """Give the evictions: when, of whom, for whom, why, and what time each lost until it was evicted."""
    there, begun = {}, {}
    for kind, at, job, task, other, extra in log.events:
        if kind == BIND:
            if not any(j == job for j, _ in there):
                begun[job] = at
            there[job, task] = at
        elif kind == END:
            del there[job, task]
        elif kind == EVICT:
            since, checkpoint = there.pop((job, task)), log.workloads[job].checkpoint
            interval = checkpoint.interval if checkpoint is not None else None
            safe = begun[job] + (at - begun[job]) // interval * interval if interval else begun[job]
            overhead = checkpoint.restart_overhead if checkpoint is not None else 0
            time = at - max(safe, since, extra.saved_at) + overhead
            yield at, job, other, extra.cause, time, log.workloads[job].tasks[task]


def waits_since(log, job, now):
    """Since when a job has waited: it came, or was evicted last."""
    evicted = [at for kind, at, whose, *_ in log.events if kind == EVICT and whose == job and at < now]
    return max([log.workloads[job].created_at, *evicted])
