"""What every plan obeys, whatever the cluster."""

from __future__ import annotations

import json
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from tests.properties.checker import violations
from tests.properties.strategies import clusters

from tenure.playthrough import play
from tenure.report.plans.plan_json import plan_json


@given(clusters())
def test_a_plan_breaks_nothing(cluster):
    """Capacity of nodes, devices and queues, gangs, constraints, topology, guarantees."""
    assert violations(play(cluster)) == []


@given(clusters(crowded=True))
def test_a_plan_breaks_nothing_where_tasks_look_at_each_other(cluster):
    assert violations(play(cluster)) == []


@given(clusters(plain=True, leaving=True))
def test_a_plan_breaks_nothing_where_much_is_about_to_leave(cluster):
    assert violations(play(cluster)) == []


@given(clusters(), st.integers(2, 4))
def test_cycle_after_cycle_breaks_nothing(cluster, cycles):
    """The same with every cycle starting from what the last one left."""
    for _ in range(cycles):
        played = play(cluster)
        assert violations(played) == []
        cluster = replace(played.after, now=played.after.now + 3_000_000)


@given(clusters(), st.randoms(use_true_random=False))
def test_the_order_of_the_input_does_not_matter(cluster, shuffle):
    """Nodes, queues and workloads may come in any order: same plan, same reasons, same queues."""

    def shuffled(entries):
        return tuple(shuffle.sample(entries, len(entries)))

    other = replace(
        cluster,
        nodes=shuffled(cluster.nodes),
        queues=shuffled(cluster.queues),
        workloads=shuffled(cluster.workloads),
    )
    assert plan_json(play(other)) == plan_json(play(cluster))


@given(clusters())
def test_the_same_input_twice_gives_the_same_bytes(cluster):
    first, second = (json.dumps(plan_json(play(cluster))) for _ in range(2))
    assert first == second


@given(clusters())
def test_what_waits_says_why(cluster):
    """Each workload with a task that could still be placed is listed once, with reasons."""
    played = play(cluster)
    waiting = {w.key for w in played.after.workloads if any(t.phase in ("Pending", "Gated") for t in w.tasks)}
    assert [p.workload for p in played.pending] == sorted(waiting)
    assert all(p.reasons for p in played.pending)
