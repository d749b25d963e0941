"""The rights of the service account, held against what a running scheduler uses: none too many, none too few."""

import json
import signal
import subprocess
import time
import urllib.error
import urllib.request
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.kubernetes.frameworks import OWNERS, definition
from tests.kubernetes.kueue import WORKLOADS, workloads_definition
from tools.controlplane.plane import ControlPlane, Options
from tools.controlplane.process import wait_for

from tenure.clusters.kubernetes.install.installation import Installation
from tenure.clusters.kubernetes.install.rbac import Role, granted
from tenure.clusters.kubernetes.read import eviction_log
from tenure.model.manifests.devices import MADE
from tenure.model.manifests.extended_resources import made_claim_name

ROOT = Path(__file__).resolve().parents[2]
USER = "system:serviceaccount:tenure-system:tenure"
GPU = "nvidia.com/gpu"
HOT = {"rescheduler": {"hotNodes": {"enabled": True}}}
"""A setting for which it has to be known what is in use; nothing serves that here."""

GATES = {"gates": ("GenericWorkload",), "apis": ("scheduling.k8s.io/v1beta1",)}
NATIVE = {("scheduling.k8s.io", "podgroups"), ("scheduling.k8s.io", "workloads")}
BORROWERS = ("borrower-1", "borrower-2")
PODS = "/api/v1/namespaces/team/pods"


OWN = ("queues", "podgroups", "disruptionbudgets", "nodepools", "workloadkinds")
OTHERS = (
    definition("scheduling.run.ai", "v2", "Queue", "queues", "Cluster"),
    definition("scheduling.run.ai", "v2alpha2", "PodGroup", "podgroups", "Namespaced"),
    *OWNERS,
    definition("karpenter.sh", "v1", "NodeClaim", "nodeclaims", "Cluster"),
    definition("autoscaling.x-k8s.io", "v1", "ProvisioningRequest", "provisioningrequests", "Namespaced"),
    definition("kai.scheduler", "v1alpha1", "Topology", "topologies", "Cluster"),
    definition("scheduling.volcano.sh", "v1beta1", "Queue", "queues", "Cluster"),
    definition("topology.volcano.sh", "v1alpha1", "HyperNode", "hypernodes", "Cluster"),
    workloads_definition(),
)


def own(kind, name, spec, **metadata):
    return {"apiVersion": "tenure.dev/v1alpha1", "kind": kind, "metadata": {"name": name, **metadata}, "spec": spec}


def job(name, queue, gpus, scheduler="tenure"):
    limits = {"limits": {GPU: str(gpus)}}
    template = {
        "metadata": {"labels": {"tenure.dev/queue": queue}},
        "spec": {
            "schedulerName": scheduler,
            "restartPolicy": "Never",
            "containers": [{"name": "c", "image": "x", "resources": limits}],
        },
    }
    metadata = {"name": name, "namespace": "team"}
    spec = {"parallelism": 1, "completions": 1, "template": template}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


def log_page(number, entries):
    """Give a page of the log of evictions, as earlier leaders would have left it."""
    labels = {eviction_log.LABEL: "default"}
    metadata = {"name": f"tenure-evictions-default-{number}", "namespace": "tenure-system", "labels": labels}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata,
        "data": {eviction_log.DATA: eviction_log.write(entries)},
    }


def past(number, age):
    at = (datetime.now(UTC) - age).strftime("%Y-%m-%dT%H:%M:%SZ")
    return eviction_log.EvictionEntry(
        at=at, workload="team/gone", task=f"gone-{number}", uid=f"gone-{number}", cause="reclaim"
    )


THEIRS = (
    own(
        "NodePool",
        "default",
        {"scheduler": {"fairness": {"history": {"halfLife": "24h"}}, "disruption": {"maxOptOut": "1s"}, **HOT}},
    ),
    {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": "theirs"}, "spec": {}},
    log_page(0, [past(0, timedelta(days=30))]),
    log_page(1, [past(number, timedelta(minutes=5)) for number in range(2000)]),
)
"""With KAI's queues; of two pages of the log one is full, and nothing in the other matters any more."""

FARMS = own("WorkloadKind", "farms", {"group": "example.org", "version": "v1", "kind": "Farm"})
STORAGE = (
    {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "there"},
     "provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "WaitForFirstConsumer"},
    {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "made"},
     "provisioner": "csi.example.org", "volumeBindingMode": "WaitForFirstConsumer"},
    {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "there"},
     "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "there",
              "persistentVolumeReclaimPolicy": "Retain", "nfs": {"server": "s", "path": "/"}}},
    *({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name, "namespace": "team"},
       "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": name,
                "resources": {"requests": {"storage": "1Gi"}}}} for name in ("there", "made")),
)  # fmt: skip
"""A volume that is there for one claim, and a claim for which one would be made; nobody makes it here."""


DEVICES = (
    {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu"},
     "spec": {"extendedResourceName": "example.com/gpu"}},
    {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "node-0"},
     "spec": {"driver": "gpu.example.com", "nodeName": "node-0", "devices": [{"name": "gpu-0"}, {"name": "gpu-1"}],
              "pool": {"name": "node-0", "generation": 1, "resourceSliceCount": 1}}},
    {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "gpu", "namespace": "team"},
     "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}}},
    {"apiVersion": "v1", "kind": "Pod",
     "metadata": {"name": "uses", "namespace": "team", "labels": {"tenure.dev/queue": "theirs"}},
     "spec": {"schedulerName": "tenure", "resourceClaims": [{"name": "gpu", "resourceClaimName": "gpu"}],
              "containers": [{"name": "c", "image": "x"}]}},
)  # fmt: skip
"""Devices, a claim on one, and the pod that uses that."""


def asking(name, **spec):
    """Give a pod that asks for a device as for any resource."""
    amounts = {"example.com/gpu": "1"}
    resources = {"requests": amounts, "limits": amounts}
    spec |= {"schedulerName": "tenure", "containers": [{"name": "c", "image": "x", "resources": resources}]}
    metadata = {"name": name, "namespace": "team", "labels": {"tenure.dev/queue": "theirs"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def leave_claim(client, name):
    """Make the claim that an earlier leader made for a pod, with a device, before it ended."""
    path = "/apis/resource.k8s.io/v1/namespaces/team/resourceclaims"
    uid = client.get(f"{PODS}/{name}")["metadata"]["uid"]
    owner = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid, "controller": True}
    made = made_claim_name(name, uid)
    metadata = {"name": made, "annotations": {MADE: "true"}, "ownerReferences": [owner]}
    asked = {"requests": [{"name": "container-0-request-0", "exactly": {"deviceClassName": "gpu"}}]}
    client.create(path, {"metadata": metadata, "spec": {"devices": asked}})
    device = {"request": "container-0-request-0", "driver": "gpu.example.com", "pool": "gone", "device": "gone"}
    given = {"allocation": {"devices": {"results": [device]}}, "reservedFor": [
        {"resource": "pods", "name": name, "uid": uid}
    ]}  # fmt: skip
    client.patch(f"{path}/{made}/status", {"status": given})


CHECKED_ALONE = {("resource.k8s.io", "resourceclaims/binding", "patch")}
"""Rights that the API server asks about while it serves another request: no request of its own is on record."""


def reading():
    """Give a pod that mounts both claims."""
    named = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in ("there", "made")]
    spec = {"schedulerName": "tenure", "containers": [{"name": "c", "image": "x"}], "volumes": named}
    metadata = {"name": "reads", "namespace": "team", "labels": {"tenure.dev/queue": "theirs"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


OURS = (
    FARMS,
    own("Queue", "lender", {"guaranteed": {GPU: 8}}),
    own("Queue", "borrower", {}),
    own("DisruptionBudget", "all", {"maxEvictions": 100_000, "per": "1h"}),
    own("PodGroup", "empty", {"minMember": 2}, namespace="team"),
    {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "never", "namespace": "team"},
     "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"job-name": BORROWERS[1]}}}},
    *(job(name, "borrower", 4) for name in BORROWERS),
)  # fmt: skip
"""One of the borrowers has a budget that never allows an eviction: asking to be spared ends after a second here."""


class Scheduler:
    """The scheduler as a process of its own, with the rights of the service account."""

    def __init__(self, plane, folder, *options):
        kubeconfig = plane.kubeconfig_for(plane.token_of("tenure", "tenure-system"), "tenure")
        self.log = folder / "tenure.log"
        command = [str(ROOT / ".venv" / "bin" / "tenure"), "scheduler", f"--kubeconfig={kubeconfig}"]
        options = ("--listen=127.0.0.1:0", "--metrics-access=authorized", *options)
        with self.log.open("w") as log:
            self.process = subprocess.Popen([*command, *options], stdout=log, stderr=log)
        wait_for(lambda: "scheduler starts" in self.log.read_text(), "the scheduler to start", 60)
        self.port = json.loads(next(line for line in self.log.read_text().splitlines() if "scheduler starts" in line))[
            "port"
        ]

    def metrics(self, token=None):
        """Give the status of the answer to who asks for metrics."""
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        try:
            request = urllib.request.Request(f"http://127.0.0.1:{self.port}/metrics", headers=headers)
            with urllib.request.urlopen(request, timeout=10) as answer:
                return answer.status
        except urllib.error.HTTPError as error:
            return error.code

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(30) == 0, self.log.read_text()


def calls(plane):
    """Give what the service account asked for: group, resource, verb, and the answer's code."""
    for event in plane.audit(USER):
        about = event.get("objectRef")
        if about is not None:
            resource = "/".join(filter(None, (about["resource"], about.get("subresource"))))
            yield about.get("apiGroup", ""), resource, event["verb"], event["responseStatus"]["code"]


def usable(client, rights):
    """Give the rights on what is served: an earlier Kubernetes has some kinds in versions that are not read."""
    missing = set() if client.exists("/apis/scheduling.k8s.io/v1beta1") else set(NATIVE)
    served = {resource["name"] for resource in client.get("/apis/resource.k8s.io/v1")["resources"]}
    if "devicetaintrules" not in served:
        missing.add(("resource.k8s.io", "devicetaintrules"))
    return {right for right in rights if right[:2] not in missing}


def running(client, name):
    pods = client.get(f"{PODS}?labelSelector=job-name%3D{name}")["items"]
    return [pod for pod in pods if pod["status"]["phase"] == "Running" and "deletionTimestamp" not in pod["metadata"]]


def admit(client, name):
    """Let Kueue have admitted a Job an hour ago."""
    uid = client.get(f"/apis/batch/v1/namespaces/team/jobs/{name}")["metadata"]["uid"]
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": uid, "controller": True}
    path, at = f"{WORKLOADS}/namespaces/team/workloads", datetime.now(UTC) - timedelta(hours=1)
    meta = {"name": f"of-{name}", "ownerReferences": [owner]}
    client.create(path, {"apiVersion": WORKLOADS.removeprefix("/apis/"), "kind": "Workload", "metadata": meta})
    reserved = {"type": "QuotaReserved", "status": "True", "reason": "QuotaReserved", "message": "",
                "lastTransitionTime": at.strftime("%Y-%m-%dT%H:%M:%SZ")}  # fmt: skip
    client.patch(f"{path}/of-{name}/status", {"status": {"conditions": [reserved]}})


@pytest.fixture(scope="module")
def bare(programs, tmp_path_factory):
    """Give a control plane on which nothing is installed."""
    assert programs.exists()
    with ControlPlane(tmp_path_factory.mktemp("rights"), Options(audit=True, scheduler=True, **GATES)) as plane:
        plane.store.keep()
        yield plane


@pytest.fixture
def cluster(bare):
    """Give a cluster on which everything is installed that Tenure can read, and kube-scheduler."""
    plane = bare
    plane.forget_audit()
    plane.apply(*OTHERS)
    plane.add_namespace("team")
    for number in range(2):
        plane.add_node(f"node-{number}", {"cpu": "16", "memory": "64Gi", GPU: "4"})
    plane.kubectl("wait", "--for=condition=Established", *(f"crd/{o['metadata']['name']}" for o in OTHERS))
    yield plane
    plane.put_back()


def test_a_scheduler_uses_all_of_its_rights_and_asks_for_no_other(cluster, tmp_path):
    """While it places, reclaims and reports, no request is refused, and each right of the table is used."""
    cluster.install_tenure(Installation(image="tenure:test", role=Role.SCHEDULER, config=HOT))
    cluster.apply(*THEIRS, *STORAGE, *DEVICES, reading(), job("their-own", "theirs", 4), asking("asks"),
                  asking("left", nodeSelector={"no": "node"}))  # fmt: skip
    scheduler = Scheduler(cluster, tmp_path)
    client = cluster.client()
    wait_for(lambda: running(client, "their-own"), "the pod in KAI's queue to run", 60)
    wait_for(lambda: ("", "configmaps", "patch") in {call[:3] for call in calls(cluster)}, "that queue's usage", 60)
    bound = {("", "persistentvolumes", "patch"), ("", "persistentvolumeclaims", "patch"),
             ("resource.k8s.io", "resourceclaims/status", "patch")}  # fmt: skip
    wait_for(lambda: bound <= {call[:3] for call in calls(cluster)}, "claims to be written", 60)
    leave_claim(client, "left")
    given_back = "resource.k8s.io", "resourceclaims", "delete"
    wait_for(lambda: given_back in {call[:3] for call in calls(cluster)}, "the claim of an earlier leader to go", 60)
    cluster.kubectl("delete", "-n", "team", "job/their-own", "pod/reads", "pod/uses", "pod/asks", "pod/left")
    cluster.apply(*OURS)
    for name in BORROWERS:
        wait_for(lambda name=name: running(client, name), f"{name} to run", 60)
    admit(client, BORROWERS[0])
    for name in ("lender-1", "lender-2"):
        cluster.apply(job(name, "lender", 4))
        wait_for(lambda name=name: running(client, name), f"{name} to have what it is guaranteed", 60)
    reads_metrics(cluster, scheduler)
    expected = usable(client, granted(Role.SCHEDULER, measures=True)) - CHECKED_ALONE
    deadline = time.monotonic() + 60
    while not expected <= {call[:3] for call in calls(cluster)} and time.monotonic() < deadline:
        time.sleep(0.5)
    scheduler.stop()
    made = list(calls(cluster))
    assert [call for call in made if call[3] == 403] == []
    assert {call[:3] for call in made} == expected


def test_read_only_it_says_what_it_would_do_and_does_nothing(cluster, tmp_path):
    """Beside another scheduler, whose pods it is told to take for its own, it only reads, and says what it would do.

    Whatever the settings say: no request is refused, no right is left over, and nothing but events is new.
    """
    cluster.install_tenure(Installation(image="tenure:test", role=Role.READ_ONLY, config=HOT))
    enforced = {"modes": {"reclaim": "enforce"}, **HOT}
    cluster.apply(
        own("NodePool", "default", {"scheduler": enforced}),
        own("Queue", "lender", {"guaranteed": {GPU: 8}}),
        own("Queue", "borrower", {}),
        own("DisruptionBudget", "all", {"maxEvictions": 100, "per": "1h"}),
        own("PodGroup", "empty", {"minMember": 2}, namespace="team"),
        FARMS,
        *(job(name, "borrower", 4, "default-scheduler") for name in BORROWERS),
    )
    client = cluster.client()
    for name in BORROWERS:
        wait_for(lambda name=name: running(client, name), f"{name} to run", 60)
    cluster.apply(job("lender", "lender", 4, "default-scheduler"))
    before = versions(client)
    scheduler = Scheduler(cluster, tmp_path, "--read-only", "--scheduler-name=default-scheduler")
    wait_for(lambda: would_be_evicted(client), "the scheduler to say what it would do", 60)
    reads_metrics(cluster, scheduler)
    expected = usable(client, granted(Role.READ_ONLY, measures=True))
    deadline = time.monotonic() + 30
    while not expected <= {call[:3] for call in calls(cluster)} and time.monotonic() < deadline:
        time.sleep(0.5)
    scheduler.stop()
    made = list(calls(cluster))
    assert [call for call in made if call[3] == 403] == []
    assert {call[:3] for call in made} == expected
    assert {(group, resource) for group, resource, verb in expected if verb not in ("get", "list", "watch")} == {
        ("authentication.k8s.io", "tokenreviews"),
        ("authorization.k8s.io", "subjectaccessreviews"),
        ("coordination.k8s.io", "leases"),
        ("events.k8s.io", "events"),
        *(("tenure.dev", f"{name}/status") for name in OWN),
    }
    assert {key: version for key, version in versions(client).items() if key in before} == before
    (told,) = would_be_evicted(client)
    assert told["regarding"]["name"] in BORROWERS
    assert "team/lender" in told["note"]
    assert all(event["reason"] == "WouldEvict" for event in said(client))


def reads_metrics(cluster, scheduler):
    """Metrics are for whom the API server lets get them: not for nobody, not for anybody."""
    cluster.kubectl("-n", "team", "create", "serviceaccount", "reader")
    token = cluster.token_of("reader", "team")
    assert [scheduler.metrics(), scheduler.metrics("none"), scheduler.metrics(token)] == [401, 401, 403]
    cluster.kubectl(
        "create", "clusterrolebinding", "reader", "--clusterrole=tenure-metrics", "--serviceaccount=team:reader"
    )
    assert scheduler.metrics(cluster.token_of("reader", "team", seconds=7200)) == 200


def versions(client):
    """Give the version of each pod that runs; a pod that waits is written by its own scheduler now and then."""
    pods = [pod for pod in client.get(PODS)["items"] if pod["status"]["phase"] == "Running"]
    return {pod["metadata"]["name"]: pod["metadata"]["resourceVersion"] for pod in pods}


def said(client):
    events = client.get("/apis/events.k8s.io/v1/events")["items"]
    return [event for event in events if event.get("reportingController", "").startswith("tenure")]


def would_be_evicted(client):
    return [event for event in said(client) if event["reason"] == "WouldEvict"]
