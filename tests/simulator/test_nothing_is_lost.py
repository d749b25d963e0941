"""Simulations of random contended clusters with all actions on: every job ends, waits, or was dropped with a reason."""

from __future__ import annotations

import os
import random
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.effort import tries
from tests.properties.adding_up import drawn
from tests.properties.contention import MINUTE, contended

from tenure.model.settings import QuotaPreemptionSettings, Settings
from tenure.model.workload import Checkpoint
from tenure.simulator.checker import check
from tenure.simulator.checks.ends import BOUND_ENDED, ENDED_TWICE, LOST, NO_REASON, STILL_THERE
from tenure.simulator.checks.order import BOUND_FINISHED, BOUND_TWICE, ENDED_IDLE, EVICTED_IDLE
from tenure.simulator.log import END, EVICT, REST
from tenure.simulator.outcomes import outcomes_of
from tenure.simulator.run import Simulation, SimulationSetup, prepare
from tenure.simulator.traces.records import Trace, TraceJob

OURS = {LOST, ENDED_TWICE, BOUND_ENDED, STILL_THERE, NO_REASON, ENDED_IDLE, EVICTED_IDLE, BOUND_TWICE, BOUND_FINISHED}
"""What only the simulator can do wrong: whatever is planned, it keeps its books."""


def busy(seed):
    """A cluster and a trace: starts, ends, evictions and departures fall on the same few minutes."""
    rng = random.Random(seed)
    found = contended(seed, large=rng.random() < 0.3, crowd=rng.choice([4, 8]))
    chosen = Settings(
        actions=("stale-gang", "quota", "allocate", "consolidate", "reclaim", "preempt", "requeue", "reschedule"),
        reclaim_min_runtime=rng.choice([0, 0, 2 * MINUTE]),
        preempt_min_runtime=rng.choice([0, 0, 2 * MINUTE]),
        expected_runtime=rng.choice([None, 3 * MINUTE]),
        eviction_notice=rng.choice([0, 0, MINUTE]),
        quota_preemption=QuotaPreemptionSettings(enabled=True),
    )

    def dressed(workload):
        grace = rng.choice([0, 0, MINUTE, 2 * MINUTE])
        return replace(
            workload,
            tasks=tuple(replace(t, grace_period=grace) for t in workload.tasks),
            checkpoint=rng.choice([None, Checkpoint(interval=MINUTE)]),
            expected_runtime=rng.choice([None, 2 * MINUTE, 5 * MINUTE]),
        )

    standing = tuple(dressed(w) for w in found.workloads if w.started_at is not None)
    coming = [dressed(w) for w in found.workloads if w.started_at is None]
    coming += [replace(w, name=f"{w.name}-{n}", priority=rng.choice([0, 50, 90])) for w in coming for n in range(3)]
    jobs = [
        TraceJob(replace(w, created_at=rng.randrange(6) * MINUTE), rng.choice([0, 1, 2, 3, 8]) * MINUTE, w.name)
        for w in coming
    ]
    jobs.sort(key=lambda j: j.workload.created_at)
    state = replace(found, workloads=standing, settings=chosen)
    trace = Trace(format="tenure", jobs=tuple(jobs), records=len(jobs))
    return prepare(state, trace), trace


@settings(max_examples=tries(30, 600), deadline=None)
@given(st.integers(0, 1 << 32))
@example(24479058)  # what costs nothing was left out of a search in thought, and found in it again without end
def test_every_job_ends_once_or_says_why_not(seed):
    """No job of a known run time is left running, none that waits is forgotten, and none ends twice."""
    state, trace = busy(seed)
    result = Simulation(SimulationSetup(state), trace).run()
    out = outcomes_of(result.log, trace)
    ends = Counter((e[2], e[3]) for e in result.log.events if e[0] == END)
    assert all(times == 1 for times in ends.values())
    known = [job for job in range(len(out.state)) if out.runtime[job] >= 0]
    assert all(out.state[job] != "running" for job in known)
    found = check(result.log, state.nodes, queues=state.queues, settings=state.settings)
    assert not OURS.intersection(found.by_kind), found


def with_quotas(seed):
    """A cluster of many kinds of queues, maxima among them that were lowered below what runs, and what comes to it."""
    rng, found = random.Random(seed), drawn(seed)
    standing = tuple(w for w in found.workloads if w.started_at is not None)
    coming = [w for w in found.workloads if w.started_at is None]
    coming += [replace(w, name=f"{w.name}-{n}") for w in coming for n in range(2)]
    jobs = [
        TraceJob(
            replace(w, created_at=found.now + rng.randrange(6) * MINUTE), rng.choice([1, 2, 3, 8]) * MINUTE, w.name
        )
        for w in coming
    ]
    jobs.sort(key=lambda j: j.workload.created_at)
    trace = Trace(format="tenure", jobs=tuple(jobs), records=len(jobs))
    return prepare(replace(found, workloads=standing), trace), trace


SIMULATIONS = int(os.environ.get("TENURE_SIMULATIONS", "40"))
"""How many random simulations are held against the whole checker; ``TENURE_SIMULATIONS=400`` takes half a minute."""

CHUNK = 20


@pytest.mark.parametrize("kind", [busy, with_quotas])
@pytest.mark.parametrize("first", range(0, SIMULATIONS, CHUNK))
def test_the_checker_finds_nothing_in_random_simulations(first, kind):
    """No plan contradicts itself or the one before, every beneficiary ran, no queue goes over its maximum."""
    broken = {}
    for seed in range(first, min(first + CHUNK, SIMULATIONS)):
        state, trace = kind(seed)
        log = Simulation(SimulationSetup(state), trace).run().log
        found = check(log, state.nodes, queues=state.queues, settings=state.settings)
        if found.total:
            broken[seed] = found.examples
    assert not broken


def test_a_gang_that_was_told_for_two_contenders_does_not_run_by_half():
    """What one of them needs no more stays, so that the other one's set is looked for anew."""
    state, trace = busy(301)
    log = Simulation(SimulationSetup(state), trace).run().log
    assert check(log, state.nodes, queues=state.queues, settings=state.settings).total == 0


def test_the_simulations_above_evict_by_several_causes():
    missing = {"reclaim", "preempt", "consolidate", "quota"}
    for state, trace in (kind(seed) for seed in range(40) for kind in (busy, with_quotas)):
        missing -= {e[5].cause for e in Simulation(SimulationSetup(state), trace).run().log.events if e[0] == EVICT}
        if not missing:
            return
    pytest.fail(f"no eviction by {sorted(missing)}")


def test_a_log_has_what_each_plan_said_to_follow():
    """By the plan that said it first, for the checker; in these simulations some do."""
    said = {}

    def hear(plan):
        for follow_up in plan.follow_ups:
            for key, name in follow_up.evict:
                told = running.job_of[follow_up.of], running.job_of[key], name
                said.setdefault(told, len(running.log.plans.begins))

    for seed in (13, 29):
        state, trace = busy(seed)
        running = Simulation(SimulationSetup(state), trace)
        running.heard = hear
        log = running.run().log
        named = {
            (of, job, log.workloads[job].tasks[i].name): plan for (of, job, i), plan in log.plans.follow_ups.items()
        }
        assert said
        assert named == said
        said.clear()


def test_what_runs_for_ever_does_not_keep_the_simulation_going():
    """Many wait behind it and are looked at again and again; the simulation ends, and says that they wait."""
    state, trace = busy(189)
    result = Simulation(SimulationSetup(state), trace).run()
    assert result.complete
    assert {e[2] for e in result.log.events if e[0] == REST} >= {
        job for job, state in enumerate(outcomes_of(result.log, trace).state) if state == "pending"
    }
