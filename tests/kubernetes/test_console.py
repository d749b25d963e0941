"""The console on a real control plane: with the rights that are installed, and by those of whoever looks."""

from __future__ import annotations

import asyncio
import re
import signal
import subprocess
import threading
import time
from contextlib import contextmanager, suppress

import pytest
import urllib3
import yaml
from tests import preloaded
from tools.controlplane.client import ApiError
from tools.controlplane.process import wait_for

from tenure.clusters.kubernetes.client.access import find_access
from tenure.clusters.kubernetes.client.requests import Client
from tenure.web.access.rights import Rights

CONSOLE = "system:serviceaccount:tenure-system:tenure-console"


def tenure(*arguments):
    return preloaded.run(arguments, check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL).stdout


def pod(name, namespace, node=None):
    spec = {
        "schedulerName": "tenure",
        "containers": [{"name": "c", "image": "x", "resources": {"requests": {"cpu": "1"}}}],
    }
    if node is not None:
        spec["nodeName"] = node
    labels = {"tenure.dev/queue": f"queue-{namespace}"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels}, "spec": spec}


@pytest.fixture(scope="module")
def installed(plane):
    """Give the control plane with two teams, a tenant of one of them, somebody without rights, and the console."""
    plane.kubectl("apply", "--validate=strict", "-f", "-", given=tenure("install", "--console", "--image=tenure:test"))
    client = plane.client()
    plane.add_node("node-0", {"cpu": "8", "memory": "32Gi"})
    for team in ("red", "blue"):
        plane.add_namespace(team)
        queue = {
            "apiVersion": "tenure.dev/v1alpha1",
            "kind": "Queue",
            "metadata": {"name": f"queue-{team}"},
            "spec": {},
        }
        client.create("/apis/tenure.dev/v1alpha1/queues", queue)
        client.create(f"/api/v1/namespaces/{team}/pods", pod(f"{team}-runs", team, "node-0"))
        client.create(f"/api/v1/namespaces/{team}/pods", pod(f"{team}-waits", team))
    view = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}
    for name in ("tenant", "nobody"):
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}
        client.create("/api/v1/namespaces/red/serviceaccounts", account)
    subject = {"kind": "ServiceAccount", "name": "tenant", "namespace": "red"}
    binding = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "tenant"},
               "roleRef": view, "subjects": [subject]}  # fmt: skip
    client.create("/apis/rbac.authorization.k8s.io/v1/namespaces/red/rolebindings", binding)
    return plane


@contextmanager
def console(plane, *options):
    """Run the command with the rights that were installed; gives its port and a way to ask it."""
    kubeconfig = plane.kubeconfig_for(plane.token_of("tenure-console", "tenure-system"), "console")
    words = ["console", "--live", f"--kubeconfig={kubeconfig}", "--port=0", *options]
    process = preloaded.start(words, stdout=subprocess.PIPE, text=True)
    try:
        line = process.stdout.readline()
        address = re.fullmatch(r"listening on (http://\S+:\d+)\n", line)
        assert address, line
        pool = urllib3.PoolManager(retries=False)
        root = address[1].replace("0.0.0.0", "127.0.0.1")

        def ask(path, token=None, method="GET", **more):
            headers = {**({"Authorization": f"Bearer {token}"} if token else {}), **more.pop("headers", {})}
            return pool.request(method, root + path, headers=headers, redirect=False, timeout=60, **more)

        ask.root = root
        yield ask
    finally:
        process.terminate()
        assert process.wait(20) == 0


@pytest.fixture(scope="module")
def ask(installed):
    with console(installed, "--host=0.0.0.0") as found:
        yield found


def names(answer):
    assert answer.status == 200, answer.data
    return {one["workload"] for one in answer.json()["workloads"]}


def test_everybody_has_to_say_who_they_are(ask):
    assert ask("/api/v1/overview").status == 401
    assert ask("/api/v1/overview", "not a token").status == 401
    assert ask("/changes").status == 401
    page = ask("/")
    assert (page.status, page.headers["location"]) == (303, "/login")
    assert ask("/login").status == 200
    assert ask("/healthz").status == 200


def test_a_tenant_sees_their_namespaces_and_of_others_sums_by_queue(ask, installed):
    tenant = installed.token_of("tenant", "red")
    assert names(ask("/api/v1/workloads", tenant)) == {"red/red-runs", "red/red-waits"}
    for path in ("/", "/queues", "/workloads", "/nodes", "/evictions", "/timeline", "/whatif"):
        page = ask(path, tenant)
        assert page.status == 200
        assert not re.search(rb"blue-(runs|waits)|node-0", page.data), path
    assert ask("/workloads/blue/blue-runs", tenant).status == 404
    queues = {one["name"]: one for one in ask("/api/v1/queues", tenant).json()["queues"]}
    assert queues["queue-blue"]["allocated"]["cpu"] == 1000


def test_who_may_nothing_sees_sums_and_no_names(ask, installed):
    nobody = installed.token_of("nobody", "red")
    assert names(ask("/api/v1/workloads", nobody)) == set()
    assert ask("/api/v1/nodes", nobody).json()["nodes"] == []
    assert ask("/api/v1/queues", nobody).status == 200


def test_who_may_list_everything_sees_everything(ask, installed):
    token = installed.token_of("tenure", "tenure-system")
    assert {"red/red-runs", "blue/blue-waits"} <= names(ask("/api/v1/workloads", token))
    assert [one["name"] for one in ask("/api/v1/nodes", token).json()["nodes"]] == ["node-0"]


def test_a_session_is_begun_by_a_token_and_ended_by_logging_out(ask, installed):
    token = installed.token_of("tenant", "red")
    assert ask("/login", method="POST", fields={"token": "wrong"}, encode_multipart=False).status == 401
    answer = ask("/login", method="POST", fields={"token": token}, encode_multipart=False)
    assert answer.status == 303
    cookie = answer.headers["set-cookie"]
    assert "httponly" in cookie.lower()
    assert "samesite=strict" in cookie.lower()
    assert "secure" not in cookie.lower()
    by_tls = {"x-forwarded-proto": "https"}
    answer = ask("/login", method="POST", fields={"token": token}, encode_multipart=False, headers=by_tls)
    assert "secure" in answer.headers["set-cookie"].lower()  # an Ingress speaks TLS with the browser
    session = {"cookie": cookie.partition(";")[0]}
    assert names(ask("/api/v1/workloads", headers=session)) == {"red/red-runs", "red/red-waits"}
    elsewhere = {**session, "origin": "https://evil.example"}
    assert ask("/logout", method="POST", headers=elsewhere).status == 403
    assert ask("/logout", method="POST", headers=session).status == 303
    assert ask("/api/v1/workloads", headers=session).status == 401


def test_a_change_in_the_cluster_is_told_and_shown(ask, installed):
    token = installed.token_of("tenure", "tenure-system")
    stream = ask("/changes", token, preload_content=False)
    lines = stream.stream(1024)
    assert b"event: version" in next(lines)
    installed.client().create("/api/v1/namespaces/red/pods", pod("red-new", "red"))
    assert any(b"event: change" in line for line in lines)
    stream.close()
    wait_for(lambda: "red/red-new" in names(ask("/api/v1/workloads", token)), "the new pod to be shown", seconds=30)


def test_a_right_in_the_last_of_many_namespaces_is_found(installed, record_property):
    """By the console's own rights, of the API server itself."""
    client = Client(
        find_access(str(installed.kubeconfig_for(installed.token_of("tenure-console", "tenure-system"), "many")))
    )
    there = {f"a-{number:04}" for number in range(1500)} | {"red"}
    user = {"username": "system:serviceaccount:red:tenant",
            "groups": ["system:serviceaccounts", "system:serviceaccounts:red", "system:authenticated"]}  # fmt: skip
    began = time.monotonic()
    viewer = asyncio.run(Rights(client, lambda: there).viewer(user))
    record_property("seconds", time.monotonic() - began)
    assert (viewer.namespaces, viewer.nodes) == ({"red"}, False)


def test_that_nobody_leads_is_said(ask, installed):
    token = installed.token_of("tenure", "tenure-system")
    found = ask("/api/v1/overview", token).json()["alerts"]
    assert any("no scheduler leads" in one["message"] for one in found)


def test_on_loopback_it_shows_what_its_own_credentials_see(installed):
    with console(installed) as asked:
        assert {"red/red-runs", "blue/blue-waits"} <= names(asked("/api/v1/workloads"))
        assert asked("/api/v1/overview", headers={"host": "evil.example"}).status == 403


def test_its_rights_are_enough_and_change_nothing(installed, ask):
    """What the audit log says that it did was allowed, and was reading and asking for reviews alone."""
    assert ask("/healthz").status == 200
    done = list(installed.audit(CONSOLE))
    assert done
    written = {(e["verb"], e["objectRef"]["resource"]) for e in done if e["verb"] not in ("get", "list", "watch")}
    assert written <= {("create", "tokenreviews"), ("create", "subjectaccessreviews")}
    account = installed.client(installed.token_of("tenure-console", "tenure-system"))
    for path, body in (
        ("/api/v1/namespaces/red/pods", pod("no", "red")),
        ("/api/v1/namespaces/red/pods/red-runs/eviction", {"apiVersion": "policy/v1", "kind": "Eviction"}),
    ):
        with pytest.raises(ApiError):
            account.create(path, body)


def test_the_objects_are_as_the_api_server_would_have_them(installed):
    text = tenure("install", "--console", "--console-host=console.example", "--image=tenure:test")
    installed.kubectl("apply", "--validate=strict", "-f", "-", given=text)
    assert installed.kubectl("diff", "-f", "-", given=text) == ""
    made = next(o for o in yaml.load_all(text, yaml.CSafeLoader)
                if (o["kind"], o["metadata"]["name"]) == ("Deployment", "tenure-console"))  # fmt: skip
    assert "--allow-host=console.example" in made["spec"]["template"]["spec"]["containers"][0]["args"]


def test_a_server_that_falls_silent_holds_up_no_end(installed):
    """Whoever logs in waits for the API server; a console that is to end does not."""
    token = installed.token_of("tenant", "red")
    try:
        with console(installed, "--host=0.0.0.0") as ask:
            installed.apiserver.signal(signal.SIGSTOP)
            logging_in = threading.Thread(target=logged_in, args=(ask, token), daemon=True)
            logging_in.start()
            time.sleep(0.2)  # the request is on its way; whatever comes first, it ends
            assert ask("/healthz").status == 200
    finally:
        installed.apiserver.signal(signal.SIGCONT)
    logging_in.join(60)
    assert not logging_in.is_alive()


def logged_in(ask, token):
    with suppress(urllib3.exceptions.HTTPError):
        ask("/login", method="POST", fields={"token": token}, encode_multipart=False)
