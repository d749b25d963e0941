"""Pods that nobody recreates are neither moved nor requeued."""

from __future__ import annotations

import pytest
from tests.builders import cluster, node, queue, spec, steps, workload

from tenure.playthrough import play


@pytest.mark.parametrize(("kind", "evicted"), [("Pod", []), ("DaemonSet", []), ("Job", ["old-0"]), (None, ["old-0"])])
def test_overdue_pods_that_nobody_recreates_run_on(kind, evicted):
    """Requeue takes an overdue workload for a more deserving one, unless its pods would not come back."""
    old = workload("old", of=spec(cpu=4), on=["n"], running=7200, expected_runtime=60, priority=1, owner_kind=kind)
    new = workload("new", of=spec(cpu=4), priority=5)
    made = cluster([node("n", cpu=4)], [old, new], [queue("default")], actions=("allocate", "requeue"))
    assert [s[1] for s in steps(play(made), "evict")] == evicted


@pytest.mark.parametrize("action", ["reschedule", "consolidate"])
@pytest.mark.parametrize(("kind", "moved"), [("Pod", 0), ("DaemonSet", 0), ("Job", 1)])
def test_room_is_not_made_by_moving_pods_that_nobody_recreates(kind, moved, action):
    """A small pod moves to free a node, unless it would not come back, or not to another node."""
    small = workload("small", of=spec(cpu=2), on=["a"], running=600, owner_kind=kind)
    other = workload("other", of=spec(cpu=2), on=["b"], running=600, owner_kind="Pod")
    big = workload("big", of=spec(cpu=8), age=600)
    made = cluster([node("a", cpu=8), node("b", cpu=8)], [small, other, big], actions=("allocate", action))
    assert len(steps(play(made), "evict")) == moved


def test_reclaim_takes_them_all_the_same():
    """What is owed to another queue is taken from pods that nobody recreates too."""
    old = workload("old", of=spec(cpu=4), on=["n"], running=600, queue="b", owner_kind="Pod")
    new = workload("new", of=spec(cpu=4), queue="a")
    queues = [queue("a", guaranteed={"cpu": 4}), queue("b")]
    made = cluster([node("n", cpu=4)], [old, new], queues, actions=("allocate", "reclaim"))
    assert [s[1] for s in steps(play(made), "evict")] == ["old-0"]
