"""What is promised to the surplus of a workload goes with its core, and guarantees are held against both."""

from __future__ import annotations

import pytest
from tests.builders import NOW, SECOND, cluster, node, queue, spec, steps, task, workload

from tenure.model.queue import QueueStatus, QuotaStatus
from tenure.model.settings import QuotaPreemptionSettings
from tenure.model.values.resources import GPU
from tenure.model.workload import Phase
from tenure.playthrough import play

MINUTE = 60 * SECOND


def growing(owed, *others, core=None, **settings):
    """A workload runs one GPU on n0 and is promised two more on n1, where something ends; ``owed`` is its queue."""
    grows = workload("grows", queue="grows", min_member=1, age=900, running=600, tasks=[
        task("grows-0", core or spec(gpu=1), on="n0", devices=(0,)),
        task("grows-1", spec(gpu=2), nominated_to="n1", nominated_devices=(0, 1)),
    ])  # fmt: skip
    ends = workload("ends", queue="asks", age=700, running=600, tasks=[
        task("ends-0", spec(gpu=2), on="n1", devices=(0, 1), phase=Phase.TERMINATING, terminating_since=NOW - SECOND)
    ])  # fmt: skip
    nodes = [node(name, gpu=gpus, labels={"name": name}) for name, gpus in (("n0", 1), ("n1", 2))]
    return cluster(nodes, [grows, ends, *others], [owed, queue("asks")], **settings)


@pytest.mark.parametrize("guaranteed", [0, 1, 2])
def test_a_quota_leaves_a_core_beside_which_more_is_promised_than_may_go(guaranteed):
    """Three GPUs are too many by one: the promise is given up, unless the guarantee forbids that."""
    armed = QuotaStatus(armed_at=NOW - 2 * MINUTE, delay=MINUTE, deadline=NOW - MINUTE, max={GPU: 2000})
    lowered = queue(
        "grows", guaranteed={"gpu": guaranteed}, max={"gpu": 2}, quota_preemption_delay=MINUTE,
        status=QueueStatus(quota_preemption=armed),
    )  # fmt: skip
    enabled = QuotaPreemptionSettings(enabled=True)
    assert steps(play(growing(lowered, actions=("quota", "allocate"), quota_preemption=enabled)), "evict") == []


@pytest.mark.parametrize(("guaranteed", "evicted"), [(0, ["grows-0"]), (2, [])])
def test_reclaim_takes_no_core_whose_queue_would_not_get_back_what_it_is_guaranteed(guaranteed, evicted):
    """The core lands on n1, but then there is no room for its surplus; who waits stays within its fair share alone."""
    waits = workload("waits", of=spec(gpu=1, node_selector=(("name", "n0"),)), queue="asks", age=50)
    core = spec(gpu=1, node_selector=(("name", "n1"),))
    owed = queue("grows", guaranteed={"gpu": guaranteed})
    found = play(growing(owed, waits, core=core, actions=("allocate", "reclaim")))
    assert [name for _, name, _, _ in steps(found, "evict")] == evicted
