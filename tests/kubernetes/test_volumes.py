"""Pods that mount volumes, live: they wait for their claims, and go where their volumes are."""

from __future__ import annotations

import pytest
from tests.kubernetes.running import JOBS, TENURE, bound, clear, job, pods_of, queue, running, tenure
from tests.kubernetes.stage import wait_until, watched

from tenure.clusters.kubernetes import keys
from tenure.clusters.kubernetes.client.requests import ApiError
from tenure.clusters.kubernetes.write.claims import ClaimWriter
from tenure.engine.plan import ClaimedVolume, PlanStep
from tenure.model.file.load import load_cluster

CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
VOLUMES = "/api/v1/persistentvolumes"
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"


@pytest.fixture
def client(plane):
    made = plane.client()
    for number in range(3):
        plane.add_node(f"node-{number}", {"cpu": "16", "memory": "64Gi", "nvidia.com/gpu": "4"})
    made.create(f"{TENURE}/queues", queue("team"))
    yield made
    for path in (CLAIMS, VOLUMES):
        for item in made.get(path)["items"]:
            made.discard(f"{path}/{item['metadata']['name']}")
    for item in made.get(CLASSES)["items"]:
        made.delete(f"{CLASSES}/{item['metadata']['name']}")
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


def late(name, provisioner="kubernetes.io/no-provisioner"):
    """Give a class whose claims are bound where their pod is placed."""
    return {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name},
            "provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer"}  # fmt: skip


def open_claim(name, of_class, size="1Gi", mode="ReadWriteMany"):
    """Give a claim of a class, for whatever volume there will be."""
    made = claim(name)
    made["spec"] = {"accessModes": [mode], "storageClassName": of_class, "resources": {"requests": {"storage": size}}}
    return made


class Provisioner:
    """Makes volumes for claims that name a node, as the driver of a storage system would; once it refuses."""

    def __init__(self, client):
        self.client = client
        self.refused = []

    def turn(self):
        """Look at all claims once."""
        for item in self.client.get(CLAIMS)["items"]:
            name, said = item["metadata"]["name"], item["metadata"].get("annotations", {})
            node = said.get("volume.kubernetes.io/selected-node")
            if not node or item["spec"].get("volumeName"):
                continue
            if not self.refused:
                self.refused.append(node)
                self.client.patch(f"{CLAIMS}/{name}", {"metadata": {"annotations": {
                    "volume.kubernetes.io/selected-node": None}}})  # fmt: skip
            elif not self.client.exists(f"{VOLUMES}/made-{name}"):
                made = volume(f"made-{name}", node)
                made["spec"] |= {field: item["spec"][field] for field in ("storageClassName", "accessModes")}
                made["spec"]["claimRef"] = {"namespace": "default", "name": name, "uid": item["metadata"]["uid"]}
                self.client.create(VOLUMES, made)


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


def test_a_claim_is_bound_to_the_smallest_volume_and_its_pod_goes_there(plane, client, token, tmp_path):
    """Two pods of one core share the claim; a snapshot of it all plans the same."""
    client.create(CLASSES, late("local"))
    for name, size, node in (("large", "9Gi", "node-1"), ("small", "2Gi", "node-1")):
        made = volume(name, node)
        made["spec"] |= {"capacity": {"storage": size}, "storageClassName": "local", "claimRef": None}
        client.create(VOLUMES, made)
    client.create(CLAIMS, open_claim("data", "local"))
    kubeconfig = plane.kubeconfig_for(token, "tenure")
    with running(kubeconfig, tmp_path):
        client.create(JOBS, mounting("train", {"persistentVolumeClaim": {"claimName": "data"}}))
        wait_until(lambda: bound(client, "train") == 2, lambda: f"it does not start: {said(client, 'train')}", 60)
    assert {p["spec"]["nodeName"] for p in pods_of(client, "train")} == {"node-1"}
    assert client.get(f"{CLAIMS}/data")["spec"]["volumeName"] == "small"
    taken = tmp_path / "snapshot.yaml"
    made = tenure("snapshot", "--output", str(taken), kubeconfig=kubeconfig)
    assert made.returncode == 0, made.stderr
    found = load_cluster(taken).cluster
    assert [c.volume for c in found.storage.claims] == ["small"]
    mounting_it = [t for w in found.workloads for t in w.tasks if t.spec.claims]
    assert {t.spec.claims for t in mounting_it} == {("data",)}
    assert all(t.spec.mounts[0].nodes for t in mounting_it)


def test_what_a_provisioner_refuses_is_made_for_another_node(plane, client, token, tmp_path):
    """The pod says what it waits for, and is bound when its claim is; a claim of one pod keeps a second one out."""
    client.create(CLASSES, late("made", "csi.example.org"))
    client.create(CLAIMS, open_claim("own", "made", mode="ReadWriteOncePod"))
    provisioner = Provisioner(client)
    with running(plane.kubeconfig_for(token, "tenure"), tmp_path):
        own = mounting("first", {"persistentVolumeClaim": {"claimName": "own"}})
        own["spec"] |= {"parallelism": 1, "completions": 1}
        client.create(JOBS, own)
        wait_until(
            lambda: any("claim own, which gets its volume for node" in m for _, m in said(client, "first")),
            lambda: f"it does not say what it waits for: {said(client, 'first')}",
            60,
        )

        def is_bound():
            provisioner.turn()
            return bound(client, "first") == 1

        wait_until(is_bound, lambda: f"it does not start: {said(client, 'first')}", 60)
        (pod,) = pods_of(client, "first")
        assert provisioner.refused
        assert pod["spec"]["nodeName"] not in provisioner.refused
        second = mounting("second", {"persistentVolumeClaim": {"claimName": "own"}})
        second["spec"] |= {"parallelism": 1, "completions": 1}
        client.create(JOBS, second)
        wait_until(
            lambda: any("claim in use by another task" in m for _, m in said(client, "second")),
            lambda: f"it does not say why it waits: {said(client, 'second')}",
            60,
        )
        client.delete(f"{JOBS}/first", {"propagationPolicy": "Background"})
        wait_until(lambda: bound(client, "second") == 1, lambda: f"it does not start: {said(client, 'second')}", 60)


def test_a_node_that_was_refused_since_the_plan_was_made_is_not_named_again(plane, client):
    """The plan counts on a node that the provisioner takes off the claim before the plan is carried out."""
    client.create(CLASSES, late("made", "csi.example.org"))
    client.create(CLAIMS, open_claim("own", "made"))
    with watched(plane) as live:
        store, key = live.informers.objects["claims"], ("default", "own")
        for node in ("node-0", None):
            client.patch(f"{CLAIMS}/own", {"metadata": {"annotations": {keys.SELECTED_NODE: node}}})
        wait_until(lambda: store.refused.get(key) == ("node-0",), "it does not see that the node was refused")

        def prepare(node):
            volumes = (ClaimedVolume("default/own", "", node),)
            step = PlanStep("bind", "default/w", "w-0", node, 0, 0, (), 0, None, None, 0.0, "", None, None, 0, 0, 0)
            ClaimWriter(live.client, live.informers).prepare(step._replace(volumes=volumes))

        with pytest.raises(ApiError, match="was refused for node node-0 since"):
            prepare("node-0")
        assert keys.SELECTED_NODE not in client.get(f"{CLAIMS}/own")["metadata"].get("annotations", {})
        prepare("node-1")
        assert client.get(f"{CLAIMS}/own")["metadata"]["annotations"][keys.SELECTED_NODE] == "node-1"
