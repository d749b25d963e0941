"""Extended resources that devices serve: on which nodes a task gets them by claims, and what they count for queues."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.builders import NOW
from tests.engine.test_devices import claim, cluster, device, expression, local, nodes_for, planned

from tenure.clusters.embedded import EmbeddedCluster
from tenure.cycle import Scheduler
from tenure.engine.reasons import why_pending
from tenure.engine.serving.reserved_start import NextPass
from tenure.engine.snapshot import session_of
from tenure.engine.state.audit import audit
from tenure.fairness.current import Fairness
from tenure.model.devices import AllocatedDevice, DeviceAllocation, DeviceClass, ExactDevices
from tenure.model.manifests.device_uses import with_device_uses
from tenure.model.manifests.extended_resources import OF_CLASS, served_by
from tenure.model.node import Node
from tenure.model.queue import Queue
from tenure.model.workload import Phase, Task, TaskSpec, Workload

DRIVER = "gpu.example.com"
RESOURCE = "example.com/gpu"
CLASS = DeviceClass(
    name="gpu", selectors=expression(f'device.driver == "{DRIVER}"'), extended_resource=RESOURCE
)  # fmt: skip


def asking(name, count=1, resource=RESOURCE, node=None, **more):
    spec = TaskSpec(requests=tuple(sorted((("cpu", 1), (resource, count)))))
    phase = Phase.RUNNING if node else Phase.PENDING
    return Workload(
        name=name, queue="q", created_at=NOW, tasks=(Task(name=name, spec=spec, phase=phase, node=node),), **more
    )


def mixed(workloads, *, devices=2, plugin=2, claims=(), resource=RESOURCE, classes=(CLASS,)):
    """Give a cluster of two nodes: on n0 devices are given out by claims, n1 has the resource by itself."""
    slices = [local("n0", *(device(f"d{i}") for i in range(devices)))]
    made = cluster(slices, claims, workloads, classes)
    nodes = (made.nodes[0], Node(name="n1", allocatable={"cpu": 100, resource: plugin} if plugin else {"cpu": 100}))
    return with_device_uses(replace(made, nodes=nodes))


@pytest.mark.parametrize("resource", [RESOURCE, "nvidia.com/gpu", f"{OF_CLASS}gpu"])
def test_a_resource_is_given_out_by_claims_where_nodes_have_none_of_it(resource):
    """One task gets the node's own, another one devices; a third waits, as there is neither."""
    classes = (replace(CLASS, extended_resource="" if resource.startswith(OF_CLASS) else resource),)
    plugin = 0 if resource.startswith(OF_CLASS) else 2
    names = ["a", "b", "c"] if plugin else ["a", "b"]
    found = mixed([asking(n, 2, resource) for n in names], plugin=plugin, resource=resource, classes=classes)
    steps = planned(found)
    by_claims = {task: claims for task, (_, node, claims) in steps.items() if node == "n0"}
    assert [sorted(claims.values()) for claims in by_claims.values()] == [[["d0", "d1"]]]
    assert sum(node == "n1" and not claims for _, node, claims in steps.values()) == bool(plugin)
    assert len(steps) == len(names) - 1


def test_devices_that_claims_have_are_not_there_for_the_resource():
    """Of two devices one is held by a claim of another task: what asks for two waits and says for what."""
    held = DeviceAllocation(devices=(AllocatedDevice(request="r0", driver=DRIVER, pool="n0", device="d0"),))
    claims = [claim("x", ExactDevices(class_name="gpu"), allocation=held)]
    made = mixed([asking("a", 2)], plugin=0, claims=claims)
    assert not planned(made)
    session = session_of(made)
    reason = why_pending(session, session.workloads["default/a"], NextPass(session, Fairness(session).now))[0]
    assert reason.code == "NoNodeFits"
    assert f"it waits for {RESOURCE}, which is given out by claims: on no node are 2 devices of class gpu free" in (
        reason.message
    )


def test_a_resource_that_no_node_and_no_device_has_is_never_there():
    """Without devices of the class the resource is missing, as without the class."""
    made = mixed([asking("a")], plugin=0, devices=0)
    assert not planned(made)
    assert nodes_for(made, "a") == (set(), set())


def test_a_resource_counts_once_and_there_is_as_much_of_it_as_devices():
    """The total of a cluster has the node's own and the devices; a queue is charged what its tasks ask for."""
    made = mixed([asking("a", 2), asking("b", 1)])
    session = session_of(made)
    row = session.nodes.row[RESOURCE]
    assert session.occupancy.total()[row] == 4
    Scheduler(session).cycle(NOW)
    assert session.queues.allocated[0][row] == 3
    assert not audit(session)


def test_a_contender_gets_the_devices_of_whom_is_evicted():
    """A queue that is guaranteed devices reclaims them, whether claims or nodes give them out."""
    own = asking("due", 2)
    made = mixed([asking("a", 2), replace(own, queue="lender")], plugin=0)
    queues = (Queue(name="q"), Queue(name="lender", guaranteed={RESOURCE: 2}))
    embedded = EmbeddedCluster(replace(made, queues=queues))
    embedded.cluster = replace(embedded.cluster, workloads=tuple(w for w in made.workloads if w.name == "a"))
    embedded.carry_out(Scheduler(session_of(embedded.observe())).cycle(NOW))
    embedded.advance(NOW + 1)
    (held,) = embedded.cluster.devices.claims
    assert held.is_made
    assert [d.device for d in held.allocation.devices] == ["d0", "d1"]
    due = next(w for w in made.workloads if w.name == "due")
    embedded.cluster = replace(embedded.cluster, workloads=(*embedded.cluster.workloads, due))
    steps = Scheduler(session_of(embedded.observe())).cycle(NOW + 1).steps
    assert {(s.action, s.task) for s in steps} == {("evict", "a"), ("nominate", "due")}


def test_a_task_that_runs_without_a_claim_holds_what_its_node_has():
    """Where the node has the resource by itself nothing is taken from devices."""
    made = mixed([asking("a", 2, node="n1"), asking("b", 2)])
    assert planned(made) == {"b": ("bind", "n0", {"b-extended-resources-0-": ["d0", "d1"]})}


def test_of_two_classes_with_one_resource_the_newer_serves_it():
    """Of equal age the first by name does, as in kube-scheduler; each also has a resource of its own."""
    old = DeviceClass(name="a", extended_resource=RESOURCE, created_at=1)
    new = DeviceClass(name="b", extended_resource=RESOURCE, created_at=2)
    assert served_by([old, new])[RESOURCE] == "b"
    assert served_by([replace(new, created_at=1), old])[RESOURCE] == "a"
    assert served_by([old, new])[f"{OF_CLASS}a"] == "a"
