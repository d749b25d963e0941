"""The rescheduler beside the default kube-scheduler: it makes room, keeps it, and leaves nothing behind."""

from __future__ import annotations

import time

import pytest
from tests.kubernetes.running import SETS, TENURE, bound, clear, pods_of, running
from tests.kubernetes.stage import wait_until
from tools.controlplane.plane import ControlPlane, Options

from tenure.clusters.kubernetes import holes
from tenure.clusters.kubernetes.manifests import Installation

ACCOUNT = "system:serviceaccount:tenure-system:tenure"
MAPS = "/api/v1/namespaces/tenure-system/configmaps"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
RESCHEDULER = {"schedulers": ["default-scheduler"], "pendingFor": "1s"}


@pytest.fixture(scope="module")
def plane(programs, tmp_path_factory):
    assert programs.exists()
    options = Options(scheduler=True, audit=True)
    with ControlPlane(tmp_path_factory.mktemp("beside-plane"), options) as started:
        started.install_tenure(Installation(image="tenure:test", config={"rescheduler": RESCHEDULER}))
        yield started


@pytest.fixture
def client(plane):
    """Give a client, on two nodes of 10 cores, 4 of each in use: there is no room for 9, and it can be made.

    Tenure's own replicas are simulated there too, and take a quarter of a core each.
    """
    made = plane.client()
    for name in ("node-0", "node-1"):
        plane.add_node(name, {"cpu": "10", "memory": "32Gi"})
    wait_until(lambda: all(is_ready(n) for n in made.get("/api/v1/nodes")["items"]), "the nodes are not ready", 30)
    for name in ("small-a", "small-b"):
        made.create(SETS, replicas(name, 4))
        wait_until(lambda name=name: bound(made, name) == 1, f"{name} does not run", 30)
    wait_until(lambda: sorted(nodes_of(made, "small-a") + nodes_of(made, "small-b")) == ["node-0", "node-1"],
               "the small ones are not spread", 30)  # fmt: skip
    yield made
    for budget in made.get(BUDGETS)["items"]:
        made.delete(f"{BUDGETS}/{budget['metadata']['name']}")
    clear(plane.client())


@pytest.fixture
def kubeconfig(plane):
    return plane.kubeconfig_for(plane.token_of("tenure", "tenure-system"), "tenure")


def replicas(name, cpu, count=1, **spec):
    """Give a ReplicaSet for the default scheduler."""
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": str(cpu)}}}
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container], **spec}}
    body = {"replicas": count, "selector": {"matchLabels": {"app": name}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": name}, "spec": body}


def settle(client, **settings):
    """Give the node pool its settings."""
    body = {"scheduler": {"rescheduler": RESCHEDULER, **settings}}
    item = {"apiVersion": "tenure.dev/v1alpha1", "kind": "NodePool", "metadata": {"name": "default"}, "spec": body}
    client.create(f"{TENURE}/nodepools", item)


def nodes_of(client, name):
    return [p["spec"]["nodeName"] for p in pods_of(client, name) if p["spec"].get("nodeName")]


def is_ready(node):
    """Whether pods may land on a node."""
    ready = any(c["type"] == "Ready" and c["status"] == "True" for c in node["status"].get("conditions", ()))
    return ready and not node["spec"].get("taints")


def tainted(client):
    nodes = client.get("/api/v1/nodes")["items"]
    return [n["metadata"]["name"] for n in nodes
            if any(t["key"] == holes.TAINT for t in n["spec"].get("taints", ()))]  # fmt: skip


def record(client):
    """Give the ConfigMap by which something is kept, if there is one."""
    found = [m for m in client.get(MAPS)["items"] if m["metadata"]["name"].startswith("tenure-moves")]
    return found[0] if found else None


def nothing_is_left(client):
    return not tainted(client) and record(client) is None


def events(client, reason):
    return [e for e in client.get("/apis/events.k8s.io/v1/events")["items"] if e["reason"] == reason]


def test_a_pod_of_kube_scheduler_gets_its_room_by_a_move_and_nobody_steals_it(plane, client, kubeconfig, tmp_path):
    """The hole goes to whom it was made for, what moved lands elsewhere, and nothing is left of how it was done."""
    settle(client)
    before = {uid_of(p): p["spec"]["nodeName"] for n in ("small-a", "small-b") for p in pods_of(client, n)}
    client.create(SETS, replicas("large", 9))
    time.sleep(1.2)  # times of creation are in whole seconds, and who came first is served first
    client.create(SETS, replicas("thief", 6, 4))
    with running(kubeconfig, tmp_path) as scheduler:
        wait_until(lambda: bound(client, "large") == 1, lambda: scheduler.log.read_text()[-3000:], 60)
        wait_until(lambda: nothing_is_left(client), lambda: f"{tainted(client)} {record(client)}", 60)
        wait_until(lambda: bound(client, "small-a") == bound(client, "small-b") == 1, "what moved does not land", 30)
    assert bound(client, "thief") == 0
    after = {uid_of(p): p for n in ("small-a", "small-b") for p in pods_of(client, n)}
    (moved,) = set(before) - set(after)
    (new,) = set(after) - set(before)
    assert nodes_of(client, "large") == [before[moved]]
    assert after[new]["spec"]["nodeName"] != before[moved]
    assert after[new]["metadata"]["annotations"][holes.KEPT_OFF] == before[moved]
    assert [call for call in calls(plane) if call[1] == "pods/binding"] == []
    assert events(client, "HoleKept")
    assert events(client, "HoleFilled")


def uid_of(pod):
    return pod["metadata"]["uid"]


def calls(plane):
    for event in plane.audit(ACCOUNT):
        about = event.get("objectRef")
        if about is not None:
            resource = "/".join(filter(None, (about["resource"], about.get("subresource"))))
            yield event["verb"], resource, event["responseStatus"]["code"]
