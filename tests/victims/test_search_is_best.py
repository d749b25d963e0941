"""On small states the chosen set is the best of all sets that obey the rules, found here by trying every one."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.properties.contention import contended

from tenure.engine.placement import Placer
from tenure.engine.snapshot import session_of
from tenure.fairness.current import Fairness
from tenure.shields.plugins import Plugins
from tenure.victims.candidates import Gatherer
from tenure.victims.choice import consistent, key_of, priorities, uses_lower
from tenure.victims.holdings import Holdings
from tenure.victims.rules import Preempt, Reclaim
from tenure.victims.search import Budget, Search
from tenure.victims.trial import Played, Trials

MOST_PIECES = 9


def best_of_all(session, trials, contender, rules, pieces):
    """Every allowed set that no other beats inside one queue; the first of them in the order of sets."""
    valid = [
        subset
        for size in range(1, len(pieces) + 1)
        for subset in map(list, combinations(pieces, size))
        if consistent(subset) and isinstance(trials.play(contender, subset, rules), Played)
    ]
    kept = [s for s in valid if not any(beaten(s, other) for other in valid)]
    return min((key_of(session.settings, s) for s in kept), default=None)


def beaten(one, other):
    """Whether ``other`` differs from ``one`` inside one queue only and uses lower priorities there."""
    differ = {p.workload.leaf for p in set(one) ^ set(other)}
    return len(differ) == 1 and uses_lower(priorities(other, min(differ)), priorities(one, min(differ)))


@given(st.integers(0, 1 << 32), st.sampled_from(["reclaim", "preempt"]))
@settings(max_examples=60, deadline=None)
def test_the_chosen_set_is_the_best_of_all_allowed_sets(seed, cause):
    session = session_of(contended(seed))
    shares = Fairness(session).now()
    plugins = Plugins([])
    trials = Trials(session, Placer(session), shares, plugins)
    gatherer = Gatherer(session, plugins, Holdings(session))
    for contender in session.waiting.all():
        rules = Reclaim(session, shares, contender) if cause == "reclaim" else Preempt(session, contender)
        candidates = gatherer.gather(contender, rules)
        pieces = list(candidates.all())
        if rules.contender_may() is not None or not 0 < len(pieces) <= MOST_PIECES:
            continue
        found = Search(session, trials, contender, rules, candidates).run(Budget(1 << 20)).pieces
        best = best_of_all(session, trials, contender, rules, pieces)
        assert (None if found is None else key_of(session.settings, found)) == best


@given(st.integers(0, 1 << 32))
@settings(max_examples=60, deadline=None)
def test_a_trial_leaves_the_session_as_it_was(seed):
    """After a rollback rooms, devices, queues and every task are what they were, to the bit."""
    session = session_of(contended(seed))
    shares = Fairness(session).now()
    plugins = Plugins([])
    trials = Trials(session, Placer(session), shares, plugins)
    gatherer = Gatherer(session, plugins, Holdings(session))
    before = state_of(session)
    for contender in session.waiting.all():
        rules = Reclaim(session, shares, contender)
        for piece in gatherer.gather(contender, rules).all():
            trials.play(contender, [piece], rules)
            assert state_of(session) == before


def state_of(session):
    """Everything a transaction may change."""
    tasks = {
        (w.key, t.index): tuple(getattr(t, name) for name in t.saved)
        for w in session.workloads.values()
        for t in w.tasks
    }
    workloads = {w.key: (w.started_at, w.last_evicted_at, w.step, w.entry) for w in session.workloads.values()}
    queues = (list(session.queues.allocated), list(session.queues.pending), list(session.queues.fixed))
    occupied = [frozenset((t.workload.key, t.index) for t in here) for here in session.on_node]
    rooms = (session.nodes.room.tobytes(), session.nodes.device.tobytes(), session.nodes.waiting)
    return tasks, workloads, queues, occupied, rooms
