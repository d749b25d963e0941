"""Who goes from one queue that is over its max, against every possible set."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.builders import NOW
from tests.effort import tries
from tests.quota.oracle import best, best_sets, keeps_guarantees, later, over, value
from tests.quota.strategies import MINUTE, clusters

from tenure.model.queue import QueueStatus, QuotaStatus
from tenure.model.settings import ExactSettings
from tenure.playthrough import play


def fire_at_once(cluster, name):
    """Let one queue alone be armed, with a deadline that is now."""
    status = QueueStatus(
        quota_preemption=QuotaStatus(armed_at=NOW - MINUTE, delay=MINUTE, deadline=NOW, max=dict(cluster.queues[0].max))
    )
    queues = tuple(
        replace(q, quota_preemption_delay=MINUTE if q.name == name else 0, status=status if q.name == name else None)
        for q in cluster.queues
    )
    return replace(cluster, queues=queues)


def taken_in(cluster, played):
    """Pairs of workload and its tasks that were evicted."""
    gone = {(s.workload, s.task_index) for s in played.steps if s.action == "evict"}
    pairs = [(w, [t for i, t in enumerate(w.tasks) if (w.key, i) in gone]) for w in cluster.workloads]
    return [(w, tasks) for w, tasks in pairs if tasks]


@settings(max_examples=tries(75, 1500))
@given(clusters(levels=3, most=6, work=7), st.data())
def test_the_set_is_as_good_as_any(cluster, data):
    """Least over max, fewest last resorts, lowest highest priority, least freed; and no guarantee broken."""
    names = [q.name for q in cluster.queues if over(cluster, q.name)]
    assume(names)
    name = data.draw(st.sampled_from(names))
    cluster = fire_at_once(cluster, name)
    played = play(cluster)
    taken = taken_in(cluster, played)
    assert keeps_guarantees(cluster, taken)
    assert value(cluster, name, taken) == best(cluster, name)
    left = value(cluster, name, taken)[0]
    report = next(q for q in played.quota if q.queue == name)
    assert bool(report.shortfall) == (left > 0)
    assert bool(report.blockers) == bool(report.shortfall)


@settings(max_examples=tries(75, 1500))
@given(clusters(levels=1, most=1, work=7))
def test_of_sets_of_one_leaf_that_are_as_good_the_cheapest_goes(cluster):
    """Then the one with the fewest cores, then the one with the fewest tasks."""
    assume(over(cluster, "top"))
    cluster = fire_at_once(cluster, "top")
    found, sets = best_sets(cluster, "top")
    taken = taken_in(cluster, play(cluster))
    assert value(cluster, "top", taken) == found
    assert later(cluster, taken) == min(later(cluster, one) for one in sets)


@settings(max_examples=tries(20, 400))
@given(clusters(levels=3, most=6, work=7), st.data())
def test_the_quick_way_breaks_nothing_and_leaves_out_nothing_obvious(cluster, data):
    """Without a solver: no guarantee broken, and nothing more could be taken where something is left over."""
    names = [q.name for q in cluster.queues if over(cluster, q.name)]
    assume(names)
    name = data.draw(st.sampled_from(names))
    cluster = fire_at_once(cluster, name)
    moving = replace(cluster.settings.rescheduler, exact=ExactSettings(enabled=False))
    cluster = replace(cluster, settings=replace(cluster.settings, rescheduler=moving))
    taken = taken_in(cluster, play(cluster))
    assert keeps_guarantees(cluster, taken)
    assert value(cluster, name, taken)[0] >= best(cluster, name)[0]
