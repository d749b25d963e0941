"""Room of many tasks is taken together, and comes to what it comes to task by task."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.builders import cluster, node, spec, task, workload
from tests.properties.adding_up import announced, drawn

from tenure.engine.snapshot import session_of
from tenure.engine.state import restore
from tenure.model.workload import Phase

EACH, TOGETHER = 1 << 40, 1


def rooms(state, monkeypatch):
    """Give the room, the devices and the changed nodes of a cluster's session, task by task and taken together."""
    found = []
    for many in (EACH, TOGETHER):
        monkeypatch.setattr(restore, "MANY", many)
        nodes = session_of(state).nodes
        found.append((nodes.room, nodes.device, frozenset(nodes.changed)))
    return found


def alike(one, other):
    """Whether rooms are the same."""
    return np.array_equal(one[0], other[0]) and np.array_equal(one[1], other[1]) and one[2] == other[2]


@pytest.mark.parametrize("draw", [drawn, announced], ids=["drawn", "under notice"])
def test_it_comes_to_the_same_on_random_clusters(draw, monkeypatch):
    """Also where some leave, are promised room, or do not say which devices they hold."""
    for seed in range(60):
        assert alike(*rooms(draw(seed), monkeypatch)), seed


@pytest.mark.parametrize("told", [(0, 3), ()], ids=["told", "untold"])
def test_beside_parts_of_gpus_and_what_terminates(told, monkeypatch):
    """These change the same node, one by one."""
    whole, part = spec(cpu=1, gpu=2), spec(cpu=1, fraction=500)
    leaving = replace(task("leaves", spec(gpu=1), on="n0", devices=[2]), phase=Phase.TERMINATING)
    running = [
        workload("plain", of=spec(cpu=2), tasks=3, on=["n0", "n1", "n1"], running=60),
        workload("whole", tasks=[task("whole", whole, on="n0", devices=told)], running=60),
        workload("part", tasks=[task("part", part, on="n0", devices=[1])], running=60),
        workload("leaves", tasks=[leaving], running=60),
    ]
    each, together = rooms(cluster([node("n0", cpu=16, gpu=4), node("n1", cpu=16)], running), monkeypatch)
    assert alike(each, together)
