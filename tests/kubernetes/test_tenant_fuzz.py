"""Whatever a tenant writes, all others are decided about, and written, as without it: random objects, on real JSON."""

from __future__ import annotations

import random

import msgspec
import pytest
from tests.effort import tries
from tests.kubernetes.hostile import GPU, NAMESPACE, NODE, Tenant
from tests.kubernetes.pods import NOW, Nowhere, decoded, node, pod, sealed, thing

from tenure.clusters.kubernetes import api
from tenure.clusters.kubernetes.cache.informers import InformerCache, Options
from tenure.clusters.kubernetes.client.watch import Reflector
from tenure.clusters.kubernetes.read.observe import Observer
from tenure.clusters.kubernetes.write.actor import Actor
from tenure.cycle import Scheduler
from tenure.engine.snapshot import session_of
from tenure.live.isolation import Isolation

OBJECTS = tries(500, 10_000)
EACH = 25
"""Objects that are there at a time."""

KINDS = {"pods": api.ApiPod, "jobs": api.ApiObject}
HOME = {"pool": "honest"}


class Accepting:
    """Stands for an API server that accepts every write; it keeps them."""

    def __init__(self):
        self.writes = []

    def get(self, _path, **_query):
        return b'{"items": []}'

    def create(self, path, body, **_query):
        return self.request("POST", path, body)

    def patch(self, path, body, _kind=""):
        return self.request("PATCH", path, body)

    def replace(self, path, body):
        return self.request("PUT", path, body)

    def request(self, method, path, body=None, _kind="", _accept=""):
        self.writes.append((method, path, msgspec.json.encode(body)))
        return b'{"metadata": {"resourceVersion": "8"}}'


def honest():
    """Give others' objects: queues that admit their namespaces, what runs, what waits, and what has to give way."""
    selector = {"matchLabels": {"honest": "true"}}
    queues = [
        thing("evil", spec={"max": {"cpu": 0, "memory": 0, GPU: 0, "pods": 0}}),
        thing("lender", spec={"guaranteed": {GPU: 8}, "namespaceSelector": selector}),
        thing("borrower", spec={"namespaceSelector": selector}),
    ]
    spaces = [thing("honest", metadata={"labels": {"honest": "true"}}), thing(NAMESPACE)]
    nodes = [node(f"honest-{n}", "32", **{GPU: "4", "pods": "110"}) for n in range(3)]
    for item in nodes:
        item.metadata.labels = {**HOME, "kubernetes.io/hostname": item.metadata.name}
    theirs = decoded(
        {"metadata": {"name": NODE, "labels": {"evil": "true"}}, "status": {"allocatable": {"cpu": "64", GPU: "8"}}},
        api.ApiNode,
    )
    fields = {"namespace": "honest", "nodeSelector": HOME}
    two = [{"name": "c", "resources": {"requests": {"cpu": "2", GPU: "2"}}}]
    pods = [
        pod(f"ran-{n}", owner=("Job", f"ran-{n}"), labels={"tenure.dev/queue": "borrower"}, node=f"honest-{n % 3}",
            status=sealed(queue="borrower", started="2026-11-20T09:30:00Z"), containers=two, **fields)
        for n in range(5)
    ]  # fmt: skip
    pods += [
        pod(f"waits-{n}", owner=("Job", f"waits-{n}"), labels={"tenure.dev/queue": "lender"}, containers=two, **fields)
        for n in range(3)
    ]
    return {"queues": queues, "namespaces": spaces, "nodes": [*nodes, theirs], "pods": pods}


def cycle(hostile):
    """Observe, decide and act with a tenant's objects; gives what was written about others, and who was blamed."""
    informers = InformerCache(Nowhere(), Options())
    for name, listed in honest().items():
        for item in listed:
            sink = (
                informers.pods if name == "pods" else informers.nodes if name == "nodes" else informers._objects(name)
            )
            sink.put(item)
    for name, body in hostile:
        sink = informers.pods if name == "pods" else informers._objects(name)
        Reflector(Nowhere(), "/", KINDS.get(name, api.ApiObject), sink, lambda: None)._put(
            msgspec.Raw(msgspec.json.encode(body))
        )
    faults = []
    seen = Observer(informers).observe(NOW)

    def decide(cluster):
        return Scheduler(session_of(cluster)).cycle(cluster.now)

    plan, _ = Isolation(decide, decide, faults.append).decided(seen.cluster)
    client = Accepting()
    actor = Actor(client, informers, in_flight=1)
    outcome = actor.carry_out(plan, seen)
    actor.close()
    others = [(method, path) for method, path, _ in client.writes if "/namespaces/honest/" in path]
    steps = [
        (s.action, s.task, s.node, s.devices, s.beneficiary) for s in plan.steps if s.workload.startswith("honest/")
    ]
    return sorted(others), steps, faults, outcome


WITHOUT = cycle(())


def test_the_others_have_something_to_be_decided_about():
    """Without the tenant some are bound and some give way: a fault among those could be seen."""
    others, steps, faults, outcome = WITHOUT
    assert {s[0] for s in steps} >= {"bind", "evict", "nominate"}
    assert any("/eviction" in path for _, path in others)
    assert not faults
    assert not outcome.failures


@pytest.mark.parametrize("seed", range(OBJECTS // EACH))
def test_others_are_decided_about_as_without_a_tenant_who_tries_everything(seed):
    """Each of many objects, some at a time: what is planned and written for all others stays the same."""
    objects = Tenant(random.Random(seed)).objects(EACH)
    others, steps, faults, outcome = cycle(objects)
    assert steps == WITHOUT[1]
    assert others == WITHOUT[0]
    assert not faults, faults
    assert not [f for f in outcome.failures if f.workload.startswith("honest/")]
