"""The rescheduler on a real control plane with Tenure's own pods: a hot node is cooled; a dry run writes nothing."""

from __future__ import annotations

import json
import threading
import time
from contextlib import contextmanager

import pytest
from tests.kubernetes.metrics_server import announce, metrics_server, withdraw
from tests.kubernetes.running import (
    MEASURING,
    PODS,
    SETS,
    TENURE,
    bound,
    clear,
    log_of,
    pods_of,
    queue,
    running,
    tenure,
)
from tests.kubernetes.stage import wait_until

from tenure.clusters.kubernetes.read.usage import METRICS
from tenure.clusters.kubernetes.write.events import CONTROLLER

ACCOUNT = "system:serviceaccount:tenure-system:tenure"
CORES = 8


@pytest.fixture
def client(plane):
    made = plane.client()
    made.create(f"{TENURE}/queues", queue("team"))
    yield made
    clear(plane.client())


def replicas(name, cpu, count=1, minimum=1, **spec):
    """Give a ReplicaSet of Tenure's pods, of which so many start together."""
    meta = {
        "labels": {"app": name, "tenure.dev/queue": "team"},
        "annotations": {"tenure.dev/min-member": str(minimum)},
    }
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": str(cpu)}}}
    template = {"metadata": meta, "spec": {"schedulerName": "tenure", "containers": [container], **spec}}
    body = {"replicas": count, "selector": {"matchLabels": {"app": name}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": name}, "spec": body}


def pool(client, **rescheduler):
    """Give the node pool settings of the rescheduler."""
    spec = {"scheduler": {"rescheduler": rescheduler}}
    body = {"apiVersion": "tenure.dev/v1alpha1", "kind": "NodePool", "metadata": {"name": "default"}, "spec": spec}
    client.create(f"{TENURE}/nodepools", body)


def nodes_of(client, name):
    return sorted(p["spec"]["nodeName"] for p in pods_of(client, name) if p["spec"].get("nodeName"))


class Meter:
    """What pods use, by the label ``app``, in millicores; a node uses what runs on it, as a metrics server says."""

    def __init__(self, client, usage):
        self.client, self.usage = client, usage
        self.asking = threading.Lock()  # the metrics server asks as well, from a thread of its own

    def get(self, path):
        with self.asking:
            return self.client.get(path)["items"]

    def pods(self):
        """Give every pod that runs with its node and what it uses."""
        for pod in self.get(PODS):
            used = self.usage.get(pod["metadata"]["labels"].get("app"))
            if used and pod["spec"].get("nodeName") and pod["status"].get("phase") == "Running":
                yield pod["metadata"]["name"], pod["spec"]["nodeName"], used

    def nodes(self):
        """Give what every node uses."""
        found = {n["metadata"]["name"]: 100 for n in self.get("/api/v1/nodes")}
        for _, node, used in self.pods():
            found[node] += used
        return found

    def answer(self, path):
        """Give what the metrics API says."""
        if path.startswith(f"{METRICS}/nodes"):
            return [
                {"metadata": {"name": n}, "usage": {"cpu": f"{u}m", "memory": "1Gi"}} for n, u in self.nodes().items()
            ]
        if path.startswith(f"{METRICS}/pods"):
            return [
                {
                    "metadata": {"name": name, "namespace": "default"},
                    "containers": [{"name": "main", "usage": {"cpu": f"{used}m", "memory": "1Mi"}}],
                }
                for name, _, used in self.pods()
            ]
        return None


@contextmanager
def metered(plane, meter):
    """Serve the metrics API, behind the API server."""
    with metrics_server(plane.credentials, meter.answer) as port:
        try:
            announce(meter.client, port)
            yield
        finally:
            withdraw(meter.client)


def evictions(plane):
    """Give the pods that were really evicted, by the audit log."""
    return [
        event["objectRef"]["name"]
        for event in plane.audit(ACCOUNT)
        if event.get("objectRef", {}).get("subresource") == "eviction"
        and "dryRun=All" not in event["requestURI"]
        and event["responseStatus"]["code"] == 201
        and not event.get("requestObject", {}).get("deleteOptions", {}).get("dryRun")
    ]


def test_a_hot_node_is_cooled_by_one_real_eviction_and_then_nothing_moves(plane, client, token, tmp_path):
    """Three pods of two cores use 2.4 each: the API says that the node is hot, one pod goes, and no node is hot."""
    plane.install_tenure(MEASURING)
    plane.add_node("hot", {"cpu": str(CORES), "memory": "32Gi"})
    pool(client, hotNodes={"enabled": True, "hot": "80%", "for": "10s"})
    client.create(SETS, replicas("web", 2, 3))
    kubeconfig = plane.kubeconfig_for(token, "hot")
    before = len(evictions(plane))
    meter = Meter(plane.client(), {"web": 2400})
    with metered(plane, meter), running(kubeconfig, tmp_path) as scheduler:
        wait_until(lambda: nodes_of(client, "web") == ["hot"] * 3, lambda: scheduler.log.read_text()[-2000:], 60)
        wait_until(lambda: meter.nodes()["hot"] > 0.8 * CORES * 1000, "what is bound does not run", 60)
        first = {p["metadata"]["uid"] for p in pods_of(client, "web")}
        plane.add_node("cool", {"cpu": str(CORES), "memory": "32Gi"})
        wait_until(
            lambda: nodes_of(client, "web") == ["cool", "hot", "hot"], lambda: scheduler.log.read_text()[-3000:], 150
        )
        (entry,) = log_of(client)
        assert (entry.cause, entry.from_node, entry.to_node, entry.beneficiary) == ("reschedule", "hot", "cool", None)
        assert len(first & {p["metadata"]["uid"] for p in pods_of(client, "web")}) == 2, "one pod was made anew"
        time.sleep(45)  # a further look at the metrics, and cycles upon it
        assert len(evictions(plane)) == before + 1
        assert nodes_of(client, "web") == ["cool", "hot", "hot"]
        assert max(meter.nodes().values()) <= 0.8 * CORES * 1000, "no node is hot now"


VERBS = {"create", "update", "patch", "delete", "deletecollection"}
LOOKED_AT = (
    PODS, SETS, f"{TENURE}/queues", f"{TENURE}/nodepools", f"{TENURE}/disruptionbudgets",
    f"{TENURE}/namespaces/default/podgroups", "/api/v1/namespaces/tenure-system/configmaps",
    "/apis/coordination.k8s.io/v1/namespaces/tenure-system/leases", "/apis/events.k8s.io/v1/namespaces/default/events",
)  # fmt: skip


def versions(client):
    """Give the resource version of everything that Tenure may write to; what others say in events is none of it."""
    items = [item for path in LOOKED_AT for item in client.get(path)["items"]]
    items = [item for item in items if item.get("reportingController", CONTROLLER) == CONTROLLER]
    return {item["metadata"]["uid"]: item["metadata"]["resourceVersion"] for item in items}


def writes(plane):
    return [e for e in plane.audit(ACCOUNT) if e["verb"] in VERBS]


def test_a_dry_run_on_a_live_cluster_prints_the_plan_and_writes_nothing(plane, client, token, tmp_path):
    """With the scheduler's own rights, which would allow it; the scheduler that follows does what was printed."""
    plane.add_node("node-1", {"cpu": str(CORES), "memory": "32Gi"})
    pool(client, pendingFor="2s")
    kubeconfig = plane.kubeconfig_for(token, "dry")
    with running(kubeconfig, tmp_path) as scheduler:
        client.create(SETS, replicas("moves", 4))
        wait_until(lambda: nodes_of(client, "moves") == ["node-1"], lambda: scheduler.log.read_text()[-2000:], 60)
        plane.add_node("node-0", {"cpu": str(CORES), "memory": "32Gi"})
        client.create(SETS, replicas("stays", 4, nodeSelector={"kubernetes.io/hostname": "node-0"}))
        wait_until(lambda: nodes_of(client, "stays") == ["node-0"], lambda: scheduler.log.read_text()[-2000:], 60)
    client.create(SETS, replicas("big", CORES))
    wait_until(lambda: len(pods_of(client, "big")) == 1, "there is no pod", 30)
    time.sleep(4)
    known, before = versions(client), len(writes(plane))
    assert known
    assert before, "what the scheduler has written so far stands in the audit log"
    dry = [
        tenure("reschedule", "--live", "--dry-run", *more, kubeconfig=kubeconfig) for more in ([], ["--format", "json"])
    ]
    assert [run.returncode for run in dry] == [0, 0], dry[0].stderr + dry[1].stderr
    (plan,) = json.loads(dry[1].stdout)["moves"]
    assert plan["feasible"]
    ((move,),) = plan["waves"]
    assert (move["from"], move["to"]) == ("node-1", "node-0")
    assert "node-1 to node-0" in dry[0].stdout
    assert "default/big" in dry[0].stdout
    drained = tenure("reschedule", "--live", "--dry-run", "--drain", "node-1", kubeconfig=kubeconfig)
    assert drained.returncode == 0, drained.stderr
    assert versions(client) == known
    assert len(writes(plane)) == before
    with running(kubeconfig, tmp_path, "two") as scheduler:
        wait_until(lambda: bound(client, "big") == 1, lambda: scheduler.log.read_text()[-3000:], 60)
        assert (nodes_of(client, "big"), nodes_of(client, "moves")) == (["node-1"], ["node-0"])
