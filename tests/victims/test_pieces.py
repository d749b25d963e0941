"""Pieces that are kept are those that would be made now, whatever was evicted, came back or was undone in between."""

from __future__ import annotations

from operator import attrgetter

import numpy as np
import pytest

from tenure.engine.memo import Memo, StaleMemoError
from tenure.engine.snapshot import session_of
from tenure.engine.state.evictions import evict
from tenure.model.cluster import Cluster
from tenure.model.node import Node
from tenure.model.queue import Queue
from tenure.model.workload import Phase, Task, TaskSpec, Workload
from tenure.victims.candidates.leaf_candidates import LeafCandidates
from tenure.victims.rules.pieces import Piece, piece_memo, pieces_of

GPU = "nvidia.com/gpu"
CONTENT = attrgetter(*Piece.__slots__)


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


def of(session, memo, name):
    """The pieces of a workload that the memo gives, with those that would be made now."""
    workload = session.workloads[f"default/{name}"]
    return memo((workload, True, False)), pieces_of(session, workload, frozenset(), core=True)


def test_pieces_are_the_same_objects_until_their_queue_changes(monkeypatch, session):
    monkeypatch.setattr(Memo, "checked", False)
    memo = piece_memo(session)
    before, _ = of(session, memo, "gang")
    assert of(session, memo, "gang")[0] is before
    with session.scenario():
        evict(session, session.workloads["default/gang"].tasks[2])
        kept, made = of(session, memo, "gang")
        assert [CONTENT(p) for p in kept] == [CONTENT(p) for p in made]
        assert len(kept) < len(before)
    kept, made = of(session, memo, "gang")
    assert [CONTENT(p) for p in kept] == [CONTENT(p) for p in made] == [CONTENT(p) for p in before]


def test_another_start_makes_other_pieces(monkeypatch, session):
    monkeypatch.setattr(Memo, "checked", False)
    memo = piece_memo(session)
    (before,), _ = of(session, memo, "alone")
    with session.scenario():
        session.journal.set(session.workloads["default/alone"], "started_at", None)
        (after,), (made,) = of(session, memo, "alone")
        assert CONTENT(after) == CONTENT(made) != CONTENT(before)


def test_what_changes_behind_the_back_of_the_queue_is_an_error(session):
    memo = piece_memo(session)
    of(session, memo, "alone")
    session.workloads["default/alone"].tasks[0].node = -1
    with pytest.raises(StaleMemoError):
        of(session, memo, "alone")


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
