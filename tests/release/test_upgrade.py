"""From the version before the chart to this one and back, on a real control plane, without an eviction."""

import base64
import json
import subprocess
import sys
import urllib.request

import pytest
from tests.kubernetes.running import bound, gang, log_of, pods_of
from tests.kubernetes.stage import wait_until
from tests.release.conftest import LANDED, ROOT

from tenure.clusters.kubernetes.install.crds import RESOURCES

SETS = "/apis/apps/v1/namespaces/default/replicasets"
ALL = ",".join(f"{resource.plural}.tenure.dev" for resource in RESOURCES)


@pytest.fixture
def landed(tmp_path):
    """Give a checkout of the version before."""
    folder = tmp_path / "landed"
    folder.mkdir()
    archive = subprocess.run(["git", "archive", LANDED], cwd=ROOT, capture_output=True, check=False)
    if archive.returncode:
        pytest.skip(f"revision {LANDED} is not in this clone: {archive.stderr.decode()}")
    subprocess.run(["tar", "-x"], cwd=folder, input=archive.stdout, check=True)
    return folder


def manifests(source):
    """Give what ``tenure install`` of a version prints."""
    command = [sys.executable, "-m", "tenure", "install"]
    return subprocess.run(
        command, env={"PYTHONPATH": str(source / "src"), "PATH": ""}, capture_output=True, text=True, check=True
    ).stdout


def stored(plane, path):
    """Give the version in which etcd holds an object."""
    (url,) = [word.partition("=")[2] for word in plane.etcd.command if word.startswith("--listen-client-urls=")]
    body = json.dumps({"key": base64.b64encode(f"/registry/tenure.dev/{path}".encode()).decode()}).encode()
    with urllib.request.urlopen(f"{url}/v3/kv/range", body, timeout=10) as answer:
        (found,) = json.load(answer)["kvs"]
    return json.loads(base64.b64decode(found["value"]))["apiVersion"]


def test_upgraded_by_the_chart_and_rolled_back_nothing_is_evicted(plane, helm, scheduling, landed):
    """Pods run on, queues are read in both versions, what is stored is migrated, and the old one takes over again."""
    client = plane.client()
    plane.kubectl("apply", "-f", "-", given=manifests(landed))
    plane.kubectl("wait", "--for=condition=Established", "crd/queues.tenure.dev", "crd/nodepools.tenure.dev")
    old = {"apiVersion": "tenure.dev/v1alpha1", "kind": "Queue"}
    for name in ("one", "two"):
        body = {**old, "metadata": {"name": name}, "spec": {"guaranteed": {"nvidia.com/gpu": 6}}}
        client.create("/apis/tenure.dev/v1alpha1/queues", body)
    with scheduling("before", landed) as scheduler:
        wait_until(scheduler.leads, "the version before does not lead")
        client.create(SETS, gang("first", "one", 4))
        wait_until(lambda: bound(client, "first") == 4, "its gang is not bound")
    running = {pod["metadata"]["uid"] for pod in pods_of(client, "first")}
    assert stored(plane, "queues/one") == "tenure.dev/v1alpha1"

    helm.chart("upgrade", "--install", "--take-ownership", "--force-conflicts")
    with scheduling("after") as scheduler:
        wait_until(scheduler.leads, "this version does not lead")
        client.create(SETS, gang("second", "two", 4))
        wait_until(lambda: bound(client, "second") == 4, "its gang is not bound")
    assert client.get("/apis/tenure.dev/v1beta1/queues/one")["spec"] == {"guaranteed": {"nvidia.com/gpu": 6}}

    plane.kubectl("replace", "-f", "-", given=plane.kubectl("get", ALL, "-A", "-o", "json"))
    for resource in RESOURCES:
        patch = json.dumps({"status": {"storedVersions": ["v1beta1"]}})
        name = f"{resource.plural}.tenure.dev"
        plane.kubectl("patch", "crd", name, "--subresource=status", "--type=merge", "--patch", patch)
    assert {stored(plane, f"queues/{name}") for name in ("one", "two")} == {"tenure.dev/v1beta1"}

    plane.kubectl("apply", "-f", "-", "-l", "app.kubernetes.io/name=tenure", "--server-side", "--force-conflicts",
                  given=manifests(landed))  # fmt: skip
    with scheduling("again", landed) as scheduler:
        wait_until(scheduler.leads, "the version before does not lead again")
        client.create(SETS, gang("third", "one", 2))
        wait_until(lambda: bound(client, "third") == 2, "its gang is not bound")
    assert {pod["metadata"]["uid"] for pod in pods_of(client, "first")} == running
    assert log_of(client) == []
    assert len(pods_of(client, "second")) == 4


def test_a_newer_image_with_older_rights_leaves_the_lease_to_the_version_before(plane, scheduling, landed):
    """It says which rights it lacks, in readiness and log, so that a rollout stops; the version before goes on."""
    client = plane.client()
    plane.kubectl("apply", "-f", "-", given=manifests(landed))
    with scheduling("newer") as newer:
        wait_until(lambda: "volumeattachments" in newer.page("/readyz")[1], "it does not say what it may not read")
        status, said = newer.page("/readyz")
        assert status == 503
        head, _, paths = said.strip().partition(": ")
        assert head.endswith("apply the manifests of this version")
        assert "/apis/storage.k8s.io/v1/csidrivers" in paths.split(", ")
        with scheduling("before", landed) as before:
            wait_until(before.leads, "the version before does not lead")
            client.create(SETS, gang("fits", "default", 1))
            wait_until(lambda: bound(client, "fits") == 1, "its pod is not bound")
        wait_until(lambda: _lacking(newer), "its log does not say what it may not read", 60)
        assert "/apis/storage.k8s.io/v1/volumeattachments" in _lacking(newer)[0]["paths"]
        assert "tenure_leader 0.0" in newer.page("/metrics")[1]

        plane.kubectl("apply", "-f", "-", "--server-side", "--force-conflicts", given=manifests(ROOT))
        wait_until(newer.leads, "with the rights of its own version it does not lead", 120)


def test_a_scheduler_reads_the_queues_of_older_definitions(plane, scheduling, landed):
    """Where only the definitions are old, it reads the kinds in the version that is there, and keeps to the queues."""
    client = plane.client()
    plane.kubectl("apply", "-f", "-", given=manifests(landed))
    plane.kubectl("wait", "--for=condition=Established", "crd/queues.tenure.dev", "crd/nodepools.tenure.dev")
    plane.kubectl("apply", "-f", "-", "-l", "app.kubernetes.io/name=tenure", "--server-side", "--force-conflicts",
                  given=manifests(ROOT))  # fmt: skip
    body = {"apiVersion": "tenure.dev/v1alpha1", "kind": "Queue", "metadata": {"name": "small"}}
    client.create("/apis/tenure.dev/v1alpha1/queues", {**body, "spec": {"max": {"nvidia.com/gpu": 1}}})
    with scheduling("newer") as scheduler:
        wait_until(scheduler.leads, "it does not lead")
        client.create(SETS, gang("large", "small", 2))
        client.create(SETS, gang("fits", "small", 1))
        wait_until(lambda: bound(client, "fits") == 1, "the gang that fits is not bound")
        wait_until(lambda: _accepted(client), "the condition is not written")
    assert bound(client, "large") == 0


def _lacking(scheduler):
    """Give the lines of the log about rights that are not there."""
    return [line for line in scheduler.lines() if "may not list and watch" in line.get("message", "")]


def _accepted(client):
    found = client.get("/apis/tenure.dev/v1alpha1/queues/small").get("status", {}).get("conditions", [])
    return [(c["type"], c["status"]) for c in found] == [("Accepted", "True")]
