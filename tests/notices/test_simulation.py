"""Notices over simulations: what is saved on being told is not lost, and nothing that holds otherwise is broken."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from tests.builders import NOW, SECOND, cluster, node, spec, task, workload
from tests.simulator.helpers import gang, script

from tenure.model.queue import Queue
from tenure.model.settings import DisruptionSettings, Settings
from tenure.model.workload import Checkpoint, Notice
from tenure.simulator.checker import check
from tenure.simulator.log import EVICT, NOTICE, WITHDRAW
from tenure.simulator.metrics import summarize
from tenure.simulator.outcomes import outcomes_of
from tenure.simulator.run import Simulation, SimulationSetup
from tenure.simulator.traces.records import Trace, TraceJob

MINUTE = 60 * SECOND
GPU = "nvidia.com/gpu"


def simulate(jobs, queues, *, nodes=1, gpus=4, **settings):
    """Replay jobs (workload, run time) and give trace, result, and outcomes; no invariant is broken."""
    trace = Trace(format="tenure", jobs=tuple(TraceJob(w, r, w.name) for w, r in jobs), records=len(jobs))
    start = cluster([node(f"n{i}", cpu=64, gpu=gpus) for i in range(nodes)])
    start = replace(start, queues=tuple(queues), settings=Settings(**settings))
    result = Simulation(SimulationSetup(start), trace).run()
    out = outcomes_of(result.log, trace)
    found = check(result.log, start.nodes, queues=start.queues, settings=start.settings)
    assert found.total == 0, found
    return result.log, out, summarize(out, trace, start.nodes, violations=0, wall_s=1.0)


def at(log, kind):
    return [(event[1] // SECOND, event[2]) for event in log.events if event[0] == kind]


def pair(checkpoint, *, runtime=60):
    """A job that holds everything, and one that may take it from it after ten minutes."""
    tree = [Queue(name="a", guaranteed={GPU: 4000}), Queue(name="b")]
    first = gang("x", 1, spec(gpu=4), queue="b", checkpoint=checkpoint, created_at=0)
    second = gang("c", 1, spec(gpu=4), queue="a", created_at=10 * MINUTE)
    return [(first, runtime * MINUTE), (second, 20 * MINUTE)], tree


@pytest.mark.parametrize(
    ("checkpoint", "told", "evicted", "lost", "spared"),
    [
        (None, [(600, 0)], [(900, 0)], 900, 0),
        (Checkpoint(restart_overhead=62 * SECOND), [(600, 0)], [(900, 0)], 962, 0),
        (Checkpoint(interval=4 * MINUTE, restart_overhead=62 * SECOND), [(600, 0)], [(601, 0)], 62, 121),
        (Checkpoint(interval=60 * MINUTE), [(600, 0)], [(601, 0)], 0, 601),
    ],
)
def test_what_saves_on_being_told_loses_no_more_than_its_restart(checkpoint, told, evicted, lost, spared):
    """It goes on from there when it runs again; what saves nothing loses what it did during its notice as well."""
    jobs, tree = pair(checkpoint)
    log, out, summary = simulate(jobs, tree, eviction_notice=5 * MINUTE)
    assert (at(log, NOTICE), at(log, EVICT)) == (told, evicted)
    assert out.lost[0] == lost * SECOND
    assert summary["lost"][GPU] == 4 * lost
    assert summary["notices"] == {"told": 1, "withdrawn": 0, "spared": summary["notices"]["spared"]}
    assert summary["notices"]["spared"][GPU] == 4 * spared
    overhead = 0 if checkpoint is None else checkpoint.restart_overhead // SECOND
    runs_again = evicted[0][0] + 20 * 60
    done = evicted[0][0] - (lost - overhead)
    assert out.end[0] == (runs_again + overhead + 3600 - done) * SECOND


def test_what_ends_in_time_is_never_evicted():
    """It was told, ran to its end within its notice, and whoever waited for it runs at that very instant."""
    jobs, tree = pair(None, runtime=12)
    log, out, _ = simulate(jobs, tree, eviction_notice=5 * MINUTE)
    assert at(log, NOTICE) == [(600, 0)]
    assert not at(log, EVICT)
    assert out.start[1] == 12 * MINUTE


def test_a_notice_is_withdrawn_when_room_comes_up():
    """Another job ends first: the victim that was told runs on, and ends as if nothing had been said."""
    tree = [Queue(name="a", guaranteed={GPU: 4000}), Queue(name="b")]
    jobs = [
        (gang("x", 1, spec(gpu=4), queue="b", priority=1), 60 * MINUTE),
        (gang("y", 1, spec(gpu=4), queue="b", priority=90), 12 * MINUTE),
        (gang("c", 1, spec(gpu=4), queue="a", created_at=10 * MINUTE), 20 * MINUTE),
    ]
    log, out, summary = simulate(jobs, tree, nodes=2, eviction_notice=5 * MINUTE)
    assert (at(log, NOTICE), at(log, WITHDRAW), at(log, EVICT)) == ([(600, 0)], [(720, 0)], [])
    assert out.end.tolist() == [60 * MINUTE, 12 * MINUTE, 32 * MINUTE]
    assert summary["notices"]["withdrawn"] == 1


def test_a_simulation_goes_on_with_what_its_cluster_file_had_announced():
    """The victim runs until the deadline in the file, and is then evicted for whom it was told."""
    notice = Notice(deadline=NOW + 3 * MINUTE, cause="reclaim", beneficiary="default/c", at=NOW)
    victim = workload("x", tasks=[task("x-0", spec(gpu=4), on="n0", devices=(0, 1, 2, 3), notice=notice)], queue="b",
                      running=600, expected_runtime=None)  # fmt: skip
    contender = workload("c", tasks=[task("c-0", spec(gpu=4), nominated_to="n0", nominated_devices=(0, 1, 2, 3))],
                         queue="a", age=60)  # fmt: skip
    start = cluster([node("n0", cpu=64, gpu=4)], [victim, contender], eviction_notice=5 * MINUTE,
                    actions=("allocate", "reclaim"))  # fmt: skip
    start = replace(start, queues=(Queue(name="a", guaranteed={GPU: 4000}), Queue(name="b")))
    result = Simulation(SimulationSetup(start), Trace(format="tenure", jobs=(), records=0)).run()
    assert at(result.log, EVICT) == [(180, 0)]
    assert check(result.log, start.nodes, queues=start.queues, settings=start.settings).total == 0


def replay(seed, notice, *, jobs=70):
    """Jobs of three queues on three nodes; the load is heavy, so that much is evicted by several causes."""
    draw, now, made = random.Random(seed), 0, []
    for number in range(jobs):
        now += draw.randint(0, 900) * SECOND
        runtime = draw.randint(1, 120) * MINUTE
        tasks = draw.choice((1, 1, 2, 3))
        one = gang(
            f"j{number}", tasks, spec(gpu=draw.choice((1, 2, 4))), queue=draw.choice("abc"), created_at=now,
            min_member=draw.randint(1, tasks), priority=draw.choice((0, 0, 10, 50)),
            expected_runtime=draw.choice((None, round(runtime * draw.choice((1, 2))))),
            checkpoint=draw.choice((None, Checkpoint(interval=20 * MINUTE, restart_overhead=MINUTE))),
            eviction_notice=draw.choice((None, None, 0, 2 * MINUTE)),
        )  # fmt: skip
        made.append((one, runtime))
    tree = [Queue(name="a", guaranteed={GPU: 8000}), Queue(name="b", guaranteed={GPU: 4000}, max={GPU: 12000}),
            Queue(name="c")]  # fmt: skip
    return simulate(made, tree, nodes=3, gpus=8, eviction_notice=notice,
                    disruption=DisruptionSettings(max_restart_overhead=60 * MINUTE))  # fmt: skip


@pytest.mark.parametrize("seed", range(2))
def test_no_invariant_is_broken_over_long_simulations(seed):
    """Gangs, surplus, several causes and several notices at once: everything ends, and the checker finds nothing.

    The second is replayed once more: the same trace gives the same log.
    """
    log, out, summary = replay(seed, 6 * MINUTE)
    assert set(out.state) == {"finished"}
    assert len(at(log, NOTICE)) > 10
    assert summary["notices"]["told"] > 5
    assert not seed or replay(seed, 6 * MINUTE)[0].events == log.events


def checked(*events):
    """What the checker says of a log of one job that is told to go for another."""
    log = script([gang("v"), gang("c")], ("submit", 0, 0), ("bind", 0, 0, 0, 0), ("submit", 0, 1), *events)
    return check(log, [node("n0")]).by_kind


def test_the_checker_sees_who_goes_too_early_or_too_late_or_is_forgotten():
    """It knows nothing of how notices are decided."""
    told = ("notice", 10, 0, 0, "reclaim", 1, {"deadline": 100})
    after = (("bind", 300, 1, 0, 0), ("end", 400, 1, 0))
    assert checked(told, ("evict", 100, 0, 0, "reclaim", 1), *after) == {}
    assert checked(told, ("evict", 50, 0, 0, "reclaim", 1, {"saved_at": 40}), *after) == {}
    assert checked(told, ("end", 50, 0, 0), *after) == {}
    assert checked(told, ("withdraw", 50, 0, 0), ("end", 200, 0, 0), *after) == {}
    assert list(checked(told, ("evict", 99, 0, 0, "reclaim", 1), *after)) == ["eviction before its notice ended"]
    assert list(checked(told, ("evict", 50, 0, 0, "reclaim", 1, {"saved_at": 5}), *after)) == [
        "eviction before its notice ended"
    ]
    assert list(checked(told, ("evict", 101, 0, 0, "reclaim", 1), *after)) == ["eviction long after its notice ended"]
    assert list(checked(told, *after)) == ["notice that nothing came of"]
