"""Room that moves make goes to those for whom they are made in the ordinary order, or nothing moves."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.actions.helpers import MINUTE, cluster, queue, runs, waits

from tenure.playthrough import play

NOT_NEXT = "comes after others that would get the room"


@pytest.mark.parametrize("ahead", [False, True])
def test_nothing_is_moved_for_one_behind_another_that_would_get_the_room(ahead):
    """For ``first`` nothing may be moved, as a minimum runtime holds against other queues; it would get the room."""
    running = [runs("moves", "low", ["n0"], minutes=5), runs("stays", "low", ["n1"], priority=100)]
    waiting = [waits("behind", "low", gpus=2, minutes=3), *([waits("first", "high", gpus=2)] if ahead else [])]
    queues = [queue("low", priority=50, reclaim_min_runtime=20 * MINUTE), queue("high", priority=100)]
    state = cluster(queues, [*running, *waiting], nodes=2, gpus=2)
    played = play(replace(state, settings=replace(state.settings, actions=("allocate", "reschedule"))))
    assert [s.task for s in played.steps if s.action == "evict"] == ([] if ahead else ["moves-0"])
    said = [r.message for p in played.pending if p.workload == "default/behind" for r in p.reasons]
    assert any(NOT_NEXT in text for text in said) == ahead
