"""What a plan evicts and would seat where it stood waits for the next cycle, and the pass comes to its end."""

import sys
from pathlib import Path

import pytest

from tenure.cycle import Scheduler
from tenure.engine.snapshot import session_of

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

from b03_cycle import NOW, change, snapshot


@pytest.mark.timeout(120)
@pytest.mark.parametrize("seed", [0, 5])
def test_a_victim_for_which_its_own_place_is_free_again_does_not_keep_the_pass_going(seed):
    """It has its turn, gets nothing, and has no further turn in this plan; no plan evicts a task and seats it there."""
    cluster = snapshot(30, "rest", seed=seed)
    session = session_of(cluster)
    scheduler = Scheduler(session)
    scheduler.cycle(NOW)
    for number, share in enumerate((0.001, 0.01), 1):
        change(session, cluster, seed=number + 1, share=share)
        plan = scheduler.cycle(NOW + number * 1_000_000)
        evicted = {(s.workload, s.task_index): s.node for s in plan.steps if s.action == "evict"}
        seated = {(s.workload, s.task_index): s.node for s in plan.steps if s.action in {"bind", "nominate"}}
        assert not [task for task, node in seated.items() if evicted.get(task) == node]
