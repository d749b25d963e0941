"""What requeue remembers saves time and decides nothing: with and without it, simulations come out the same."""

from __future__ import annotations

import gzip
import importlib.util
import itertools
import random
import sys
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.builders import SECOND, cluster, node, queue, spec
from tests.builders import workload as build
from tests.effort import tries
from tests.requeue.clusters import one_node, overdue, requeued, waiting
from tests.requeue.random_clusters import random_cluster
from tests.requeue.test_experiment import ROOT, TRACES
from tests.simulator.helpers import gang
from tests.victims.test_first_served import held_against_the_play

from tenure.actions.requeue import requeue
from tenure.model.settings import FairnessSettings, HistorySettings, MinRuntimeSettings, RequeueSettings, Settings
from tenure.model.workload import Checkpoint
from tenure.playthrough import play
from tenure.requeue.memory import RequeueMemory
from tenure.simulator.log import EVICT
from tenure.simulator.run import Simulation, SimulationSetup, prepare
from tenure.simulator.traces.records import Trace, TraceJob
from tenure.victims.dry_run.first_served import FirstServed

SEEDS = st.integers(0, 100_000)
MINUTE = 60 * SECOND

MOST = 400
"""Events of a simulation that are looked at."""


def workload(seed):
    """A small cluster, and jobs that more than fill it: flat or nested queues, gangs, elastic ones, parts of GPUs."""
    draw = random.Random(seed)
    tree = draw.choice(
        (
            [queue("a"), queue("b")],
            [queue("a"), queue("b"), queue("c", priority=draw.choice((100, 200)))],
            [queue("x"), queue("a", "x"), queue("b", "x"), queue("c")],
            [queue("a", guaranteed={"gpu": 2}), queue("b", max={"gpu": 6}), queue("c")],
        )
    )
    leaves = [q.name for q in tree if q.name != "x"]
    sizes = draw.choice(((1,), (1, 2), (1, 1, 2, 4), (2, 4)))
    at, jobs = 0, []
    for number in range(draw.randint(10, 30)):
        at += draw.choice((0, 1, 3, 10)) * MINUTE
        runtime = draw.randint(1, 120) * MINUTE
        count = draw.choice((1, 1, 1, 1, 2, 3))
        what = spec(cpu=0, fraction=500) if draw.random() < 0.05 else spec(cpu=0, gpu=draw.choice(sizes))
        one = gang(
            f"j{number}", count, what, queue=draw.choice(leaves), priority=draw.choice((0, 0, 0, 10, 50)),
            created_at=at, expected_runtime=round(runtime * draw.choice((0.1, 0.3, 1, 2))),
            min_member=draw.choice((None, 1)), preemption_delay=draw.choice((None, None, None, 5 * MINUTE)),
            checkpoint=draw.choice((None, Checkpoint(interval=10 * MINUTE))),
        )  # fmt: skip
        jobs.append(TraceJob(one, runtime, str(number)))
    chosen = Settings(
        actions=draw.choice((("allocate", "requeue"), ("allocate", "reclaim", "preempt", "requeue"))),
        requeue=RequeueSettings(
            contenders=draw.choice(("more-deserving", "more-deserving", "any")), max_candidates=draw.choice((1, 2, 8))
        ),
        fairness=FairnessSettings(history=draw.choice((None, None, HistorySettings()))),
        preempt_min_runtime=draw.choice((0, 0, 10 * MINUTE)),
        reclaim_min_runtime=draw.choice((0, 0, 10 * MINUTE)),
        min_runtime=MinRuntimeSettings(),
        requeue_delay=draw.choice((MINUTE, 10 * MINUTE)),
        backfill=draw.choice(("strict-order", "easy")) if draw.random() < 0.2 else Settings().backfill,
    )
    machines = [node(f"n{i}", cpu=64, gpu=draw.choice((4, 8))) for i in range(draw.randint(1, 2))]
    base = cluster(machines, queues=tree)
    base = base.__class__(now=base.now, nodes=base.nodes, queues=base.queues, settings=chosen)
    return SimulationSetup(base), Trace(format="tenure", jobs=tuple(jobs), records=len(jobs))


def forgetful(patch, simulation):
    """Let requeue begin every cycle as if it were its first, but for what it is told of starts, and try everything."""

    def anew(context):
        if context.requeueing is not None:
            context.session.waiting.watchers.clear()
            fresh = RequeueMemory(context.session)
            fresh.position = context.requeueing.position
            context.requeueing = fresh
        requeue(context)

    patch.setattr(FirstServed, "instead", lambda *_: None)
    scheduler = simulation.scheduler
    scheduler.actions = [anew if action is requeue else action for action in scheduler.actions]


def logs(setup, trace):
    """The logs of a simulation with and without the memory."""
    found = [beginning(Simulation(setup, trace))]
    with pytest.MonkeyPatch.context() as patch:
        simulation = Simulation(setup, trace)
        forgetful(patch, simulation)
        found.append(beginning(simulation))
    return found


def beginning(simulation):
    """The log of a simulation's beginning: equals without checkpoints may take turns for ever."""

    def stop(_):
        if len(simulation.log) > MOST:
            raise KeyboardInterrupt

    return simulation.run(stop, every=20).log.events


def test_with_and_without_the_memory_a_simulation_is_the_same():
    """Event by event: who started when and where, who was evicted, and for whom; most requeue, many of them often."""
    evicted = []

    @settings(max_examples=tries(10, 200))
    @given(SEEDS)
    def is_the_same(seed):
        with_it, without = logs(*workload(seed))
        assert with_it == without
        evicted.append(sum(e[0] == EVICT and e[5].cause == "requeue" for e in with_it))

    is_the_same()
    assert 2 * sum(n > 0 for n in evicted) > len(evicted), evicted
    assert 4 * sum(n >= 5 for n in evicted) >= len(evicted), evicted


@pytest.mark.parametrize(("trace", "lines", "nodes"), [
    ("philly/philly.csv.gz", 700, 5), ("swf/SDSC-BLUE-2000-4.2-cln.swf.gz", 900, 1),
])  # fmt: skip
def test_on_a_slice_of_a_real_trace_as_well(tmp_path, trace, lines, nodes):
    """With a backlog of hundreds that stands for days."""
    path = TRACES / trace
    if not path.exists():
        pytest.skip(f"there is no {path}")
    module_spec = importlib.util.spec_from_file_location("requeue_run", ROOT / "examples" / "requeue" / "run.py")
    experiment = importlib.util.module_from_spec(module_spec)
    sys.modules["requeue_run"] = experiment
    module_spec.loader.exec_module(experiment)
    short = tmp_path / path.name.removesuffix(".gz")
    with gzip.open(path, "rt", encoding="utf-8", errors="replace") as text:
        short.write_text("".join(itertools.islice(text, lines)), encoding="utf-8")
    words = ["--trace", str(short), "--nodes", str(nodes), "--median", "0.8"]
    jobs = experiment.load(*experiment.each(experiment._arguments(words)))
    machines = () if jobs.nodes else tuple(node(f"n{i}", cpu=96, gpu=8) for i in range(nodes))
    base = cluster(machines).__class__(now=0, nodes=machines, settings=Settings(actions=("allocate", "requeue")))
    with_it, without = logs(SimulationSetup(prepare(base, jobs)), jobs)
    assert with_it == without


# -- who would have their places back ---------------------------------------------------------------------------------


def test_who_is_known_to_win_its_place_back_would_do_so():
    """Every refusal without a play-through is one with it, on random clusters and over random simulations: many are."""
    with pytest.MonkeyPatch.context() as patch:
        seen = held_against_the_play(patch)

        @settings(max_examples=tries(10, 200))
        @given(SEEDS)
        def would_do_so(seed):
            play(random_cluster(seed))
            beginning(Simulation(*workload(seed)))

        would_do_so()
    assert sum(size == 1 for size, _ in seen) >= 30, f"too few are refused: {seen}"


def test_candidates_that_are_ahead_of_whoever_holds_the_contender_up_are_not_played_through():
    """With the single job b would be ahead of a, but the gang has its turn first, after those of all candidates."""
    late = [replace(overdue(f"old{i}", gpu=1, ran=9000 - i), queue="a") for i in range(3)]
    held = replace(overdue("held", gpu=1, expected=None), queue="b")
    ahead = build("gang", tasks=4, of=spec(gpu=1), queue="b", age=900)
    single = replace(waiting(gpu=1, priority=0), queue="b")
    given_ = one_node(*late, held, ahead, single, queues=[queue("a"), queue("b")])
    with pytest.MonkeyPatch.context() as patch:
        seen = held_against_the_play(patch)
        played = play(given_)
    assert set(seen) == {(1, "ran")}  # the rules refuse sets of more
    assert played.steps == []
    assert played.requeue.rolled_back == 3
    assert requeued(play(one_node(*late, held, single, queues=[queue("a"), queue("b")])))
