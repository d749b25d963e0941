"""What runs below its core is not moved: it would not start again where it goes."""

import pytest
from tests.actions.helpers import cluster, play, queue, runs, shields, steps, waits


@pytest.mark.parametrize("core", [1, 2])
def test_the_one_task_that_is_left_of_a_gang_is_moved_only_if_it_is_all_that_the_gang_needs(core):
    fixed = runs("fixed", "q", ["n1"] * 2, preemptible=False)
    left = runs("left", "q", ["n0"], core=core, staleness_grace_period=-1)
    contender = waits("contender", "q", gpus=4)
    found = play(cluster([queue("q")], [fixed, left, contender], nodes=2, actions=("allocate", "consolidate")))
    assert steps(found) == ([("left", "left-0")] if core == 1 else [])
    assert (("left", "below-core") in shields(found)) is (core == 2)
