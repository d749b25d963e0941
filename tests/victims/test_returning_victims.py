"""Who is said to return as another did has its place again when it is played through alone."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import tries
from tests.victims.test_bounds import contenders

from tenure.cycle import Scheduler
from tenure.engine.snapshot import session_of
from tenure.model.cluster import Cluster
from tenure.model.node import Node
from tenure.model.queue import Queue
from tenure.model.settings import Settings
from tenure.model.workload import Phase, Task, TaskSpec, Workload
from tenure.victims.dry_run.outcome import NO_ROOM, AcceptedSet
from tenure.victims.search.returning_victims import ReturningVictims

GPU = "nvidia.com/gpu"
NOW = 1_000_000_000_000_000


def close(seed):
    """A full cluster whose parents hold about the same, a share that is no whole number of GPUs."""
    rng = random.Random(seed)
    parents = [f"p{i}" for i in range(3)]
    leaves = [f"{p}q{i}" for p in parents for i in range(rng.randint(1, 3))]
    queues = [Queue(name=p) for p in parents] + [Queue(name=leaf, parent=leaf[:2]) for leaf in leaves]
    slots = [(node, device) for node in range(rng.choice([4, 5, 7])) for device in range(4)]
    rng.shuffle(slots)
    workloads = []
    for number, (node, device) in enumerate(slots):
        at = {"node": f"n{node}", "devices": (device,), "started_at": NOW - rng.randint(1, 99) * 60_000_000}
        below = [leaf for leaf in leaves if leaf.startswith(parents[max(0, number - 1) % 3])]
        workloads.append(_workload(f"r{number:02}", rng.choice(below), rng, phase=Phase.RUNNING, **at))
        workloads.append(_workload(f"w{number:02}", rng.choice(leaves), rng, size=rng.choice([1, 1, 2, 4])))
    nodes = tuple(Node(name=f"n{i}", allocatable={GPU: 4}) for i in range(len(slots) // 4))
    asked = Settings(actions=("allocate",))
    return Cluster(now=NOW, settings=asked, nodes=nodes, queues=tuple(queues), workloads=tuple(workloads))


def _workload(name, queue, rng, size=1, **at):
    task = Task(name=f"{name}-0", spec=TaskSpec(requests=((GPU, size),)), **at)
    return Workload(name=name, queue=queue, created_at=NOW - rng.randint(100, 200) * 60_000_000, tasks=(task,))


def said_to_return(seed):
    """Pieces that are said to return after one has, each with the trials in which that is so."""
    cluster = close(seed)
    session = session_of(cluster)
    Scheduler(session).cycle(cluster.now)
    rng = random.Random(seed)
    for dry_runs, contender, rules, pieces, _ in contenders(cluster, "reclaim", session, most=99):
        several = [rng.sample(pieces, min(len(pieces), rng.choice([2, 3]))) for _ in pieces]
        for taken in [*([piece] for piece in pieces), *several]:
            verdict = dry_runs.play(rules, taken)
            if isinstance(verdict, AcceptedSet) or verdict.shield != NO_ROOM or not dry_runs.back:
                continue
            returning = ReturningVictims(session, contender)
            returning.learn(taken, dry_runs.back)
            for piece in pieces:
                if piece not in taken and returning(piece):
                    yield dry_runs, contender, rules, piece, len(taken)


@given(st.integers(0, 1 << 32))
@settings(max_examples=tries(75, 750), deadline=None)
def test_none_that_is_said_to_return_pays(seed):
    for dry_runs, _, rules, piece, _ in said_to_return(seed):
        assert not isinstance(dry_runs.play(rules, [piece]), AcceptedSet)


def test_some_are_said_to():
    """After one piece had its place back, and after several had."""
    seen = Counter()
    for seed in (165, 102, 75, 74, *range(300)):  # four that show it, as long as no decision is another one
        seen.update("several" if count > 1 else "one" for *_, count in said_to_return(seed))
        if min(seen["one"], seen["several"]) > 20:
            return
    pytest.fail(f"said of too few: {seen}")
