"""kube-scheduler is the referee: a pod has the same nodes to go to with it and with Tenure.

More states by hand: ``python -m tests.kubernetes.referee --states 2000 --seed 1``.
"""

from tests.kubernetes.referee import describe, judge_all, refereeing

STATES = 200
SEED = 7


def test_tenure_admits_the_nodes_that_kube_scheduler_admits(programs, tmp_path):
    """For random pods on random states, both ways; and the states tell something: some nodes do, and some do not."""
    assert programs.exists()
    with refereeing(tmp_path) as referee:
        found, judged = judge_all(referee, SEED, STATES)
    assert [describe(difference) for difference in found] == []
    assert judged >= 0.9 * STATES
    assert referee.tally["states with both"] >= STATES // 5
