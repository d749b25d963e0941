"""Reclaim finds the set that a naive reading of the specification finds, also where tasks hold CPU and GPUs.

Thousands of clusters by hand: ``TENURE_ORACLE=9000 pytest tests/oracles/test_naive_reclaim.py``.
"""

from __future__ import annotations

import os
import random
from dataclasses import replace

import pytest
from tests.builders import NOW, SECOND, cluster, node, queue, spec, task, workload
from tests.oracles.naive_reclaim import GPU, NaiveReclaim
from tests.oracles.naive_search import pieces, with_devices
from tests.oracles.test_naive_search import MOST_PIECES, chosen

from tenure.model.checks.cluster import check_cluster
from tenure.playthrough import play

MANY = int(os.environ.get("TENURE_ORACLE", "120"))

SHAPES = (
    ("a", "b"),
    ("a", "b", "c"),
    ("a", "b", "a.x", "a.y"),
    ("a", "b", "a.x", "a.y", "b.x", "b.y"),
    ("a", "b", "a.x", "a.y", "a.x.1", "a.x.2"),
)
"""Trees of queues: what stands behind a dot is below what stands before it."""


def drawn(rng):
    """Draw a cluster in which one workload waits and a few run; None for one that would not be valid."""
    nodes = [node(f"n{i}", cpu=rng.choice([4, 6]), gpu=rng.choice([2, 3])) for i in range(rng.randint(1, 2))]
    queues = _queues(rng, nodes)
    leaves = [q.name for q in queues if all(other.parent != q.name for other in queues)]
    running = with_devices(_running(rng, nodes, leaves))
    cpu, gpu = rng.choice([(n, m) for n in range(5) for m in range(3) if n or m])
    waits = workload(
        "p", tasks=rng.choice([1, 1, 2]), of=spec(cpu=cpu, gpu=gpu), queue=rng.choice(leaves),
        priority=rng.choice([0, 10, 50, 100]), age=rng.randint(0, 3000),
    )  # fmt: skip
    found = cluster(nodes, [*running, waits], queues, actions=("reclaim",))
    return (found, waits) if all(finding.is_warning for finding in check_cluster(found)) else None


def _queues(rng, nodes):
    shape, named = rng.choice(SHAPES), rng.choice([("cpu", "gpu"), ("cpu", "gpu"), ("gpu",)])
    total = {"cpu": sum(n.allocatable["cpu"] for n in nodes) // 1000, "gpu": sum(n.allocatable[GPU] for n in nodes)}
    floors = {}
    for name in reversed(shape):
        below = [floors[other] for other in shape if other.rpartition(".")[0] == name]
        own = [r for r in named if rng.random() < (0.3 if below else 0.6)]
        floors[name] = {r: sum(f.get(r, 0) for f in below) + rng.randint(0, total[r] // 2) for r in own}
    return [
        queue(name, name.rpartition(".")[0] or None, guaranteed=floors[name], weight=rng.choice([1.0, 1.0, 2.0, 0.0]),
              priority=rng.choice([100, 100, 100, 50]))
        for name in shape
    ]  # fmt: skip


def _running(rng, nodes, leaves):
    room = {n.name: [n.allocatable["cpu"] // 1000, n.allocatable[GPU]] for n in nodes}
    found = []
    for number in range(rng.randint(1, 5)):
        ran, tasks = rng.choice([60, 300, 600, 3000]), []
        for index in range(rng.choice([1, 1, 2, 3])):
            cpu, gpu = rng.choice([(n, m) for n in range(4) for m in range(3) if n or m])
            where = [name for name, (cores, gpus) in sorted(room.items()) if cores >= cpu and gpus >= gpu]
            if where:
                on = rng.choice(where)
                room[on] = [room[on][0] - cpu, room[on][1] - gpu]
                own = spec(cpu=cpu, gpu=gpu)
                tasks.append(task(f"r{number}-{index}", own, on=on, started_at=NOW - ran * SECOND))
        if tasks:
            found.append(
                workload(
                    f"r{number}", tasks=tasks, queue=rng.choice(leaves), priority=rng.choice([0, 0, 10, 50, 100]),
                    min_member=rng.choice([None, 1, len(tasks)]), running=ran, age=ran + 60,
                )
            )  # fmt: skip
    return found


def test_reclaim_finds_what_a_naive_reading_finds_for_several_resources():
    """Queues in up to three levels, gangs, surplus, tasks of different sizes; some set is found again and again."""
    looked = some = 0
    for seed in range(MANY):
        found = drawn(random.Random(seed))
        if found is None or len(pieces(*found)) > MOST_PIECES:
            continue
        state, waits = found
        if play(replace(state, settings=replace(state.settings, actions=("allocate",)))).steps:
            continue
        best, mine = NaiveReclaim(state, waits).best(), chosen(state, waits.key, "reclaim")
        assert (mine is None) == (best is None), (seed, mine, best)
        assert best is None or mine in best, (seed, mine, best)
        looked, some = looked + 1, some + (best is not None)
    assert looked >= MANY // 8
    assert some >= MANY // 40


MISSED_ONCE = {
    1958: "what holds more CPU, by which no queue is compared, was taken first, and left too little to take of GPUs",
    2404: "the same: the other order had been found, as two are equally small",
}
"""Clusters on which the search missed a set that pays, and why."""


@pytest.mark.parametrize("seed", MISSED_ONCE, ids=str)
def test_what_was_missed_once(seed):
    state, waits = drawn(random.Random(seed))
    assert chosen(state, waits.key, "reclaim") in NaiveReclaim(state, waits).best()
