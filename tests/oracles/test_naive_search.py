"""The search for victims finds the set that a naive reading of the specification finds.

Ten thousand clusters by hand: ``TENURE_ORACLE=10000 pytest tests/oracles/test_naive_search.py``.
"""

from __future__ import annotations

import os
import random
from dataclasses import replace

import pytest
from tests.oracles.naive_search import best_set, pieces, with_devices
from tests.properties.contention import contended
from tests.properties.test_evictions import fair_shares

from tenure.engine.serving.placement import Placer
from tenure.engine.snapshot import session_of
from tenure.fairness.current import Fairness
from tenure.playthrough import play
from tenure.shields.plugins import EvictionPlugins
from tenure.victims.candidates.gatherer import CandidateGatherer
from tenure.victims.candidates.preemptible_usage import PreemptibleUsage
from tenure.victims.dry_run.dry_runs import DryRuns
from tenure.victims.rules.causes import PreemptRules, ReclaimEligibility
from tenure.victims.search.trials import SearchBudget
from tenure.victims.search.victim_search import VictimSearch

MANY = int(os.environ.get("TENURE_ORACLE", "120"))
MOST_PIECES = 7

GAVE_UP = "gave up"
"""The search is bounded by steps, and says so where it comes to its bound: it is not compared then."""


def drawn(seed):
    """Draw a cluster in which one workload waits, a core and nothing else, and all that runs says its devices."""
    state = contended(seed, crowd=1)
    workloads = with_devices(state.workloads)
    waits = replace(workloads[-1], min_member=None)
    return replace(state, workloads=(*workloads[:-1], waits)), waits


def chosen(cluster, key, cause):
    """The tasks that the search takes for a contender; None for nothing, or that it gave up."""
    session = session_of(cluster)
    shares, plugins = Fairness(session).now(), EvictionPlugins([])
    contender = session.workloads[key]
    if contender.step is None:
        return None
    rules = PreemptRules(session, contender) if cause == "preempt" else ReclaimEligibility(session, shares, contender)
    if rules.contender_may() is not None:
        return None
    dry_runs = DryRuns(session, Placer(session), shares, plugins)
    candidates = CandidateGatherer(session, plugins, PreemptibleUsage(session)).gather(rules)
    found = VictimSearch(dry_runs, rules, candidates).run(SearchBudget(1 << 20))
    if found.pieces is None:
        return GAVE_UP if found.cut else None
    return frozenset((p.workload.key, t.index) for p in found.pieces for t in p.tasks)


@pytest.mark.parametrize("cause", ["reclaim", "preempt"])
def test_the_search_finds_what_a_naive_reading_of_the_specification_finds(cause):
    """Whom it takes costs the least, among the sets that no other refuses; nobody where there is no such set."""
    looked = some = gave_up = 0
    for seed in range(MANY):
        cluster, waits = drawn(random.Random(seed).randrange(1 << 32))
        if len(pieces(cluster, waits)) > MOST_PIECES or play(replace(
            cluster, settings=replace(cluster.settings, actions=("allocate",)))).steps:  # fmt: skip
            continue
        best = best_set(cluster, fair_shares(cluster), waits, cause)
        mine = chosen(cluster, waits.key, cause)
        if mine == GAVE_UP:
            gave_up += 1
            continue
        assert (mine is None) == (best is None), (seed, mine, best)
        assert best is None or mine in best[1], (seed, mine, best)
        looked, some = looked + 1, some + (best is not None)
    assert looked >= MANY // 8
    assert some >= MANY // 60
    assert gave_up <= MANY // 1000
