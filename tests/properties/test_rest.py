"""With every rule, cause and setting in play, a cluster in which nothing happens by itself comes to rest."""

from __future__ import annotations

import random
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import tries
from tests.properties.contention import GPU, MINUTE, contended, in_groups

from tenure.model.settings import FairnessSettings, HistorySettings, QuotaPreemptionSettings, ReschedulerSettings
from tenure.model.workload import Checkpoint
from tenure.playthrough import play

TURNS = ("evict", "notice", "withdraw")


def with_everything(seed):
    """Elastic, grouped and single workloads; notices, requeue, quotas, moves, delays and history in some clusters."""
    rng = random.Random(seed)
    state = contended(seed, large=rng.random() < 0.5, crowd=rng.choice([4, 8]))
    state = in_groups(state, seed) if rng.random() < 0.5 else state
    history = rng.random() < 0.4
    workloads = tuple(
        replace(
            w,
            eviction_notice=rng.choice([None, None, 0, 2 * MINUTE, 60 * MINUTE]),
            checkpoint=rng.choice([None, Checkpoint(interval=10 * MINUTE, restart_overhead=MINUTE)]),
            expected_runtime=rng.choice([None, 5 * MINUTE, 30 * MINUTE, 100 * MINUTE]),
            requeue_delay=rng.choice([None, 0, 5 * MINUTE]),
            preemption_delay=rng.choice([None, None, 0, 3 * MINUTE]),
        )
        for w in state.workloads
    )
    causes = ["stale-gang", "quota", "allocate", "consolidate", "reclaim", "preempt", "requeue", "reschedule"]
    chosen = replace(
        state.settings,
        actions=tuple(
            c for c in causes if not (history and c == "requeue") and (c == "allocate" or rng.random() < 0.9)
        ),
        eviction_notice=rng.choice([0, 0, 3 * MINUTE]),
        backfill=rng.choice(["none", "none", "easy"]),
        fairness=FairnessSettings(history=HistorySettings(strength=2.0) if history else None),
        quota_preemption=QuotaPreemptionSettings(enabled=rng.random() < 0.5),
        rescheduler=ReschedulerSettings(pending_for=rng.choice([0, MINUTE])),
    )
    return replace(
        state, workloads=workloads, queues=tuple(_lowered(rng, q, state) for q in state.queues), settings=chosen
    )


def _lowered(rng, queue, state):
    """A leaf, sometimes with a maximum below what it uses."""
    if queue.name in {q.parent for q in state.queues} or rng.random() < 0.7:
        return queue
    most = max(queue.guaranteed.get(GPU, 0), 1000 * rng.randint(0, 6))
    return replace(queue, max={GPU: most}, quota_preemption_delay=rng.choice([None, MINUTE]))


@given(st.integers(0, 1 << 32))
@settings(max_examples=tries(8, 300))
def test_with_everything_on_evictions_and_notices_stop(seed):
    """Ten minutes a cycle: after six hours every delay, notice, minimum and expected runtime is long over.

    With time-based fairness overdue work takes turns as long as queues contend, so requeue is off there.
    """
    steps = play(with_everything(seed), cycles=60, every=10 * MINUTE).steps
    assert not [s for s in steps if s.cycle >= 36 and s.action in TURNS]
