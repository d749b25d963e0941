"""What is held where is kept from one look to the next: it is always what a fresh look would find."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.properties.contention import contended

from tenure.engine.snapshot import session_of
from tenure.engine.state.evictions import evict
from tenure.victims.bounds.reclaim_limits import ReclaimLimits
from tenure.victims.candidates.preemptible_usage import PreemptibleUsage


def sums(holdings):
    """Everything that is held, by node, leaf and priority, without places that hold nothing."""
    found = {}
    for leaf in (q for q, is_leaf in enumerate(holdings.session.queues.leaf) if is_leaf):
        node, priority, frees = holdings.entries(leaf)
        places = zip(node.tolist(), priority.tolist(), frees.T.tolist(), strict=True)
        found.update({(n, leaf, p): tuple(amounts) for n, p, amounts in places if any(amounts)})
    return found


def what_goes(caps, contender, rows):
    """What each sibling on the way up from a leaf lets go, as sums and on the nodes."""
    found = []
    for mine, siblings in caps.siblings(contender).items():
        for sibling in siblings:
            below = caps.below((sibling, rows))
            here = below.on_nodes(caps.holdings, rows[0], len(caps.holdings.session.nodes))
            found.append((mine, sibling.queue, below.leaves, below.total, here.tolist()))
    return found


def running(session):
    """All tasks that run and could be evicted."""
    return [
        t for _, w in sorted(session.workloads.items()) for t in w.tasks if t.node >= 0 and t.active and w.leaf >= 0
    ]


def test_a_copy_goes_on_by_itself():
    """What a copy sees of a scenario, the one of which it is a copy does not."""
    told = 0
    for seed in range(40):
        session = session_of(contended(seed))
        kept = PreemptibleUsage(session)
        kept.catch_up()
        before, tasks = sums(kept), running(session)
        if not tasks:
            continue
        with session.scenario():
            evict(session, tasks[0])
            other, fresh = kept.copy(), PreemptibleUsage(session)
            other.catch_up()
            fresh.catch_up()
            assert sums(other) == sums(fresh)
            assert np.array_equal(other.movable, fresh.movable)
            assert sums(kept) == before
            told += sums(other) != before
    assert told > 10


@given(st.integers(0, 1 << 32), st.lists(st.tuples(st.integers(0, 30), st.booleans()), max_size=6))
@settings(max_examples=60, deadline=None)
def test_what_is_kept_is_what_a_fresh_look_finds(seed, choices):
    session = session_of(contended(seed))
    kept = PreemptibleUsage(session)
    kept.catch_up()
    caps = ReclaimLimits(session.queues, kept)
    rows = tuple(range(len(session.queues.resources)))
    for choice, undone in choices:
        tasks = running(session)
        if not tasks:
            break
        mark, epoch = session.checkpoint(), session.epoch
        evict(session, tasks[choice % len(tasks)])
        kept.catch_up()
        if undone:
            session.rollback(mark, epoch=epoch)
        else:
            session.commit()
        kept.catch_up()
        fresh = PreemptibleUsage(session)
        fresh.catch_up()
        assert sums(kept) == sums(fresh)
        assert np.array_equal(kept.movable, fresh.movable)
        anew = ReclaimLimits(session.queues, fresh)
        for leaf in (q for q, is_leaf in enumerate(session.queues.leaf) if is_leaf):
            assert [w.key for w in kept.workloads(leaf)] == [w.key for w in fresh.workloads(leaf)]
            assert kept.held(leaf) == fresh.held(leaf)
            assert what_goes(caps, leaf, rows) == what_goes(anew, leaf, rows)


def test_a_trial_that_is_undone_is_no_change():
    """Else every trial would make all that was found out about room worthless."""
    session = session_of(contended(3))
    holdings = PreemptibleUsage(session)
    holdings.catch_up()
    before = holdings.version
    mark, epoch = session.checkpoint(), session.epoch
    evict(session, running(session)[0])
    session.rollback(mark, epoch=epoch)
    holdings.catch_up()
    assert holdings.version == before
    evict(session, running(session)[0])
    session.commit()
    holdings.catch_up()
    assert holdings.version > before
    assert np.isfinite(holdings.movable).all()
