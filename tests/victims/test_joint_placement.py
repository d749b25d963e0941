"""Moves for one that waits: no place is sought for what would move where that could not help anyway."""

from __future__ import annotations

import pytest
from tests.builders import cluster, node, queue, spec, steps, workload

from tenure.model.selectors import HostPort, LabelSelector, SpreadConstraint
from tenure.playthrough import play
from tenure.victims.dry_run.joint_placement import JointPlacement

PORT = (HostPort(port=80),)
LABEL = (("app", "x"),)


def moves(*, nodes, work):
    """What is moved, from a cluster of one queue in which only moves are allowed."""
    return steps(
        play(cluster(nodes, work, [queue("default")], actions=("allocate", "consolidate"))), "evict", "nominate"
    )


def test_where_a_port_is_taken_on_each_node_nothing_is_tried_in_all_its_ways(monkeypatch):
    """It has no room, whatever moves and wherever that lands."""
    tried, ways = [], JointPlacement._ways
    monkeypatch.setattr(JointPlacement, "_ways", lambda *seen: tried.append(seen) or ways(*seen))
    names = [f"n{i}" for i in range(6)]
    taken = [workload(f"p-{n}", of=spec(host_ports=PORT), on=[n], preemptible=False) for n in names]
    small = [workload(f"m-{n}", on=[n]) for n in names]
    waits = workload("w", of=spec(cpu=2, host_ports=PORT))
    assert moves(nodes=[node(n, cpu=3) for n in names], work=[*taken, *small, waits]) == []
    assert tried == []


@pytest.mark.parametrize("tied", [True, False])
def test_what_counts_where_a_moved_task_lands_is_tried(tied):
    """Two of one label may stand in the first zone once one of them stands in the second."""
    constraint = SpreadConstraint(max_skew=1, topology_key="zone", selector=LabelSelector(match_labels=LABEL))
    nodes = [node(f"a{i}", cpu=4, labels={"zone": "a"}) for i in range(2)]
    nodes.append(node("b", cpu=1, labels={"zone": "b"}))
    stays = workload("stays", of=spec(cpu=4, labels=LABEL), on=["a0"], preemptible=False)
    goes = workload("goes", of=spec(cpu=1, labels=LABEL if tied else ()), on=["a1"])
    waits = workload("w", of=spec(cpu=4, labels=LABEL, spread=(constraint,)))
    found = moves(nodes=nodes, work=[stays, goes, waits])
    helped = [("evict", "goes-0", "a1"), ("nominate", "goes-0", "b"), ("nominate", "w-0", "a1")]
    assert [step[:3] for step in found] == (helped if tied else [])


def test_one_move_is_found_behind_many_that_land_nowhere():
    """Those of the first pieces have no place to go to; one of a queue of higher priority, behind them, does."""
    nodes = [node(n, cpu=4) for n in ("n0", "n1", *(f"full{i}" for i in range(13)))]
    fixed = [workload("two", of=spec(cpu=2), on=["n0"], preemptible=False),
             workload("three", of=spec(cpu=3), on=["n1"], preemptible=False)]  # fmt: skip
    large = [workload(f"big{i}", queue="low", of=spec(cpu=4), on=[f"full{i}"]) for i in range(13)]
    work = [*fixed, *large, workload("small", on=["n0"]), workload("w", of=spec(cpu=2))]
    queues = [queue("default"), queue("low", priority=50)]
    found = steps(play(cluster(nodes, work, queues, actions=("allocate", "consolidate"))), "evict", "nominate")
    helped = [("evict", "small-0", "n0"), ("nominate", "small-0", "n1"), ("nominate", "w-0", "n0")]
    assert [step[:3] for step in found] == helped
