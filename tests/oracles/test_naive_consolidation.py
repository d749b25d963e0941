"""Consolidation moves what a naive reading of the specification moves, and nothing where that finds nothing.

Ten thousand clusters by hand: ``TENURE_ORACLE=10000 pytest tests/oracles/test_naive_consolidation.py``.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from dataclasses import replace

from tests.oracles.naive_consolidation import NaiveConsolidation
from tests.oracles.naive_search import with_devices
from tests.properties.contention import GPU, MINUTE, NOW, contended

from tenure.model.workload import Task, TaskSpec, Workload
from tenure.playthrough import play

MANY = int(os.environ.get("TENURE_ORACLE", "400"))
MOST_UNITS = 6


def drawn(seed):
    """Draw a cluster with gaps on its nodes, in which one workload waits that fits into none of them as it is."""
    rng = random.Random(seed)
    state = contended(rng.randrange(1 << 32), crowd=1)
    running = [w for w in state.workloads[:-1] if rng.random() < 0.8]
    size = state.nodes[0].allocatable[GPU]
    gaps = {n.name: size for n in state.nodes}
    for task in (t for w in running for t in w.tasks):
        gaps[task.node] -= dict(task.spec.requests)[GPU]
    free = max(1, sum(gaps.values()))
    each = min(size, max(gaps.values()) + 1) if rng.random() < 0.8 else rng.randint(1, size)
    tasks = tuple(
        Task(name=f"p-{i}", spec=TaskSpec(requests=((GPU, each),))) for i in range(rng.randint(1, max(1, free // each)))
    )
    waits = Workload(
        name="p", queue=state.workloads[-1].queue, priority=rng.choice([0, 50, 100]), tasks=tasks,
        created_at=NOW - MINUTE,
    )  # fmt: skip
    workloads = (*with_devices([replace(w, priority=min(w.priority, 90)) for w in running]), waits)
    settings = replace(state.settings, actions=("allocate", "consolidate"))
    return replace(state, workloads=workloads, settings=settings), waits


def test_consolidation_is_what_a_naive_reading_of_the_specification_finds():
    """What moves costs the least of what no other set refuses, and lands; nobody moves where no set would do."""
    looked = Counter()
    for seed in range(MANY):
        cluster, waits = drawn(seed)
        naive = NaiveConsolidation(cluster, waits)
        if len(naive.units()) > MOST_UNITS or naive.fits(()):
            continue
        best = naive.best()
        plan = play(cluster).steps
        mine = frozenset(
            (s.workload, next(i for i, t in enumerate(naive.names[s.workload].tasks) if t.name == s.task))
            for s in plan
            if s.action == "evict"
        )
        assert bool(mine) == (best is not None), (seed, mine, best)
        assert best is None or mine in best[1], (seed, mine, best)
        if mine:
            landed = {(s.workload, s.task) for s in plan if s.action == "nominate"}
            assert all((s.workload, s.task) in landed for s in plan if s.action == "evict"), seed
        looked[len(mine)] += 1
    assert looked[0] >= MANY // 4
    assert sum(n for size, n in looked.items() if size) >= MANY // 100
