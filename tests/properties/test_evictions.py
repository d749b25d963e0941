"""What holds for every eviction, on random contended clusters."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import tries
from tests.properties.contention import contended
from tests.properties.taking_checker import broken

from tenure.engine.snapshot import session_of
from tenure.fairness.current import Fairness
from tenure.model.settings import FairnessSettings, HistorySettings, SearchSettings
from tenure.playthrough import play

GPU = "nvidia.com/gpu"
seeds = st.integers(0, 1 << 32)


def fair_shares(cluster):
    """Fair share of every queue in milli-GPU."""
    session = session_of(cluster)
    row = session.queues.resources.index(GPU)
    shares = Fairness(session).now().fair_without_history
    return {q.name: shares[n][row] for n, q in enumerate(session.queues.queues)}


@given(seeds)
@settings(max_examples=tries(75, 1500), deadline=None)
def test_no_eviction_breaks_a_rule(seed):
    """A second reading of the rules, on the states before and after, finds nothing."""
    cluster = contended(seed)
    assert broken(cluster, play(cluster).steps, fair_shares(cluster)) == []


@given(seeds)
@settings(max_examples=40, deadline=None)
def test_no_eviction_breaks_a_rule_on_larger_clusters(seed):
    cluster = contended(seed, large=True)
    assert broken(cluster, play(cluster).steps, fair_shares(cluster)) == []


@given(seeds, st.booleans())
@settings(max_examples=tries(6, 120), deadline=None)
def test_an_unchanged_workload_comes_to_rest(seed, history):
    """A hundred cycles with evicted work pending again, with and without time-based fairness: evictions stop."""
    cluster = contended(seed)
    if history:
        chosen = FairnessSettings(history=HistorySettings(strength=2.0))
        cluster = replace(cluster, settings=replace(cluster.settings, fairness=chosen))
    steps = play(cluster, cycles=100).steps
    assert all(s.cycle < 50 for s in steps if s.action == "evict")


@given(seeds)
@settings(max_examples=60, deadline=None)
def test_a_bound_of_one_set_is_reported_and_what_comes_out_is_valid(seed):
    cluster = contended(seed)
    tight = replace(cluster, settings=replace(cluster.settings, search=SearchSettings(max_scenarios=1)))
    played = play(tight)
    assert broken(tight, played.steps, fair_shares(tight)) == []
    unbounded = play(cluster)
    if [s for s in unbounded.steps if s.action == "evict"] != [s for s in played.steps if s.action == "evict"]:
        assert any(w.startswith("search-exhausted") for w in played.warnings)


@given(seeds)
@settings(max_examples=40, deadline=None)
def test_the_same_cluster_gives_the_same_plan(seed):
    cluster = contended(seed)
    assert play(cluster).steps == play(cluster).steps


@pytest.mark.parametrize("seed", range(5))
def test_evictions_do_happen_in_these_clusters(seed):
    """So that the properties above speak of something: among forty clusters several evict."""
    clusters = [contended(1000 * seed + n) for n in range(40)]
    assert sum(any(s.action == "evict" for s in play(c).steps) for c in clusters) >= 3
