"""Nodes that are on their way: nobody is evicted for whom one comes, and nothing is bound or moved there before."""

from __future__ import annotations

import pytest
from tests.kubernetes.pods import NOW, node, pod, sealed, thing, watching

from tenure.clusters.kubernetes.read.joining import AWAITED
from tenure.cycle import Scheduler
from tenure.engine.snapshot import session_of
from tenure.model.duration import format_time

GPU = "nvidia.com/gpu"
QUEUES = [thing("a", spec={}), thing("b", spec={"guaranteed": {GPU: 4}})]
ACTIONS = ["allocate", "consolidate", "reclaim", "reschedule"]


def claim(*, age=60, gpus=4, registered=False, launched=True, labels=None, **metadata):
    """Give a claim of Karpenter's, so many seconds old."""
    conditions = [{"type": "Launched", "status": str(launched)}, {"type": "Registered", "status": str(registered)}]
    made = {"creationTimestamp": format_time(NOW - age * 1_000_000)}
    status = {"allocatable": {"cpu": "8", "pods": "110", GPU: str(gpus)}, "conditions": conditions}
    return thing("new-1", metadata={"labels": labels or {}, **made, **metadata}, spec={}, status=status)


def planned(*claims):
    """Give the steps of a cycle: a queue that is owed all asks for what another holds."""
    resources = {"requests": {"cpu": "1", GPU: "4"}, "limits": {GPU: "4"}}
    requests = {"containers": [{"name": "main", "resources": resources}]}
    owner = ("ReplicaSet", "w")
    old = pod("old", owner=owner, node="n", labels={"tenure.dev/queue": "a"}, **requests,
              status=sealed(queue="a", started="2026-11-20T09:00:00Z"))  # fmt: skip
    new = pod("new", owner=("ReplicaSet", "x"), labels={"tenure.dev/queue": "b"}, **requests)
    pool = [thing("default", spec={"scheduler": {"actions": ACTIONS}})]
    there = node("n", **{GPU: "4"})
    watch = watching(there, old, new, queues=QUEUES, nodepools=pool, nodeclaims=claims)
    cluster = watch.observe(NOW).cluster
    plan = Scheduler(session_of(cluster)).cycle(NOW)
    return [(step.action, step.workload.partition("/")[2], step.node) for step in plan.steps]


EVICTED = [("evict", "w", "n"), ("nominate", "x", "n")]


def test_without_a_node_on_its_way_somebody_has_to_go():
    assert sorted(planned()) == EVICTED


def test_nobody_is_evicted_for_whom_a_node_comes():
    """What fits a node that was launched waits for that, and is bound nowhere yet."""
    assert [(action, who) for action, who, _ in planned(claim())] in ([], [("nominate", "x")])


@pytest.mark.parametrize(
    "other",
    [
        claim(gpus=2),
        claim(launched=False),
        claim(registered=True),
        claim(age=AWAITED // 1_000_000 + 1),
        claim(deletionTimestamp="2026-11-20T10:00:00Z"),
        claim(labels={"tenure.dev/node-pool": "other"}),
    ],
    ids=["too small", "not launched", "there", "too late", "going", "of another pool"],
)
def test_a_node_that_does_not_help_saves_nobody(other):
    assert sorted(step for step in planned(other)) == EVICTED
