"""What holds for every requeue, on random clusters and over long simulations."""

from __future__ import annotations

import itertools
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.builders import SECOND
from tests.effort import tries
from tests.requeue.checker import groups, problems
from tests.requeue.clusters import ACTIONS
from tests.requeue.random_clusters import random_cluster
from tests.requeue.state import full_state

from tenure.cycle import Scheduler
from tenure.engine.snapshot import session_of
from tenure.playthrough import play

SEEDS = st.integers(0, 100_000)


@given(SEEDS)
def test_every_commit_obeys_the_rules_and_nobody_goes_in_vain(seed):
    """Beneficiaries are placed by the same plan and deserve more; without any of the evicted they would not fit."""
    cluster = random_cluster(seed)
    assert problems(cluster, play(cluster)) == []


def test_the_property_above_sees_many_commits():
    """Among the first clusters are commits of one and of several, and rollbacks: the property is about something."""
    played = [play(random_cluster(seed)) for seed in range(300)]
    sizes = [len(v) for p in played for v in groups(p).values()]
    assert sum(s == 1 for s in sizes) >= 20
    assert sum(s > 1 for s in sizes) >= 3
    assert sum(p.requeue.rolled_back > 0 for p in played) >= 50


@given(SEEDS)
def test_a_rollback_leaves_the_session_as_it_was(seed):
    """Room, queues, workloads, tasks, who waits in which order."""
    cluster = random_cluster(seed, actions=("requeue",))
    first = play(replace(cluster, settings=replace(cluster.settings, actions=("allocate",))))
    session = session_of(first.after)
    before = full_state(session)
    plan = Scheduler(session).cycle(first.after.now)
    if not plan.steps:
        assert full_state(session) == before
        assert not plan.requeue.not_before


@given(SEEDS)
def test_with_nobody_waiting_nothing_is_evicted(seed):
    cluster = random_cluster(seed)
    alone = replace(cluster, workloads=tuple(w for w in cluster.workloads if w.started_at is not None))
    played = play(alone, cycles=3)
    assert not groups(played)
    assert played.requeue.rolled_back == 0 or any(t.phase == "Pending" for w in alone.workloads for t in w.tasks)


@settings(max_examples=tries(12, 250))
@given(SEEDS)
def test_an_unchanged_workload_comes_to_rest(seed):
    """All actions of the queues together, without history: no eviction in the last third of 60 cycles."""
    cluster = random_cluster(seed, actions=ACTIONS)
    played = play(cluster, cycles=60, every=600 * SECOND)
    assert [s for s in played.steps if s.action == "evict" and s.cycle >= 40] == []


@settings(max_examples=tries(12, 250))
@given(SEEDS)
def test_nobody_is_requeued_twice_within_the_cooldown(seed):
    cluster = random_cluster(seed)
    played = play(cluster, cycles=40, every=120 * SECOND)
    times = {}
    for entry in played.after.evictions:
        if entry.cause == "requeue":
            times.setdefault(entry.workload, set()).add(entry.at)
    for found in times.values():
        ordered = sorted(found)
        assert all(b - a >= 600 * SECOND for a, b in itertools.pairwise(ordered))
