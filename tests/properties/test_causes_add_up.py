"""On a cluster that does not change, what one cause does is not undone by the next (spec 2, "Causes add up")."""

from __future__ import annotations

import os

import pytest
from tests.properties.adding_up import drawn, forbidden, played

CLUSTERS = int(os.environ.get("TENURE_CLUSTERS", "120"))
"""How many clusters are played; ``TENURE_CLUSTERS=20000`` takes some twenty minutes on one processor."""

FIRST = int(os.environ.get("TENURE_FIRST_CLUSTER", "0"))
"""Where the seeds begin."""

CYCLES = 20
CHUNK = 20


@pytest.mark.parametrize("first", range(FIRST, FIRST + CLUSTERS, CHUNK))
def test_causes_add_up(first):
    """Nothing that was paid for is evicted, nobody is helped after all unless that was said, no plan undoes itself."""
    broken = {}
    for seed in range(first, min(first + CHUNK, FIRST + CLUSTERS)):
        found = forbidden(played(drawn(seed), CYCLES))
        if found:
            broken[seed] = found
    assert not broken


def test_the_clusters_are_worth_playing():
    """They see evictions of every kind, and sets of which something follows."""
    seen, said = set(), 0
    for seed in range(150):
        found = played(drawn(seed), CYCLES)
        seen |= {s.cause for s in found.steps if s.action == "evict"}
        said += len(found.follow_ups)
    assert {"quota", "consolidate", "reclaim", "preempt", "requeue"} <= seen
    assert said
