"""What reclaim takes nearer the contender counts before what it takes farther away (spec: reclaim)."""

from __future__ import annotations

import pytest
from tests.builders import cluster, node, queue, spec, workload

from tenure.playthrough import play

HOUR = 3600


def running(name, leaf, **fields):
    """A workload of one GPU that has run for an hour."""
    return workload(name, of=spec(cpu=0, gpu=1), on=["n"], queue=leaf, running=HOUR, age=HOUR, **fields)


def owed(beside, outside):
    """``own`` is guaranteed both GPUs that it asks for; one is held ``beside``, one ``outside``, within its share."""
    queues = [
        queue("side"), queue("own", "side", guaranteed={"gpu": 2}), queue("beside", "side"),
        queue("outside", weight=2.0), queue("fixed"),
    ]  # fmt: skip
    return cluster(
        [node("n", gpu=3)],
        [
            running(beside, "beside"),
            running(outside, "outside"),
            running("stays", "fixed", preemptible=False),
            workload("waits", of=spec(cpu=0, gpu=2), queue="own"),
        ],
        queues,
        actions=("reclaim",),
    )


@pytest.mark.parametrize("names", [("a", "b"), ("b", "a")])
def test_a_side_is_within_guaranteed_once_what_was_taken_from_it_is_gone(names):
    """With the GPU beside it gone, the contender's side is within guaranteed, and may take what is over its own.

    In which order their names stand says nothing of that.
    """
    found = play(owed(*names)).steps
    assert sorted(s.workload for s in found if s.action == "evict") == ["default/a", "default/b"]
    assert [s.workload for s in found if s.action == "nominate"] == ["default/waits"]
