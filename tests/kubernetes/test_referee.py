"""kube-scheduler is the referee: a pod has the same nodes to go to with it and with Tenure.

More states by hand: ``python -m tests.kubernetes.referee --states 2000 --seed 1``, with ``--devices`` such whose pod
waits for claims on devices.
"""

import pytest
from tests.effort import tries
from tests.kubernetes.referee import describe, judge_all, refereeing

STATES = tries(100, 1000)
DEVICE_STATES = tries(30, 300)
SEED = 7


@pytest.fixture(scope="module")
def refereed(programs, tmp_path_factory):
    assert programs.exists()
    with refereeing(tmp_path_factory.mktemp("referee")) as made:
        yield made


@pytest.fixture
def referee(refereed):
    """Give the referee, who has counted nothing yet."""
    refereed.tally.clear()
    return refereed


def test_tenure_admits_the_nodes_that_kube_scheduler_admits(referee):
    """For random pods on random states, both ways; and the states tell something: some nodes do, and some do not."""
    found, judged = judge_all(referee, SEED, STATES)
    assert [describe(difference) for difference in found] == []
    assert judged >= 0.9 * STATES
    assert referee.tally["states with both"] >= STATES // 5


def test_tenure_finds_devices_on_the_nodes_on_which_kube_scheduler_does(referee):
    """For random claims on random devices; where kube-scheduler gives up with an error, there is nothing to compare."""
    found, judged = judge_all(referee, SEED, DEVICE_STATES, has_devices=True)
    assert [describe(difference) for difference in found] == []
    assert judged >= 0.8 * DEVICE_STATES
    assert referee.tally["states with both"] >= DEVICE_STATES // 5
