"""Requeue finds a set exactly where a naive reading of the specification finds one, and none that it refuses.

Twenty thousand clusters by hand: ``TENURE_ORACLE=20000 pytest tests/oracles/test_naive_requeue.py``.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace
from itertools import chain, combinations

from tests.engine.reference import Reference
from tests.oracles.naive_requeue import NaiveRequeue
from tests.oracles.naive_search import with_devices
from tests.requeue.checker import groups
from tests.requeue.random_clusters import random_cluster

from tenure.playthrough import play

MANY = int(os.environ.get("TENURE_ORACLE", "600"))


def drawn(seed):
    """Draw a cluster in which workloads are cores and nothing else, and all that runs says its devices."""
    state = random_cluster(seed)
    return replace(state, workloads=tuple(replace(w, min_member=None) for w in with_devices(state.workloads)))


def prefix_sets(naive, most):
    """Sets that pay of the first candidates, in their order, that may go for a contender."""
    found = []
    for contender in naive.waiting:
        first = [v for v in naive.in_order() if naive.may(contender, v)][:most]
        parts = chain.from_iterable(combinations(first, n) for n in range(1, len(first) + 1))
        found += [(contender.key, [v.key for v in part]) for part in parts if naive.pays(contender, part)]
    return found


def test_requeue_is_what_a_naive_reading_of_the_specification_finds():
    """What goes first: it pays, no part of it would do, and it is one workload wherever one would do.

    The first candidate that could go alone goes, unless it stays by the reprieve: another frees room for both.
    """
    looked = Counter()
    for seed in range(MANY):
        cluster = drawn(seed)
        if Reference(cluster).run():
            continue
        naive = NaiveRequeue(cluster)
        played = play(cluster)
        requeued = groups(played)
        if not requeued:
            missed = prefix_sets(naive, cluster.settings.requeue.max_candidates)
            assert not missed, (seed, missed)
            looked[0] += bool(naive.overdue and naive.waiting)
            continue
        first = next(iter(requeued))
        contender, victims = naive.names[first], [naive.names[key] for key in requeued[first]]
        assert naive.pays(contender, victims), (seed, first, list(requeued[first]))
        assert naive.is_minimal(contender, victims), (seed, first, list(requeued[first]))
        singles = naive.singles()
        assert len(victims) == 1 or not singles, (seed, first, singles)
        if len(victims) == 1 and victims[0] is not singles[0][1]:
            assert singles[0][0].key in {s.workload for s in played.steps if s.action == "nominate"}, (seed, singles)
        looked[len(victims)] += 1
    assert looked[0] >= MANY // 10
    assert looked[1] >= MANY // 10
    assert sum(n for size, n in looked.items() if size > 1) >= MANY // 600
