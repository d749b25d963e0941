"""What a leaf lets go, once something of it is a candidate no more."""

from __future__ import annotations

import numpy as np
import pytest

from tenure.engine.snapshot import session_of
from tenure.model.cluster import Cluster
from tenure.model.node import Node
from tenure.model.queue import Queue
from tenure.model.workload import Phase, Task, TaskSpec, Workload
from tenure.victims.candidates.leaf_candidates import LeafCandidates
from tenure.victims.rules.pieces import pieces_of

GPU = "nvidia.com/gpu"


@pytest.fixture
def session():
    """A node that two workloads of one queue share: a gang of two with a surplus task, and one task alone."""
    spec = TaskSpec(requests=((GPU, 1),))

    def tasks(name, count, first):
        places = [(first + i,) for i in range(count)]
        return tuple(
            Task(name=f"{name}-{i}", spec=spec, phase=Phase.RUNNING, node="n", devices=at)
            for i, at in enumerate(places)
        )

    workloads = (
        Workload(name="gang", queue="q", created_at=0, started_at=1, min_member=2, tasks=tasks("gang", 3, 0)),
        Workload(name="alone", queue="q", created_at=0, started_at=2, tasks=tasks("alone", 1, 3)),
    )
    nodes, queues = (Node(name="n", allocatable={GPU: 4}),), (Queue(name="q"),)
    return session_of(Cluster(now=9_000_000, nodes=nodes, queues=queues, workloads=workloads))


def test_what_a_leaf_frees_is_without_what_was_dropped(session):
    gang, alone = (session.workloads[f"default/{name}"] for name in ("gang", "alone"))
    rows = session.nodes.rows
    both, left = (
        LeafCandidates(0, 0, [p for w in some for p in pieces_of(session, w, frozenset(), core=True)])
        for some in ((gang, alone), (alone,))
    )
    total = both.priced(rows).freed.sum(axis=1)
    assert np.array_equal(both.priced(rows).freed.sum(axis=1), total)
    both.drop(gang)
    assert np.array_equal(both.priced(rows).freed, left.priced(rows).freed)
    assert (both.priced(rows).freed.sum(axis=1) < total).any()
