"""The scheduler as a process of its own on a control plane, and objects to give it."""

from __future__ import annotations

import json
import os
import signal
import time
import urllib.request
from contextlib import contextmanager, suppress
from functools import partial

from tests import preloaded
from tests.kubernetes.stage import wait_until
from tools.controlplane.awaited import forget

from tenure.clusters.kubernetes.install.installation import Installation
from tenure.clusters.kubernetes.read import eviction_log

TENURE = "/apis/tenure.dev/v1alpha1"
SETS = "/apis/apps/v1/namespaces/default/replicasets"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
PODS = "/api/v1/namespaces/default/pods"

MEASURING = Installation(image="tenure:test", config={"rescheduler": {"hotNodes": {"enabled": True}}})
"""An installation that may ask what is really in use."""


def launched(words, **options):
    """Start a command of Tenure's; a test may put another way to start one in its place."""
    return preloaded.start(words, **options)


def tenure(*arguments, kubeconfig):
    """Run a command of Tenure's on a cluster."""
    return preloaded.run([*arguments, "--kubeconfig", kubeconfig], capture_output=True, text=True, timeout=120)


LAST_LINES = 40
"""Lines of its log that are told of a scheduler when a test fails."""


class Scheduler:
    """A running scheduler."""

    def __init__(self, kubeconfig, folder, name="one", *options):
        self.log = folder / f"{name}.log"
        self.options = ["scheduler", "--listen", "127.0.0.1:0", "--kubeconfig", str(kubeconfig), *options]
        self.environment = {**os.environ, "POD_NAME": name, "POD_NAMESPACE": "tenure-system"}
        self.process = None

    def start(self):
        """Start it, and wait until it says where it listens."""
        with self.log.open("ab") as log:
            self.process = self.launch(log)
        wait_until(lambda: self.port() or self.process.poll() is not None, "it does not start", 60)
        assert self.process.poll() is None, self.log.read_text()
        return self

    def launch(self, log):
        """Start its process, which logs into an open file."""
        return launched(self.options, stderr=log, env=self.environment)

    def lines(self):
        """Give what it has logged."""
        found = []
        for line in self.log.read_text().splitlines():
            with suppress(ValueError):
                found.append(json.loads(line))
        return found

    def port(self):
        """Give the port of its probes."""
        ports = [line["port"] for line in self.lines() if line.get("message") == "scheduler starts"]
        return ports[-1] if ports else None

    def page(self, path):
        """Give a page that it serves."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port()}{path}", timeout=10) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def leads(self):
        """Whether it says that it leads."""
        return self.page("/readyz") == (200, "leads\n")

    def last_words(self):
        """Give the last that it logged, and what its threads are at."""
        logged = self.log.read_bytes()
        if self.process.poll() is not None:
            return f"it has ended ({self.process.returncode}):\n{logged.decode(errors='replace')[-4000:]}"
        self.process.send_signal(signal.SIGUSR2)
        time.sleep(1)
        last = b"\n".join(logged.splitlines()[-LAST_LINES:])
        return (last + b"\n" + self.log.read_bytes()[len(logged) :]).decode(errors="replace")

    def stop(self, number=signal.SIGTERM):
        """End it, and give for how many seconds that took."""
        began = time.monotonic()
        self.process.send_signal(number)
        self.process.wait(30)
        return time.monotonic() - began


@contextmanager
def running(kubeconfig, folder, name="one", *options):
    """Run a scheduler while something is tried."""
    scheduler = Scheduler(kubeconfig, folder, name, *options).start()
    try:
        yield scheduler
    except AssertionError as failed:
        failed.add_note(f"the scheduler {name}:\n{scheduler.last_words()}")
        raise
    finally:
        if scheduler.process.poll() is None:
            scheduler.process.kill()
            scheduler.process.wait(10)


def pod_template(name, queue, amount, resource="nvidia.com/gpu", **annotations):
    """Give the template of pods that ask for GPUs, or for something else that is counted, in a queue."""
    limits = {"limits": {resource: str(amount)}, "requests": {"cpu": "1"}}
    return {
        "metadata": {"labels": {"tenure.dev/queue": queue, "app": name}, "annotations": annotations},
        "spec": {
            "schedulerName": "tenure",
            "containers": [{"name": "main", "image": "none", "resources": limits}],
        },
    }


def job(name, queue, pods, *, gpu=1):
    """Give a Job, whose pods start together."""
    template = pod_template(name, queue, gpu)
    template["spec"]["restartPolicy"] = "Never"
    meta = {"name": name, "labels": {"tenure.dev/queue": queue}}
    spec = {"parallelism": pods, "completions": pods, "template": template}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": spec}


def gang(name, queue, pods, *, gpu=1, resource="nvidia.com/gpu", **annotations):
    """Give a ReplicaSet whose pods start together; those that go come back at once."""
    template = pod_template(name, queue, gpu, resource, **{"tenure.dev/min-member": str(pods), **annotations})
    spec = {"replicas": pods, "selector": {"matchLabels": {"app": name}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": name}, "spec": spec}


def queue(name, **spec):
    """Give a queue."""
    return {"apiVersion": "tenure.dev/v1alpha1", "kind": "Queue", "metadata": {"name": name}, "spec": spec}


def pods_of(client, name):
    """Give the pods of a Job or gang, those that terminate or have failed left out."""
    found = client.get(f"{PODS}?labelSelector=app%3D{name}")["items"]
    return [p for p in found if not p["metadata"].get("deletionTimestamp") and p["status"].get("phase") != "Failed"]


def bound(client, name):
    """Give how many pods of a Job or gang are bound."""
    return sum(bool(p["spec"].get("nodeName")) for p in pods_of(client, name))


def all_pods(client):
    """Give of each pod its node and phase, since when it terminates, and why it waits: for messages."""
    found = []
    for pod in client.get(PODS)["items"]:
        meta, status = pod["metadata"], pod["status"]
        why = [c.get("message", "") for c in status.get("conditions", ()) if c["status"] == "False"]
        leaves = meta.get("deletionTimestamp")
        found.append((meta["name"], pod["spec"].get("nodeName"), status.get("phase"), leaves, why))
    return found


def log_of(client):
    """Give the log of evictions."""
    path = "/api/v1/namespaces/tenure-system/configmaps"
    pages = [m for m in client.get(path)["items"] if m["metadata"]["name"].startswith("tenure-evictions-")]
    return [entry for page in pages for entry in eviction_log.parse(page["data"].get(eviction_log.DATA, ""))[0]]


def clear(client):
    """Delete all Jobs, gangs, pods, queues and nodes, and have the controllers forget these Jobs."""
    seen = [f"default/{item['metadata']['name']}" for item in client.get(JOBS)["items"] if item.get("status")]
    own = [f"{TENURE}/{plural}" for plural in ("queues", "nodepools", "disruptionbudgets")]
    for path in (JOBS, SETS, PODS, *own, "/api/v1/nodes", "/api/v1/namespaces/tenure-system/configmaps"):
        for item in client.get(path)["items"]:
            if item["metadata"]["name"] != "kube-root-ca.crt":
                with suppress(Exception):
                    body = {"gracePeriodSeconds": 0, "propagationPolicy": "Background"}
                    client.delete(f"{path}/{item['metadata']['name']}", body)
    wait_until(lambda: not client.get(PODS)["items"], "pods do not go", 30)
    forget(client, seen, partial(_delete, client))


def _delete(client, paths):
    for path in paths:
        client.delete(path, {"propagationPolicy": "Background"})
    wait_until(lambda: not any(map(client.exists, paths)), f"{paths} do not go")
