"""What a task does in the cycle in which another takes the room that it was promised."""

from __future__ import annotations

from tests.builders import cluster, node, spec, steps, task, workload

from tenure.model.workload import Phase
from tenure.playthrough import play


def test_a_task_that_lost_its_promise_is_not_bound_elsewhere_and_evicted_in_one_plan():
    """``first`` takes its place on n0, and it finds another on n1, which ``large`` needs: it is not placed at all."""
    found = play(cluster(
        [node("n0", cpu=64, gpu=4), node("n1", cpu=8, gpu=4)],
        [
            workload("stays", tasks=[task("stays-0", spec(gpu=2), on="n0", devices=(0, 1))], priority=1000,
                     preemptible=False, running=600),
            workload("leaves", running=600, tasks=[
                task("leaves-0", spec(gpu=2), on="n0", devices=(2, 3), phase=Phase.TERMINATING)]),
            workload("grows", min_member=1, priority=10, age=900, running=600, tasks=[
                task("grows-0", spec(gpu=2), on="n1", devices=(0, 1)),
                task("grows-1", spec(gpu=2), nominated_to="n0", nominated_devices=(2, 3))]),
            workload("first", priority=100, tasks=[task("first-0", spec(cpu=16, gpu=2))]),
            workload("large", priority=50, tasks=[task("large-0", spec(gpu=4))]),
        ],
        actions=("allocate", "preempt"),
    ))  # fmt: skip
    assert steps(found, "bind") == []
    assert steps(found, "evict") == [("evict", "grows-0", "n1", (0, 1))]
    assert steps(found, "nominate") == [
        ("nominate", "first-0", "n0", (2, 3)), ("nominate", "large-0", "n1", (0, 1, 2, 3)),
    ]  # fmt: skip
