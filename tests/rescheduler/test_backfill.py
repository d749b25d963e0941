"""Moves under EASY backfilling: nothing is moved for whoever would delay the first workload that waits."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.actions.helpers import MINUTE, cluster, queue, runs, waits

from tenure.playthrough import play

RESERVED = "would delay the first workload that waits"


PUT_OFF = "would put off the start that is promised to default/first"


def split(minutes, backfill, *, anew=8, action="reschedule"):
    """Two nodes of four GPUs; the first that waits needs all of both, which it has in ten minutes.

    The contender needs one of them, and has it if what runs there moves to the other, where its run of ``anew`` minutes
    begins anew.
    """
    stays = runs("stays", "a", ["n0", "n0"], minutes=1, priority=90, preemptible=False, expected_runtime=11 * MINUTE)
    moves = runs("moves", "a", ["n1"], minutes=1, priority=90, preemptible=True, expected_runtime=int(anew * MINUTE))
    first = waits("first", "a", gpus=4, tasks=2, priority=60)
    contender = waits("contender", "a", gpus=4, priority=40, expected_runtime=minutes and minutes * MINUTE)
    state = cluster([queue("a")], [stays, moves, first, contender], nodes=2, gpus=4, backfill=backfill)
    return replace(state, settings=replace(state.settings, actions=("allocate", action)))


@pytest.mark.parametrize(
    ("backfill", "minutes", "moved"),
    [("none", None, True), ("none", 5, True), ("easy", None, False), ("easy", 600, False), ("easy", 5, True)],
)
def test_nothing_is_moved_for_whoever_would_delay_the_first_that_waits(backfill, minutes, moved):
    played = play(split(minutes, backfill))
    assert [s.task for s in played.steps if s.action == "evict"] == (["moves-0"] if moved else [])
    said = [r.message for p in played.pending if p.workload == "default/contender" for r in p.reasons]
    assert moved or any(RESERVED in text for text in said)


@pytest.mark.parametrize("action", ["consolidate", "reschedule"])
@pytest.mark.parametrize(("anew", "moved"), [(8, True), (10, True), (10.5, False)])
def test_what_moves_does_not_put_off_the_first_that_waits_either(action, anew, moved):
    """Where it lands it holds what the first is promised, until its new run ends."""
    played = play(split(5, "easy", anew=anew, action=action))
    assert [s.task for s in played.steps if s.action == "evict"] == (["moves-0"] if moved else [])
    said = [r.message for p in played.pending if p.workload == "default/contender" for r in p.reasons]
    said += [r.message for r in played.refused]
    assert moved or any(PUT_OFF in text for text in said)
