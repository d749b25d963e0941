"""Pods that mount volumes, live: they wait for their claims, and go where their volumes are."""

from __future__ import annotations

import pytest
from tests.kubernetes.running import JOBS, TENURE, bound, clear, job, pods_of, queue, running
from tests.kubernetes.stage import wait_until

CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
VOLUMES = "/api/v1/persistentvolumes"


@pytest.fixture
def client(plane):
    made = plane.client()
    for number in range(3):
        plane.add_node(f"node-{number}", {"cpu": "16", "memory": "64Gi", "nvidia.com/gpu": "4"})
    made.create(f"{TENURE}/queues", queue("team"))
    yield made
    for path in (CLAIMS, VOLUMES):
        for item in made.get(path)["items"]:
            made.patch(f"{path}/{item['metadata']['name']}", {"metadata": {"finalizers": None}})
            made.delete(f"{path}/{item['metadata']['name']}")
    clear(plane.client())


def mounting(name, *volumes):
    """Give a Job of two pods that mount volumes."""
    made = job(name, "team", 2)
    made["spec"]["template"]["spec"]["volumes"] = [{"name": f"v{i}", **volume} for i, volume in enumerate(volumes)]
    return made


def claim(name):
    """Give a claim for a volume of that name."""
    spec = {"accessModes": ["ReadWriteMany"], "storageClassName": "", "volumeName": name,
            "resources": {"requests": {"storage": "1Gi"}}}  # fmt: skip
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": spec}


def volume(name, node):
    """Give a volume that lies on one node."""
    here = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteMany"], "local": {"path": "/data"},
            "persistentVolumeReclaimPolicy": "Retain", "claimRef": {"namespace": "default", "name": name},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}}}  # fmt: skip
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec}


def said(client, name):
    """Give reason and message of the pods of a Job that wait."""
    conditions = [c for p in pods_of(client, name) for c in p["status"].get("conditions", ())]
    return {(c["reason"], c["message"]) for c in conditions if c["type"] == "PodScheduled" and c["status"] == "False"}


def test_pods_wait_for_their_claim_and_go_where_its_volume_is(plane, client, token, tmp_path):
    """The claim is not there, then not bound, then bound by the controller of volumes; a network share binds nobody."""
    with running(plane.kubeconfig_for(token, "tenure"), tmp_path):
        client.create(JOBS, mounting("train", {"persistentVolumeClaim": {"claimName": "data"}}))
        client.create(JOBS, mounting("share", {"nfs": {"server": "nowhere", "path": "/"}}, {"csi": {"driver": "any"}}))
        wait_until(lambda: bound(client, "share") == 2, "what every node reaches does not start", 60)
        wait_until(
            lambda: any(r == "VolumeNotReady" and "not there" in m for r, m in said(client, "train")),
            lambda: f"it does not say what it waits for: {said(client, 'train')}",
            60,
        )
        client.create(CLAIMS, claim("data"))
        wait_until(
            lambda: any("not bound" in m for _, m in said(client, "train")),
            lambda: f"it does not say that its claim is not bound: {said(client, 'train')}",
            60,
        )
        assert bound(client, "train") == 0
        client.create(VOLUMES, volume("data", "node-2"))
        wait_until(lambda: bound(client, "train") == 2, lambda: f"it does not start: {said(client, 'train')}", 60)
        assert {p["spec"]["nodeName"] for p in pods_of(client, "train")} == {"node-2"}
