"""The index of pending workloads: whatever happens to a session, it is as one that is made anew."""

from __future__ import annotations

import random
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from tests.builders import SECOND
from tests.requeue.clusters import ACTIONS
from tests.requeue.random_clusters import random_cluster

from tenure.cycle import Scheduler
from tenure.engine.snapshot import session_of
from tenure.nominators.contention import Contention
from tenure.requeue.pending_index import PendingIndex

SEEDS = st.integers(0, 100_000)


def told(pending_index, evicted=frozenset()):
    """Everything that an index says, as plain data."""
    classes = {
        cls.alike: ([e[-1].key for e in cls.entries], cls.possible, cls.step.amount) for cls in pending_index.classes()
    }
    barred, until = pending_index.barred(set(evicted))
    return classes, sorted(w.key for w in barred), until, pending_index.counts()


def one_more(session, draw, number):
    """Somebody like one of those that are there arrives."""
    model = draw.choice([w.model for _, w in sorted(session.workloads.items())])
    tasks = tuple(replace(t, phase="Pending", node=None, devices=()) for t in model.tasks)
    fresh = replace(model, name=f"later{number}", tasks=tasks, started_at=None, created_at=session.now)
    session.add_workload(fresh)


def take_off(session, workload):
    """What ran waits."""
    for task in workload.tasks:
        if task.node >= 0:
            session.withdraw(task)
    session.refresh(workload)


@given(SEEDS)
def test_an_index_is_as_one_that_is_made_anew(seed):
    """After arrivals, ends, evictions, cycles, and work that was undone."""
    cluster = random_cluster(seed, actions=ACTIONS)
    session, draw = session_of(cluster), random.Random(seed)
    scheduler, pending_index = Scheduler(session), PendingIndex(session)
    now = session.now
    for number in range(6):
        now += draw.choice((0, 1, 50, 4000)) * SECOND
        mark = session.checkpoint() if draw.random() < 0.3 else None
        if session.workloads:
            take_off(session, session.workloads[draw.choice(sorted(session.workloads))])
        if mark is not None:
            pending_index.classes()
            session.rollback(mark)
        if draw.random() < 0.4:
            one_more(session, draw, number)
        if draw.random() < 0.4 and len(session.workloads) > 1:
            session.remove_workload(draw.choice(sorted(session.workloads)))
        if draw.random() < 0.6:
            scheduler.cycle(now)
        session.now = now
        evicted = {k for k in session.workloads if draw.random() < 0.2}
        assert told(pending_index, evicted) == told(PendingIndex(session), evicted)
        assert pending_index.counts() == Contention(session).waiting
