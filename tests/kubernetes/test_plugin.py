"""``kubectl tenure``: the real kubectl finds the plugin, runs it on a real control plane, and completes its words."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.doorway import Doorway
from tests.kubernetes.running import TENURE, queue

from tenure.cli.input import live_cluster
from tenure.cli.plugin import SUMMARIES

BIN = Path(sys.executable).parent
QUEUES = f"{TENURE}/queues"


@pytest.fixture(scope="module")
def peopled(plane):
    """Give the control plane with a queue and two pods that wait in it."""
    client = plane.client()
    plane.add_namespace("plugin-team")
    client.create(QUEUES, queue("plugin-queue", max={"cpu": 1}))
    for name in ("one", "two"):
        spec = {"schedulerName": "tenure", "containers": [{"name": "c", "image": "x"}]}
        labels = {"tenure.dev/queue": "plugin-queue"}
        spec["containers"][0]["resources"] = {"requests": {"cpu": "4"}}
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels}, "spec": spec}
        client.create("/api/v1/namespaces/plugin-team/pods", body)
    return plane


def kubectl_with(folder, plane):
    """Give a function that runs kubectl with the programs of a folder on its PATH and no other plugin."""
    environment = {**os.environ, "PATH": f"{folder}:/usr/bin:/bin", "KUBECONFIG": str(plane.kubeconfig)}

    def run(*arguments, code=0):
        command = [str(plane.release / "kubectl"), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        assert done.returncode == code, done.stderr
        return done.stdout if code == 0 else done.stderr

    return run


@pytest.fixture(scope="module")
def kubectl(peopled, tmp_path_factory):
    """Give a function that runs kubectl with a plugin that need not be loaded first."""
    folder = tmp_path_factory.mktemp("plugin")
    with Doorway(folder, "kubectl-tenure", "tenure.cli.plugin"):
        yield kubectl_with(folder, peopled)


@pytest.fixture
def kubectl_and_installed(peopled, tmp_path):
    """Give a function that runs kubectl with the plugin as it was installed."""
    for name in ("kubectl-tenure", "kubectl_complete-tenure"):
        (tmp_path / name).symlink_to(BIN / name)
    return kubectl_with(tmp_path, peopled)


def test_kubectl_lists_it(kubectl_and_installed):
    assert "kubectl-tenure" in kubectl_and_installed("plugin", "list")


def test_tables_and_reasons_are_of_the_cluster_that_kubectl_has(kubectl):
    """Queues, workloads, one namespace's alone, an explanation by ``-n`` and by its full name, and a plan."""
    assert "plugin-queue" in {row["queue"] for row in json.loads(kubectl("tenure", "queues", "--format=json"))}
    rows = json.loads(kubectl("tenure", "workloads", "-n", "plugin-team", "--format=json"))
    assert {row["workload"] for row in rows} == {"plugin-team/one", "plugin-team/two"}
    assert json.loads(kubectl("tenure", "workloads", "-n", "nowhere", "--format=json")) == []
    told = kubectl("tenure", "explain", "one", "-n", "plugin-team")
    assert "plugin-queue" in told
    again = kubectl("tenure", "explain", "plugin-team/one")
    assert told.splitlines()[0].rpartition(" for ")[0] == again.splitlines()[0].rpartition(" for ")[0]
    assert "plugin-team/one" in kubectl("tenure", "plan", "--format=json")


def test_pausing_goes_through(kubectl):
    assert "no evictions in pool default until" in kubectl("tenure", "pause", "--for", "1h", "--reason", "test")
    assert "go on" in kubectl("tenure", "pause", "--end")


def test_history_is_read_by_report_and_story(kubectl, tmp_path, run_command):
    """What a history holds is told; its address is given as to ``tenure``."""
    at = tmp_path / "history.db"
    code, _, said = run_command("plan", "examples/cluster.yaml", "--history", at)
    assert code == 0, said
    assert "GPU" in kubectl("tenure", "report", "--history", str(at)).upper()
    assert "submitted to vision" in kubectl("tenure", "story", "train-large", "--history", str(at), "-n", "default")


def test_usage_is_told_in_the_plugin_s_name(kubectl_and_installed):
    assert "kubectl tenure explain: -n a and b/c both name a namespace" in kubectl_and_installed(
        "tenure", "explain", "-n", "a", "b/c", code=2
    )
    assert "kubectl tenure: there is no command 'expain'" in kubectl_and_installed("tenure", "expain", code=2)


def test_kubectl_completes_commands_and_options(kubectl_and_installed):
    """Commands with what they do, and options, as ``kubectl`` asks a plugin for them; file names are not offered."""
    *lines, directive = kubectl_and_installed("__complete", "tenure", "").splitlines()
    assert dict(line.split("\t") for line in lines) == SUMMARIES
    assert directive == ":4"
    assert "--namespace\tThe namespace of what is asked about." in kubectl_and_installed(
        "__complete", "tenure", "explain", "--n"
    )


def test_who_may_not_look_is_told_at_once(kubectl, peopled, run_command, monkeypatch):
    """A tenant may not list what decisions need: it hears which rights that takes, however long is waited for lists."""
    peopled.kubectl("-n", "plugin-team", "create", "serviceaccount", "tenant")
    peopled.kubectl("-n", "plugin-team", "create", "rolebinding", "tenant", "--clusterrole=edit",
                    "--serviceaccount=plugin-team:tenant")  # fmt: skip
    account = peopled.kubeconfig_for(peopled.token_of("tenant", "plugin-team"), "tenant")
    told = kubectl("tenure", "queues", f"--kubeconfig={account}", code=3)
    assert "403 nodes is forbidden" in told
    assert "takes the rights" in told
    monkeypatch.setattr(live_cluster, "SYNC_SECONDS", float("inf"))
    code, _, said = run_command("queues", "--kubeconfig", account)
    assert (code, "403 nodes is forbidden" in said) == (3, True)
