"""Nodes that are on their way: nobody is evicted for whom one comes, and nothing is bound or moved there before."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.kubernetes.pods import NOW, node, pod, sealed, thing, watching

from tenure.clusters.kubernetes.api import ApiNode
from tenure.clusters.kubernetes.read.joining import AWAITED
from tenure.live.reasons import UNSCHEDULABLE, condition
from tenure.model.values.duration import format_time
from tenure.playthrough import play

GPU = "nvidia.com/gpu"
SECOND = 1_000_000
QUEUES = [thing("a", spec={}), thing("b", spec={"guaranteed": {GPU: 4}})]
ACTIONS = ["allocate", "consolidate", "reclaim", "reschedule"]


def claim(*, age=60, gpus=4, registered=False, launched=True, initialized=False, labels=None, on="", **metadata):
    """Give a claim of Karpenter's, so many seconds old; ``on`` is its node."""
    said = {"Launched": launched, "Registered": registered, "Initialized": initialized}
    conditions = [{"type": kind, "status": str(status)} for kind, status in said.items()]
    made = {"creationTimestamp": format_time(NOW - age * SECOND)}
    status = {"allocatable": {"cpu": "8", "pods": "110", GPU: str(gpus)}, "conditions": conditions, "nodeName": on}
    return thing("new-1", metadata={"labels": labels or {}, **made, **metadata}, spec={}, status=status)


def contended(*claims, also=(), annotations=None, **objects):
    """Give an observer of a cluster in which a queue that is owed all asks for what another holds."""
    resources = {"requests": {"cpu": "1", GPU: "4"}, "limits": {GPU: "4"}}
    requests = {"containers": [{"name": "main", "resources": resources}]}
    owner = ("ReplicaSet", "w")
    old = pod("old", owner=owner, node="n", labels={"tenure.dev/queue": "a"}, **requests,
              status=sealed(queue="a", started="2026-11-20T09:00:00Z"))  # fmt: skip
    new = pod("new", owner=("ReplicaSet", "x"), labels={"tenure.dev/queue": "b"}, annotations=annotations, **requests)
    pool = [thing("default", spec={"scheduler": {"actions": ACTIONS}})]
    there = node("n", **{GPU: "4"})
    return watching(there, old, new, *also, queues=QUEUES, nodepools=pool, nodeclaims=claims, **objects)


def planned(*claims, **more):
    """Give the steps of a cycle."""
    plan = play(contended(*claims, **more).observe(NOW).cluster)
    return [(step.action, step.workload.partition("/")[2], step.node) for step in plan.steps]


EVICTED = [("evict", "w", "n"), ("nominate", "x", "n")]


def test_without_a_node_on_its_way_somebody_has_to_go():
    assert sorted(planned()) == EVICTED


def test_nobody_is_evicted_for_whom_a_node_comes():
    """What fits a node that was launched is promised that, and is bound nowhere yet."""
    assert planned(claim()) == [("nominate", "x", "new-1")]


def unready(name):
    """Give a node that has registered and is not ready."""
    return thing(name, kind=ApiNode, status={"allocatable": {"cpu": "8", "pods": "110"}, "conditions": []})


def test_nobody_is_evicted_for_whom_a_node_is_there_and_not_ready_yet():
    """A node that has registered is awaited until it is ready; then it is a node like any other."""
    steps = planned(claim(registered=True, on="new-node"), also=[unready("new-node")])
    assert steps == [("nominate", "x", "new-node")]
    there = planned(claim(registered=True, initialized=True, on="new-node"), also=[node("new-node", **{GPU: "4"})])
    assert there == [("bind", "x", "new-node")]


@pytest.mark.parametrize(
    "other",
    [
        claim(gpus=2),
        claim(launched=False),
        claim(registered=True),
        claim(initialized=True),
        claim(age=AWAITED // SECOND),
        claim(deletionTimestamp="2026-11-20T10:00:00Z"),
        claim(labels={"tenure.dev/node-pool": "other"}),
    ],
    ids=["too small", "not launched", "gone again", "there", "too late", "going", "of another pool"],
)
def test_a_node_that_does_not_help_saves_nobody(other):
    assert sorted(step for step in planned(other)) == EVICTED


def test_the_picture_changes_when_a_node_is_waited_for_no_longer():
    """Nothing happens then that a watch would tell of."""
    observed = contended(claim()).observe(NOW)
    assert observed.wake == NOW - 60 * SECOND + AWAITED
    (coming,) = (n for n in observed.cluster.nodes if n.name == "new-1")
    assert coming.awaited_until == observed.wake


def test_what_waits_for_a_node_keeps_an_autoscaler_making_it():
    """Its condition stays Unschedulable, and says which node it waits for and until when."""
    (waits,) = play(contended(claim()).observe(NOW).cluster).pending
    assert [r.code for r in waits.reasons] == ["AwaitsNodes"]
    reason, message = condition(waits.reasons)
    assert reason == UNSCHEDULABLE
    assert "it waits for new-1, on the way until 2026-11-20T10:14:00Z" in message


REQUEST = {"autoscaling.x-k8s.io/consume-provisioning-request": "more"}


def request(*, age=0, deleted=False, **since):
    """Give a ProvisioningRequest, so many seconds old, with conditions that hold since so many seconds."""
    conditions = [
        {"type": kind, "status": "True", "lastTransitionTime": format_time(NOW - s * SECOND)}
        for kind, s in since.items()
    ]
    meta = {"creationTimestamp": format_time(NOW - age * SECOND)}
    meta |= {"deletionTimestamp": format_time(NOW)} if deleted else {}
    return thing("more", namespace="default", metadata=meta, spec={}, status={"conditions": conditions})


COMING = {
    "nobody has answered yet": request(age=59),
    "accepted": request(age=899, Accepted=899),
    "just provisioned": request(age=2000, Accepted=1900, Provisioned=599),
}


@pytest.mark.parametrize("name", COMING)
def test_nobody_is_evicted_for_whom_nodes_were_asked_for_a_while(name):
    """The pods wait for the nodes, say until when, and are Unschedulable; from then on evictions are looked for."""
    observed = contended(annotations=REQUEST, provisioningrequests=[COMING[name]]).observe(NOW)
    played = play(observed.cluster)
    assert played.steps == []
    (waits,) = played.pending
    (told,) = (r for r in waits.reasons if r.code == "AwaitsNodes")
    assert told.numbers == {"until": format_time(NOW + SECOND)}
    assert condition(waits.reasons)[0] == UNSCHEDULABLE
    later = play(replace(observed.cluster, now=NOW + SECOND))
    assert sorted(s.action for s in later.steps) == ["evict", "nominate"]


@pytest.mark.parametrize(
    "other",
    [
        request(age=60),
        request(age=1000, Accepted=900),
        request(age=1000, Accepted=950, Provisioned=600),
        request(Accepted=10, Failed=1),
        request(Accepted=10, Provisioned=5, BookingExpired=1),
        request(Accepted=10, Provisioned=5, CapacityRevoked=1),
        request(Accepted=10, deleted=True),
        thing("another", namespace="default", spec={}, status={}),
        thing("more", namespace="elsewhere", spec={}, status={}),
    ],
    ids=["unheard", "too late", "not used", "failed", "expired", "revoked", "going", "other", "elsewhere"],
)
def test_nodes_that_were_asked_for_and_do_not_come_save_nobody(other):
    assert sorted(planned(annotations=REQUEST, provisioningrequests=[other])) == EVICTED


@pytest.mark.parametrize("status", [None, "odd", {"conditions": ["odd", {"type": 3, "status": []}]}])
def test_a_request_that_cannot_be_read_is_one_that_nobody_answered(status):
    """What stands in it harms no other, and it lapses like that."""
    made = {"creationTimestamp": format_time(NOW - 60 * SECOND)}
    odd = thing("more", namespace="default", metadata=made, spec=None, status=status)
    assert sorted(planned(annotations=REQUEST, provisioningrequests=[odd])) == EVICTED


def test_a_request_that_changes_is_heard_of():
    """The workload that names it is looked at again."""
    watch = contended(annotations=REQUEST, provisioningrequests=[request(Accepted=1)])
    (waits,) = (w for w in watch.observe(NOW).cluster.workloads if w.awaits_nodes_until)
    assert waits.name == "x"
    watch.informers._objects("provisioningrequests").put(request(Accepted=1, Failed=1))
    assert not any(w.awaits_nodes_until for w in watch.observe(NOW).cluster.workloads)
