"""Who ranks ahead of a nomination: whose turn would come first if nobody were promised anything."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.actions.helpers import NOW, cluster, play, queue, runs, steps, waits

from tenure.model.workload import Nomination, Phase


@pytest.mark.parametrize(("before", "beats"), [((), True), ((100,), False), ((10,), True)])
def test_a_nomination_is_beaten_only_by_whose_turn_comes_first_in_the_order_of_all(before, beats):
    """``small`` makes its queue less full than the promise makes the other; but it has its turn after who is before it
    in its leaf, though that one finds no room, and that is after the turn of the one with the promise.
    """
    promise = waits("nominated_to", "a", gpus=2)
    at = Nomination(node="n0", devices=(2, 3), at=NOW)
    promise = replace(promise, tasks=tuple(replace(t, nominated=at) for t in promise.tasks))
    leaves = runs("leaves", "a", ["n0"], gpus=2, started_at=None)
    gone = {"phase": Phase.TERMINATING, "terminating_since": NOW}
    leaves = replace(leaves, tasks=tuple(replace(t, **gone) for t in leaves.tasks))
    others = [waits("large", "b", gpus=4, priority=priority) for priority in before]
    work = [runs("x", "a", ["n0"]), runs("y", "b", ["n0"]), leaves, promise, *others]
    state = cluster([queue("a"), queue("b")], [*work, waits("small", "b", priority=50)], actions=("allocate",))
    assert steps(play(state), "nominate") == ([("small", "small-0")] if beats else [])
