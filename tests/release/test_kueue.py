"""Kueue's own controllers beside Tenure: Kueue admits, Tenure places and evicts, and Kueue queues what was evicted."""

from __future__ import annotations

import pytest
from tests.kubernetes.kueue import WORKLOADS, definitions, kueue
from tests.kubernetes.running import JOBS, TENURE, job, queue
from tests.kubernetes.stage import wait_until
from tools.controlplane import build

from tenure.clusters.kubernetes.install.installation import Installation

GPU = "nvidia.com/gpu"
PODS = "/api/v1/namespaces/default/pods"
THEIRS = f"{WORKLOADS}/namespaces/default/workloads"
ACTIONS = {"scheduler": {"actions": ["allocate", "reclaim"]}}


@pytest.fixture
def admitting(plane, tmp_path):
    """Give a control plane on which Kueue admits Jobs for eight GPUs, of twelve that there are."""
    if not build.KUEUE.is_built:
        pytest.skip("no Kueue here: run 'make kueue' (needs Go 1.26)")
    plane.define(*definitions())
    with kueue(plane, tmp_path):
        flavor = {"name": "any", "resources": [{"name": name, "nominalQuota": most}
                                               for name, most in (("cpu", 100), (GPU, 8))]}  # fmt: skip
        version = {"apiVersion": WORKLOADS.removeprefix("/apis/")}
        plane.apply(
            {**version, "kind": "ResourceFlavor", "metadata": {"name": "any"}, "spec": {}},
            {**version, "kind": "ClusterQueue", "metadata": {"name": "all"},
             "spec": {"namespaceSelector": {},
                      "resourceGroups": [{"coveredResources": ["cpu", GPU], "flavors": [flavor]}]}},
            {**version, "kind": "LocalQueue", "metadata": {"name": "mine", "namespace": "default"},
             "spec": {"clusterQueue": "all"}},
        )  # fmt: skip
        yield plane


def theirs(name, pods):
    """Give a Job for Kueue to admit: suspended, as its webhook would have it."""
    made = job(name, "lent", pods)
    made["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "mine"
    evicted = {"type": "DisruptionTarget", "status": "True"}
    rules = [{"action": "Ignore", "onPodConditions": [evicted]}]
    return {**made, "spec": {**made["spec"], "suspend": True, "podFailurePolicy": {"rules": rules}}}


def running(client, name):
    """Count the pods of a Job that run."""
    listed = client.get(f"{PODS}?labelSelector=job-name%3D{name}")["items"]
    return sum(p["status"]["phase"] == "Running" and "deletionTimestamp" not in p["metadata"] for p in listed)


def conditions(client, name):
    """Give the conditions of the workload that Kueue made for a Job: status and reason by type."""
    for item in client.get(THEIRS)["items"]:
        if any(owner["name"] == name for owner in item["metadata"].get("ownerReferences", ())):
            return {c["type"]: (c["status"], c["reason"]) for c in item.get("status", {}).get("conditions", ())}
    return {}


def test_kueue_queues_again_what_tenure_evicted(admitting, scheduling):
    """It gives up its quota, is requeued, and admitted anew by Kueue itself."""
    plane, client = admitting, admitting.client()
    plane.install_tenure(Installation(image="tenure:test"))
    client.create(f"{TENURE}/queues", queue("lent"))
    client.create(f"{TENURE}/queues", queue("owed", guaranteed={GPU: 12}))
    client.create(f"{TENURE}/nodepools", {"apiVersion": "tenure.dev/v1alpha1", "kind": "NodePool",
                                          "metadata": {"name": "default"}, "spec": ACTIONS})  # fmt: skip
    with scheduling("one"):
        client.create(JOBS, theirs("first", 8))
        wait_until(lambda: running(client, "first") == 8, lambda: str(conditions(client, "first")), 60)
        client.create(JOBS, job("owner", "owed", 8))
        wait_until(lambda: running(client, "owner") == 8, lambda: str(conditions(client, "first")), 60)
        wait_until(lambda: conditions(client, "first").get("Requeued") == ("True", "Preempted"),
                   lambda: str(conditions(client, "first")), 60)  # fmt: skip
        wait_until(lambda: conditions(client, "first")["Evicted"] == ("False", "QuotaReserved"),
                   lambda: str(conditions(client, "first")), 60)  # fmt: skip
        assert conditions(client, "first")["QuotaReserved"][0] == "True", "it was admitted anew"
