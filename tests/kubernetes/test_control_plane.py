"""The control plane itself: what is simulated behaves as it says, and nothing of it outlives its owner."""

import base64
import os
import signal
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from tools.controlplane import build
from tools.controlplane.client import IDLE_SECONDS, Client
from tools.controlplane.plane import ControlPlane
from tools.controlplane.process import wait_for
from tools.controlplane.store import LeftError, Store

ROOT = Path(__file__).resolve().parents[2]
PODS = "/api/v1/namespaces/simulated/pods"


@pytest.fixture(scope="module")
def plane(programs, tmp_path_factory):
    """Give a control plane on which nothing is installed: where it is restarted, policies are in effect much later."""
    assert programs.exists()
    with ControlPlane(tmp_path_factory.mktemp("control-plane")) as made:
        yield made


@pytest.fixture(scope="module")
def _simulated(plane):
    plane.add_namespace("simulated")
    plane.add_node("simulated", {"cpu": "8", "memory": "8Gi", "nvidia.com/gpu": "4"}, labels={"zone": "a"})


@pytest.fixture
def client(plane, _simulated):
    return plane.client()


@pytest.fixture
def store(plane):
    """Give what the control plane holds, of the test's own: what the module has to leave it with is kept elsewhere."""
    return Store(plane.store.address)


def start(client, name, **annotations):
    """Create a pod and bind it, as a scheduler would."""
    said = {f"simulated.tenure.dev/{key.replace('_', '-')}": value for key, value in annotations.items()}
    metadata = {"name": name, "annotations": said}
    spec = {"containers": [{"name": "c", "image": "x"}], "schedulerName": "tenure", "terminationGracePeriodSeconds": 30}
    client.create(PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    target = {"apiVersion": "v1", "kind": "Node", "name": "simulated"}
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
    client.create(f"{PODS}/{name}/binding", binding)
    wait_for(lambda: status(client, name)["phase"] != "Pending", f"{name} to start")


def status(client, name):
    return client.get(f"{PODS}/{name}")["status"]


def is_ready(client):
    node = client.get("/api/v1/nodes/simulated")
    conditions = {condition["type"]: condition["status"] for condition in node["status"].get("conditions", ())}
    return conditions.get("Ready") == "True" and not node["spec"].get("taints")


def test_nodes_become_ready_with_what_they_were_given(client):
    """A node is ready and untainted soon, with the resources and labels it was created with."""
    wait_for(lambda: is_ready(client), "the node to be ready")
    node = client.get("/api/v1/nodes/simulated")
    assert node["status"]["allocatable"] == {"cpu": "8", "memory": "8Gi", "nvidia.com/gpu": "4", "pods": "110"}
    assert node["metadata"]["labels"]["zone"] == "a"


def test_pods_run_end_and_go_as_their_annotations_say(client):
    """A pod ends by itself after its time, with its exit code, also if it was written meanwhile; and goes slowly."""
    start(client, "ends", run_seconds="2", exit_code="3")
    start(client, "stays", stop_seconds="2")
    start(client, "goes")
    client.patch(f"{PODS}/ends", {"metadata": {"annotations": {"a": "b"}}})
    assert status(client, "ends")["phase"] == "Running"
    client.delete(f"{PODS}/stays")
    client.delete(f"{PODS}/goes")
    wait_for(lambda: not client.exists(f"{PODS}/goes"), "the pod to go")
    assert client.exists(f"{PODS}/stays")
    wait_for(lambda: status(client, "ends")["phase"] == "Failed", "the pod to end")
    assert status(client, "ends")["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 3
    wait_for(lambda: not client.exists(f"{PODS}/stays"), "the slow pod to go")


def test_restarts_lose_nothing(plane, client):
    """After etcd and API server were killed and started again everything is there, and pods go on starting."""
    start(client, "before")
    plane.restart_etcd()
    plane.restart_apiserver()
    assert status(plane.client(), "before")["phase"] == "Running"
    start(plane.client(), "after")


def test_what_ends_by_itself_is_started_again_and_its_last_words_are_said(plane, client):
    """An API server that was killed from outside runs again after that, with what was there."""
    assert client.exists("/api/v1/nodes/simulated")
    assert plane.revive() == ""
    os.kill(plane.apiserver.pid, signal.SIGKILL)
    plane.apiserver.wait()
    said = plane.revive()
    assert said.startswith("kube-apiserver has ended by itself (-9):\n")
    assert len(said.splitlines()) > 5
    assert plane.client().get("/api/v1/nodes/simulated")["status"]["allocatable"]["cpu"] == "8"
    assert plane.revive() == ""


def test_by_hand_it_prints_its_kubeconfig_and_ends_with_its_process(programs):
    """The script prints the path of a kubeconfig that works; killed without warning it leaves no process behind."""
    assert programs == build.NEWEST.folder
    command = [sys.executable, "tools/controlplane/start.py", "--nodes", "1"]
    script = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        kubeconfig = Path(script.stdout.readline().strip())
        kubectl = [programs / "kubectl", f"--kubeconfig={kubeconfig}", "get", "nodes", "-o", "name"]
        assert subprocess.run(kubectl, capture_output=True, text=True, check=True).stdout == "node/node-0\n"
        children = _children(script.pid)
        assert len(children) == 4
        script.kill()
        script.wait()
        wait_for(lambda: not any(map(_is_running, children)), "the programs to end")
    finally:
        script.kill()
        script.stdout.close()


def test_ended_by_a_signal_it_leaves_nothing(programs, tmp_path):
    """Told to end, the script ends everything and removes what it wrote, unless it was given a folder to write to."""
    assert programs == build.NEWEST.folder
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    command = [sys.executable, "tools/controlplane/start.py"]
    script = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert script.stdout.readline()
    assert len(list(tmp_path.glob("tenure-control-plane-*"))) == 1
    children = _children(script.pid)
    script.send_signal(signal.SIGTERM)
    assert script.wait(120) == 0
    script.stdout.close()
    assert not any(map(_is_running, children))
    assert list(tmp_path.glob("tenure-control-plane-*")) == []


def test_it_listens_on_loopback_only(plane):
    """None of its programs listens on an address that others can reach."""
    pids = {p.pid for p in (plane.etcd, plane.apiserver, plane.controllers, plane.kwok)}
    inodes = {link for pid in pids for link in _sockets(pid)}
    tables = [Path(f"/proc/net/{name}").read_text().splitlines() for name in ("tcp", "tcp6")]
    listening = [line.split() for table in tables for line in table]
    own = [fields[1] for fields in listening if len(fields) > 9 and fields[3] == "0A" and fields[9] in inodes]
    assert len(own) >= 4
    assert {address.partition(":")[0] for address in own} == {"0100007F"}


def test_where_nothing_is_built_the_tests_are_skipped_with_a_word_why(tmp_path):
    """Without the programs a run says that it skips and what to do; where they are required it fails instead."""
    test = "tests/kubernetes/test_proxy.py::test_without_faults_it_is_not_noticed"
    command = [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", test]
    bare = {key: value for key, value in os.environ.items() if key != "TENURE_CONTROL_PLANE"}
    bare |= {"XDG_CACHE_HOME": str(tmp_path), "PATH": "/nowhere"}
    skipped = subprocess.run(command, cwd=ROOT, env=bare, capture_output=True, text=True, check=False)
    assert "make controlplane" in skipped.stdout
    assert skipped.stdout.startswith("s ")
    required = bare | {"TENURE_CONTROL_PLANE": "required"}
    failed = subprocess.run(command, cwd=ROOT, env=required, capture_output=True, text=True, check=False)
    assert failed.returncode == 1
    assert "there is no 'go' on the PATH" in failed.stdout


def test_the_client_tells_where_a_server_is_away():
    """A server that is not there is an error that says so, not a wait."""
    with pytest.raises(ConnectionRefusedError):
        Client("http://127.0.0.1:9", "token").get("/readyz")


def _children(pid):
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _is_running(pid):
    stat = Path(f"/proc/{pid}/stat")
    try:
        return stat.read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def _sockets(pid):
    for link in Path(f"/proc/{pid}/fd").iterdir():
        target = str(link.readlink())
        if target.startswith("socket:["):
            yield target[8:-1]


def test_the_client_uses_no_connection_that_the_server_may_have_closed_for_want_of_use():
    """A test that waits for long without a request would fail by the next one: the server closes what is idle."""
    connections = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            connections.append(self.client_address)
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"ok")

        def log_message(self, *_):
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        made = Client(f"http://127.0.0.1:{server.server_port}", "token")
        for idle in (0, 0, IDLE_SECONDS + 1, 0):
            made._used -= idle
            assert made.get("/") == "ok"
        made.close()
        server.shutdown()
    first, second, third, fourth = connections
    assert first == second != third == fourth


WIDGETS = "/apis/example.org/v1/namespaces/simulated/widgets"
MAPS = "/api/v1/namespaces/simulated/configmaps"
SETS = "/apis/apps/v1/namespaces/simulated/replicasets"


def definition():
    """A kind of a test's own."""
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    names = {"kind": "Widget", "plural": "widgets", "singular": "widget"}
    spec = {"group": "example.org", "scope": "Namespaced", "names": names, "versions": [version]}
    meta = {"name": "widgets.example.org"}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": meta, "spec": spec}


def replicas(count):
    """A set whose controller makes pods anew."""
    template = {"metadata": {"labels": {"app": "left"}}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
    spec = {"replicas": count, "selector": {"matchLabels": {"app": "left"}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "left"}, "spec": spec}


def test_whatever_is_left_is_taken_out_and_what_was_changed_is_put_back(plane, client, store):
    """New kinds and their objects, what a controller makes anew, what is kept by a finalizer; what went comes back."""
    client.create(MAPS, {"metadata": {"name": "stays"}, "data": {"said": "before"}})
    client.create(MAPS, {"metadata": {"name": "goes"}})
    store.keep()
    role = "/apis/rbac.authorization.k8s.io/v1/clusterroles/edit"
    rules = client.get(role)["rules"]
    client.patch(role, {"rules": []})
    client.patch(f"{MAPS}/stays", {"data": {"said": "after"}})
    client.delete(f"{MAPS}/goes")
    client.create(MAPS, {"metadata": {"name": "held", "finalizers": ["example.org/held"]}})
    client.delete(f"{MAPS}/held")
    plane.define(definition())
    client.create(WIDGETS, {"apiVersion": "example.org/v1", "kind": "Widget", "metadata": {"name": "left"}})
    client.create(SETS, replicas(3))
    plane.add_namespace("left")
    own = {"key": base64.b64encode(b"compact_rev_key").decode()}
    store._ask("put", {**own, "value": "MQ=="})
    wait_for(lambda: len(client.get(f"{PODS}?labelSelector=app%3Dleft")["items"]) == 3, "the pods of the set")
    store.put_back()
    assert not client.get(f"{PODS}?labelSelector=app%3Dleft")["items"]
    assert not client.get(SETS)["items"]
    assert {m["metadata"]["name"] for m in client.get(MAPS)["items"]} == {"stays", "goes", "kube-root-ca.crt"}
    assert client.get(f"{MAPS}/stays")["data"] == {"said": "before"}
    assert client.get(role)["rules"] == rules != []
    assert store._ask("range", own)["count"] == "1", "this is the API server's own, and it ends without"
    assert not client.exists("/api/v1/namespaces/left")
    wait_for(lambda: not client.exists(WIDGETS), "the kind to go")
    plane.define(definition())
    assert not client.get(WIDGETS)["items"]


def test_what_does_not_stay_as_it_was_is_named(client, store, monkeypatch):
    """Somebody makes an object anew whenever it is taken out."""
    store.keep()
    taken_out = store._change

    def made_anew(wrong):
        taken_out(wrong)
        client.create(MAPS, {"metadata": {"name": "restless"}})

    monkeypatch.setattr(store, "_change", made_anew)
    client.create(MAPS, {"metadata": {"name": "restless"}})
    with pytest.raises(LeftError, match="/registry/configmaps/simulated/restless"):
        store.put_back(seconds=1)
    monkeypatch.undo()
    store.put_back()
    assert not client.exists(f"{MAPS}/restless")
