"""Whether somebody reads why or not, the same is decided."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.effort import tries
from tests.properties.contention import contended
from tests.victims.test_returning_victims import close

from tenure.cycle import Scheduler
from tenure.engine.snapshot import session_of
from tenure.model.settings import Settings

MINUTE = 60_000_000


def decided(cluster, *, detailed, cycles=3):
    """What is done in some cycles, with or without reasons."""
    session = session_of(cluster)
    scheduler = Scheduler(session)
    scheduler.context.detailed = detailed
    found = []
    for number in range(cycles):
        plan = scheduler.cycle(cluster.now + number * 7 * MINUTE)
        found.append([(s.action, s.workload, s.task_index, s.node) for s in plan.steps])
    return found


@given(st.integers(0, 1 << 32))
@example(791)  # moving others is dearer than reclaim would be: nobody is remembered as one who finds no place to land
@settings(max_examples=tries(20, 400), deadline=None)
def test_on_small_clusters(seed):
    cluster = contended(seed, large=True, crowd=10)
    assert decided(cluster, detailed=True) == decided(cluster, detailed=False)


@pytest.mark.parametrize("seed", range(60))
def test_where_there_are_many_candidates(seed):
    cluster = replace(close(seed), settings=Settings())
    assert decided(cluster, detailed=True) == decided(cluster, detailed=False)


def test_something_is_decided_there():
    plans = [decided(replace(close(seed), settings=Settings()), detailed=False) for seed in range(60)]
    assert sum(any(step[0] == "evict" for cycle in plan for step in cycle) for plan in plans) > 10
