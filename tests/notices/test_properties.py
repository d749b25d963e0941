"""What holds for every notice, on random contended clusters that change under it."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.effort import tries
from tests.properties.adding_up import announced, played
from tests.properties.contention import GPU, MINUTE, contended

from tenure.cli.terminal.outputs import write_cluster
from tenure.clusters.embedded import EmbeddedCluster
from tenure.cycle import Scheduler
from tenure.engine.snapshot import session_of
from tenure.model.file.load import load_cluster
from tenure.model.settings import FairnessSettings, HistorySettings
from tenure.model.workload import Checkpoint

seeds = st.integers(0, 1 << 32)
RUNNING = ("Running", "Bound", "Terminating")


def with_notices(seed, crowd=4):
    """A contended cluster in which most have a notice; some save on it, some are about to end."""
    rng, state = random.Random(seed), contended(seed, large=crowd > 4, crowd=crowd)
    workloads = [
        replace(
            w,
            eviction_notice=rng.choice([None, None, 0, 2 * MINUTE, 60 * MINUTE]),
            checkpoint=rng.choice([None, None, Checkpoint(interval=10 * MINUTE)]),
            expected_runtime=rng.choice([None, None, 5 * MINUTE, 100 * MINUTE]),
        )
        for w in state.workloads
    ]
    queues = [replace(q, max_eviction_notice=rng.choice([None, None, 4 * MINUTE])) for q in state.queues]
    chosen = replace(state.settings, eviction_notice=rng.choice([3, 7]) * MINUTE)
    return replace(state, workloads=tuple(workloads), queues=tuple(queues), settings=chosen)


def disturbed(state, rng):
    """The same cluster after something has happened that nobody planned."""
    kind, number = rng.randrange(8), rng.randrange(len(state.workloads) or 1)
    workloads = list(state.workloads)
    if kind == 0 and workloads:
        del workloads[number]
    elif kind == 1 and workloads:
        workloads[number] = replace(workloads[number], preemptible=rng.choice([True, False]))
    elif kind == 2 and workloads:
        workloads[number] = replace(workloads[number], priority=rng.choice([0, 10, 90]))
    elif kind == 3 and workloads:
        workloads[number] = replace(workloads[number], annotations={"tenure.dev/eviction-ack": "true"})
    elif kind == 4 and workloads:
        pending = [t.phase == "Pending" for t in workloads[number].tasks]
        if all(pending):
            again = replace(workloads[number], name=f"new{rng.randrange(1 << 30)}", created_at=state.now)
            workloads.append(replace(again, tasks=tuple(replace(t, nominated=None) for t in again.tasks)))
    return replace(state, workloads=tuple(workloads))


def watched(state, cycles, rng=None):
    """Play cycles a minute apart and check what holds after each; gives all plans."""
    embedded, plans = EmbeddedCluster(state), []
    for number in range(cycles):
        if number:
            embedded.advance(state.now + number * MINUTE)
            if rng is not None and rng.random() < 0.5:
                embedded.cluster = disturbed(embedded.observe(), rng)
        before = embedded.observe()
        plan = Scheduler(session_of(before)).cycle(before.now)
        check_steps(before, plan)
        embedded.carry_out(plan)
        check_state(embedded.observe())
        plans.append(plan)
    return plans


def check_steps(before, plan):
    """Nobody is evicted before its deadline who did not save or acknowledge; nobody is told what was told before."""
    tasks = {(w.key, t.name): (w, t) for w in before.workloads for t in w.tasks}
    done = {}
    for step in plan.steps:
        if step.action not in ("evict", "notice", "withdraw"):
            continue
        workload, task = tasks[step.workload, step.task]
        notice = task.notice
        done.setdefault((step.workload, step.task), []).append(step.action)
        if step.action == "notice":
            assert step.deadline > plan.now
            assert notice is None or step.deadline <= notice.deadline
        elif step.action == "withdraw":
            assert notice is not None
        elif notice is not None and notice.deadline > plan.now:
            saved = workload.checkpoint is not None and (workload.checkpoint.last_at or 0) > notice.at
            assert saved or workload.annotations
            end = workload.started_at + (workload.expected_runtime or 0)
            assert "withdraw" in done[step.workload, step.task] or not plan.now < end <= notice.deadline
        elif notice is None:
            assert step.deadline < 0
    assert all(order in (["evict"], ["notice"], ["withdraw"], ["withdraw", "evict"]) for order in done.values())


def check_state(state):
    """Nothing is late, nothing is on a node beyond what it has, and who is told has somebody to go for."""
    keys = {w.key for w in state.workloads if any(t.nominated is not None or t.phase == "Bound" for t in w.tasks)}
    held = dict.fromkeys([n.name for n in state.nodes], 0)
    for workload in state.workloads:
        for task in workload.tasks:
            if task.phase in RUNNING:
                held[task.node] += dict(task.spec.requests).get(GPU, 0)
            if task.notice is not None:
                assert task.phase in ("Running", "Bound")
                assert task.notice.deadline > state.now
                assert task.notice.beneficiary is None or task.notice.beneficiary in keys
    assert all(held[n.name] <= n.allocatable[GPU] for n in state.nodes)


@given(seeds)
@settings(max_examples=tries(20, 400))
def test_an_announced_eviction_comes_in_time_and_for_somebody_who_then_runs(seed):
    """Where nobody meddles, each beneficiary gets its place, unless one ahead of it takes the promised room."""
    plans = watched(with_notices(seed), 40)
    bound = {s.workload: n for n, p in enumerate(plans) for s in p.steps if s.action == "bind"}
    for number, plan in enumerate(plans):
        for step in plan.steps:
            if step.action == "evict" and step.beneficiary is not None and number < 30:
                beaten = any(key == step.beneficiary for later in plans[number + 1 :] for key, _ in later.expired)
                assert beaten or bound.get(step.beneficiary, -1) >= number


@pytest.mark.parametrize("seed", [6, 102])
def test_what_stands_is_not_told_again(seed):
    """Where a notice is withdrawn and given again as it was in one cycle, nothing is to be written."""
    standing = {}
    for step in played(announced(seed), 6).steps:
        if step.action == "notice":
            told = step.cause, step.beneficiary, step.deadline
            assert standing.get((step.workload, step.task)) != told
            standing[step.workload, step.task] = told
        elif step.action in ("withdraw", "evict"):
            standing.pop((step.workload, step.task), None)


@given(seeds)
@settings(max_examples=40)
def test_whatever_happens_in_between(seed):
    """Workloads that go, come, change or acknowledge: nobody goes too early, and nobody is forgotten."""
    watched(with_notices(seed), 15, random.Random(seed))


@given(seeds)
@settings(max_examples=30)
def test_a_notice_does_not_change_who_goes(seed):
    """Where everybody has the same notice and nobody saves, the same victims go, later."""
    state = contended(seed)
    state = replace(state, workloads=tuple(replace(w, checkpoint=None, expected_runtime=None) for w in state.workloads))
    told = replace(state, settings=replace(state.settings, eviction_notice=2 * MINUTE))

    def victims(given, action):
        plan = Scheduler(session_of(given)).cycle(given.now)
        return [(s.workload, s.task, s.beneficiary, s.cost, s.to) for s in plan.steps if s.action == action]

    assert victims(told, "notice") == victims(state, "evict")


@given(seed=seeds)
@settings(max_examples=25)
def test_the_cluster_file_says_it_all(tmp_path_factory, seed):
    """Written to a file between any two cycles and read again, the next plan is the same."""
    embedded, file = EmbeddedCluster(with_notices(seed)), Path(tmp_path_factory.mktemp("notices")) / "cluster.json"
    for number in range(8):
        if number:
            embedded.advance(embedded.observe().now + MINUTE)
        state = embedded.observe()
        plan = Scheduler(session_of(state)).cycle(state.now)
        write_cluster(state, str(file))
        again = load_cluster(file).cluster
        assert Scheduler(session_of(again)).cycle(state.now).steps == plan.steps
        embedded.carry_out(plan)


@given(
    seeds, st.booleans(), st.sampled_from([("reclaim",), ("reclaim", "preempt"), ("consolidate", "reclaim", "preempt")])
)
@example(
    seed=29, history=True, causes=("reclaim", "preempt")
)  # what was promised counted as used, what was told did not
@settings(max_examples=tries(8, 200))
def test_an_untouched_cluster_comes_to_rest_though_many_wait(seed, history, causes):
    """A hundred minutes in which nothing happens by itself: evictions and notices stop, with and without history.

    Some minimum runtimes are twenty minutes, so a few things happen late.
    """
    state = with_notices(seed, crowd=12)
    workloads = tuple(replace(w, expected_runtime=None) for w in state.workloads)
    fairness = FairnessSettings(history=HistorySettings(strength=2.0) if history else None)
    chosen = replace(state.settings, fairness=fairness, actions=("allocate", *causes))
    plans = watched(replace(state, workloads=workloads, settings=chosen), 100)
    assert not [s for p in plans[80:] for s in p.steps if s.action in ("notice", "withdraw", "evict")]
    told = Counter((s.workload, s.task, s.beneficiary) for p in plans for s in p.steps if s.action == "notice")
    assert all(times <= 4 for times in told.values())
