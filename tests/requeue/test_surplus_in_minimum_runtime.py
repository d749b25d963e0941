"""Overdue work that is still in its minimum runtime is no candidate, and neither is its surplus."""

from __future__ import annotations

import pytest
from tests.builders import SECOND, cluster, node, queue, spec, steps, workload

from tenure.playthrough import play

MINUTE = 60 * SECOND


@pytest.mark.parametrize(
    ("cause", "minimum", "evicted"),
    [("requeue", 60, []), ("requeue", 10, ["elastic-2"]), ("preempt", 60, ["elastic-2"])],
)
def test_its_surplus_is_left_to_causes_that_need_no_nomination(cause, minimum, evicted):
    """It is overdue after five minutes, and has run for ten; its surplus is not protected from preempt."""
    elastic = workload("elastic", tasks=3, of=spec(gpu=1), on=["n0"] * 3, min_member=1, age=700, running=600, queue="q",
                       expected_runtime=300)  # fmt: skip
    waits = workload("waits", of=spec(gpu=1), priority=100, age=60, queue="q")
    state = cluster([node("n0", gpu=3)], [elastic, waits], [queue("q")], actions=("allocate", cause),
                    preempt_min_runtime=minimum * MINUTE)  # fmt: skip
    assert [name for _, name, _, _ in steps(play(state), "evict")] == evicted
