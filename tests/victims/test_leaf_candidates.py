"""Lots whose pieces are worked out when a search comes to them are those in which all was worked out before."""

from __future__ import annotations

import random
from itertools import islice

from hypothesis import given, settings
from hypothesis import strategies as st

from tenure.engine.snapshot import session_of
from tenure.engine.workloads import BOUND, RUNNING
from tenure.fairness.current import Fairness
from tenure.model.cluster import Cluster
from tenure.model.node import Node
from tenure.model.queue import Queue
from tenure.model.settings import Settings
from tenure.model.workload import Checkpoint, Phase, Task, TaskSpec, Workload
from tenure.shields.plugins import EvictionPlugins
from tenure.victims.candidates import CandidateGatherer
from tenure.victims.preemptible_usage import PreemptibleUsage
from tenure.victims.rules import ReclaimEligibility

GPU = "nvidia.com/gpu"
MINUTE = 60_000_000
NOW = 1_000_000_000_000_000
CHECKPOINTS = [None] * 6 + [Checkpoint(interval=7 * MINUTE), Checkpoint(restart_overhead=3 * MINUTE)]


class Agrees:
    """A plugin that lets everybody go, for which everybody has to be looked at."""

    name = "agrees"

    def allow_victim(self, *_):
        return True


def crowded(rng):
    """Several queues in which much runs: single tasks, gangs, elastic workloads, with checkpoints and without."""
    leaves = [f"q{i}" for i in range(rng.randint(2, 4))]
    priorities = rng.choice([(0,), (0,), (0, 5)])
    workloads = [Workload(name="waits", queue=leaves[0], created_at=NOW - MINUTE, tasks=(_task("waits-0", rng),))]
    for number in range(rng.randint(1, 24)):
        name, count = f"r{number}", rng.choice([1, 1, 2, 3])
        started = NOW - rng.randint(-2, 90) * MINUTE
        tasks = [_task(f"{name}-{i}", rng, started, rng.choice([0, 0, 0, 4]) * MINUTE) for i in range(count)]
        workloads.append(
            Workload(
                name=name, queue=rng.choice(leaves), priority=rng.choice(priorities), created_at=started - MINUTE,
                started_at=rng.choice([started] * 8 + [None]), tasks=tuple(tasks),
                min_member=rng.choice([None, None, 1]), checkpoint=rng.choice(CHECKPOINTS),
            )
        )  # fmt: skip
    queues = tuple(Queue(name=leaf, priority=rng.choice([100, 100, 50])) for leaf in leaves)
    nodes = tuple(Node(name=f"n{i}", allocatable={GPU: 400, "cpu": 400_000}) for i in range(3))
    return Cluster(now=NOW, settings=Settings(), nodes=nodes, queues=queues, workloads=tuple(workloads))


def _task(name, rng, started=None, later=0):
    spec = TaskSpec(requests=((GPU, rng.choice([1, 1, 2])), ("cpu", 1000)))
    if started is None:
        return Task(name=name, spec=spec)
    _task.device = getattr(_task, "device", 0) + 2
    devices = tuple(range(_task.device % 390, _task.device % 390 + dict(spec.requests)[GPU]))
    node = f"n{_task.device // 390 % 3}"
    return Task(name=name, spec=spec, phase=Phase.RUNNING, node=node, devices=devices, started_at=started + later)


def shown(pieces):
    """What tells pieces apart, and what they cost."""
    return [(p.workload.key, [t.index for t in p.tasks], p.cost, p.fresh, p.rank, p.floor) for p in pieces]


def gatherers(session, holdings, fresh):
    """One that works out what is asked for, and one that works out all."""
    return [
        CandidateGatherer(session, EvictionPlugins(others), holdings, fresh, detailed=False)
        for others in ([], [Agrees()])
    ]


def lots_of(session, gatherer):
    """The lots of all leaves but that of the one who waits."""
    contender = session.workloads["default/waits"]
    rules = ReclaimEligibility(session, Fairness(session).now(), contender)
    leaves = [q for q, leaf in enumerate(session.queues.leaf) if leaf and q != contender.leaf]
    return gatherer.candidate_leaves(contender, rules, leaves)


def happen(session, rng):
    """Time passes, forwards mostly, and something ends, starts, or has saved what it did."""
    session.now += rng.choice([0, 1, 5, 60, 60, -3]) * MINUTE
    running = [w for _, w in sorted(session.workloads.items()) if w.occupied()]
    for workload in rng.sample(running, len(running) // 4):
        event = rng.choice(["end", "lose", "save", "stay"])
        if event == "end":
            session.remove_workload(workload.key)
        elif event == "lose":
            session.finish(workload.tasks[-1])
            session.refresh(workload)
        elif event == "save" and workload.model.checkpoint is not None and workload.model.checkpoint.made:
            workload.saved_at = session.now


def compare(leaf_candidates, other, rng):
    """Both give the same, whatever is asked for first."""
    workloads = sorted({p.workload for p in other.all()}, key=lambda w: w.key)
    for _ in range(rng.randint(0, 4)):
        question = rng.choice(["of", "first", "cheapest", "drop", "some"])
        if question == "of" and workloads:
            workload = rng.choice(workloads)
            assert sorted(shown(leaf_candidates.of(workload))) == sorted(shown(other.of(workload)))
        elif question == "first":
            assert shown(islice(leaf_candidates.all(), 1)) == shown(islice(other.all(), 1))
        elif question == "cheapest":
            assert shown(leaf_candidates.cheapest_first()) == shown(other.cheapest_first())
        elif question == "drop" and workloads:
            workload = rng.choice(workloads)
            leaf_candidates.drop(workload)
            other.drop(workload)
        else:
            assert shown(p for p, _ in zip(leaf_candidates.all(), range(2), strict=False)) == shown(
                list(other.all())[:2]
            )
    assert shown(leaf_candidates.all()) == shown(other.all())
    assert shown(leaf_candidates.cheapest_first()) == shown(other.cheapest_first())
    assert len(leaf_candidates) >= len(other)
    assert all(a >= least for p in other.all() for a, least in zip(p.amount, leaf_candidates.least, strict=True))


@given(st.integers(0, 1 << 32))
@settings(max_examples=150, deadline=None)
def test_what_is_worked_out_later_is_what_would_have_been_worked_out_before(seed):
    rng = random.Random(seed)
    session = session_of(crowded(rng))
    holdings = PreemptibleUsage(session)
    for _ in range(5):
        placed = [t for _, w in sorted(session.workloads.items()) for t in w.tasks if t.phase in (RUNNING, BOUND)]
        fresh = frozenset(rng.sample(placed, min(len(placed), rng.choice([0, 0, 1, 3]))))
        later, before = gatherers(session, holdings, fresh)
        for leaf_candidates, other in zip(lots_of(session, later), lots_of(session, before), strict=True):
            compare(leaf_candidates, other, rng)
        happen(session, rng)


def test_much_is_not_worked_out_where_nobody_asks():
    worked_out = known = 0
    for seed in range(40):
        session = session_of(crowded(random.Random(seed)))
        holdings = PreemptibleUsage(session)
        candidate_leaves = lots_of(session, gatherers(session, holdings, frozenset())[0])
        worked_out += sum(
            next(leaf_candidates.all(), None) is not None for leaf_candidates in candidate_leaves
        ) and len(holdings.pieces)
        known += sum(map(len, candidate_leaves))
    assert 0 < worked_out < known * 2 / 3
