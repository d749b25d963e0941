"""kube-scheduler as the referee: on which nodes it would place a pod, and on which Tenure would.

An extender is kube-scheduler's own way to hand out the nodes that have passed all of its filters. The one here notes
them and then refuses them all: nothing is bound, so a state stays as it is, and hundreds of states stand side by side.
Tenure reads the same objects by its own watches.

    python -m tests.kubernetes.referee --states 2000 --seed 1
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import msgspec
import yaml
from tests.kubernetes.referee_cases import HOST, NAMESPACES, STATE, make_state
from tools.controlplane.plane import ControlPlane, Options

from tenure.clusters.kubernetes.cache.informers import InformerCache
from tenure.clusters.kubernetes.cache.informers import Options as InformerOptions
from tenure.clusters.kubernetes.client.access import find_access
from tenure.clusters.kubernetes.client.requests import STRATEGIC, ApiError, Client
from tenure.clusters.kubernetes.read.observe import Observer
from tenure.engine.snapshot import session_of

BATCH = 100
"""States that stand in the cluster at a time."""

TAINTING = "TaintNodesByCondition"
"""What says of each new node that it is not ready; a node here has its taints and no others."""

WAIT = 120.0


class Extender:
    """Notes by pod the nodes that passed kube-scheduler's filters, and refuses them all."""

    def __init__(self):
        self.seen = {}
        seen = self.seen

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                seen[asked["Pod"]["metadata"]["name"]] = frozenset(asked.get("NodeNames") or ())
                body = json.dumps({"NodeNames": [], "FailedNodes": {}}).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    def stop(self):
        self.server.shutdown()
        self.server.server_close()


class Referee:
    """A control plane with kube-scheduler, and Tenure's watches on it."""

    def __init__(self, folder):
        self.plane = ControlPlane(folder, Options(controllers=False, nodes=False))
        self.plane.apiserver.command.append(f"--disable-admission-plugins={TAINTING}")
        self.extender = Extender()
        self.pool = ThreadPoolExecutor(12)
        self.tally = Counter()

    def __enter__(self):
        self.plane.start()
        self.client = Client(find_access(str(self.plane.kubeconfig)), connections=16, timeout=60.0)
        for name, labels in {**NAMESPACES, "tenure-system": {}}.items():
            self.client.create("/api/v1/namespaces", {"metadata": {"name": name, "labels": labels}})
            account = {"metadata": {"name": "default"}}
            self.client.create(f"/api/v1/namespaces/{name}/serviceaccounts", account)
        self._start_scheduler()
        options = InformerOptions(schedulers=frozenset({"default-scheduler"}))
        self.informers = InformerCache(self.client, options)
        self.informers.start()
        assert self.informers.wait_synced(30.0), self.informers.troubles
        self.observer = Observer(self.informers)
        return self

    def __exit__(self, *_):
        self.informers.stop()
        self.plane.scheduler.kill()
        self.plane.stop()
        self.extender.stop()
        self.pool.shutdown(cancel_futures=True)

    def _start_scheduler(self):
        path = self.plane.folder / "kube-scheduler.yaml"
        config = yaml.safe_load(path.read_text())
        config["percentageOfNodesToScore"] = 100
        config["podMaxBackoffSeconds"] = 1
        config["extenders"] = [
            {"urlPrefix": self.extender.url, "filterVerb": "filter", "nodeCacheCapable": True, "httpTimeout": "30s"}
        ]
        path.write_text(yaml.safe_dump(config))
        self.plane.scheduler.start()

    def judge(self, seed, numbers, *, has_devices=False):
        """Give by state where the two differ: the state, kube-scheduler's nodes, and Tenure's."""
        states = [make_state(seed, number, has_devices=has_devices) for number in numbers]
        self.extender.seen.clear()
        self._create(states)
        referee = self._decided(states)
        tenure = self._admitted(states, referee)
        self.clear()
        self._count(states, referee)
        for name in self.given_up & referee.keys():
            del referee[name]
        return [
            (state, referee[state.name], tenure[state.name])
            for state in states
            if state.name in referee and referee[state.name] != tenure[state.name]
        ], len(referee)

    def _count(self, states, referee):
        """Count how much the states have told: nodes that kube-scheduler admits and refuses, what was not created."""
        for state in states:
            if state.name in referee:
                inside = sum(map(_is_inside, state.nodes))
                self.tally["admitted"] += len(referee[state.name])
                self.tally["refused"] += inside - len(referee[state.name])
                self.tally["states with both"] += 0 < len(referee[state.name]) < inside
        for why in self.refused.values():
            self.tally["not created: " + why[:160]] += 1
        self.tally["slices and classes not created"] += len(self.unmade)

    def _create(self, states):
        nodes = [node for state in states for node in state.nodes]
        list(self.pool.map(self.add_node, nodes))
        claims = [item for state in states for item in state.claims]
        list(self.pool.map(self._add_claim, claims))
        for is_claim in (False, True):
            listed = [
                item for state in states for item in state.storage if item[0].endswith("volumeclaims") is is_claim
            ]
            list(self.pool.map(self._add_storage, listed))
        self.unmade = {}
        for is_claim in (False, True):
            devices = [item for state in states for item in state.devices]
            listed = [item for item in devices if item[0].endswith("claims") is is_claim]
            list(self.pool.map(self._add_device_object, listed))
        standing = [item for state in states for item in state.standing]
        list(self.pool.map(self._add_standing, standing))
        last = {"metadata": {"name": "last", "labels": {STATE: "last", HOST: "last"}}}
        amounts = {"cpu": "1", "pods": "9"}
        last["status"] = {"allocatable": amounts, "conditions": [{"type": "Ready", "status": "True"}]}
        last["spec"] = {"taints": []}
        self.add_node(last)
        spec = {"nodeSelector": {STATE: "last"}, "containers": [{"name": "c", "image": "none"}]}
        sentinel = {"metadata": {"name": "last", "namespace": "ref-a"}, "spec": spec}
        self._add_pod(sentinel)
        self._until(lambda: self.extender.seen.get("last") == {"last"}, "kube-scheduler does not see the last node")
        self.refused = dict(pair for pair in self.pool.map(lambda s: (s.name, self._try(s.waiting)), states) if pair[1])
        for state in states:
            claims = (body["metadata"]["name"] for path, body, _ in state.devices if path.endswith("claims"))
            self.refused.update((state.name, self.unmade[name]) for name in claims if name in self.unmade)

    def add_node(self, node):
        """Create a node, with its taints and no others."""
        self.client.create("/api/v1/nodes", node)

    def _add_claim(self, item):
        """Create a claim and its volume, as they are once the controller of volumes has bound them."""
        claim, volume = item["claim"], item["volume"]
        path = f"/api/v1/namespaces/{claim['metadata']['namespace']}/persistentvolumeclaims"
        uid = msgspec.json.decode(self.client.create(path, claim))["metadata"]["uid"]
        one = f"{path}/{claim['metadata']['name']}"
        self.client.patch(f"{one}/status", {"status": {"phase": item["phase"]}}, STRATEGIC)
        if volume is not None:
            volume["spec"]["claimRef"]["uid"] = uid
            self.client.create("/api/v1/persistentvolumes", volume)
        if item["goes"]:
            self.client.delete(one)

    def _add_storage(self, item):
        """Create an object of storage, in the phase that a controller would give it."""
        path, body, phase = item
        self.client.create(path, body)
        if phase is not None:
            self.client.patch(f"{path}/{body['metadata']['name']}/status", {"status": {"phase": phase}}, STRATEGIC)

    def _add_device_object(self, item):
        """Create a slice, a class or a claim, with the devices that it has."""
        path, body, status = item
        try:
            self.client.create(path, body)
            if status is not None:
                self.client.patch(f"{path}/{body['metadata']['name']}/status", {"status": status})
        except ApiError as error:
            if error.status not in (400, 403, 422):
                raise
            self.unmade[body["metadata"]["name"]] = str(error)

    def _add_pod(self, pod):
        self.client.create(f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods", pod)

    def _try(self, pod):
        """Create a pod; gives what the API server has against it."""
        try:
            self._add_pod(pod)
        except ApiError as error:
            if error.status not in (400, 403, 422):
                raise
            return str(error)
        return ""

    def _add_standing(self, item):
        pod = item["pod"]
        if self._try(pod):
            return
        path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"
        self.client.patch(f"{path}/status", {"status": item["status"]}, STRATEGIC)
        if item["goes"]:
            self.client.delete(path)

    def _decided(self, states):
        """Give by state the nodes that kube-scheduler admits, in the pool that Tenure decides about."""
        asked = {s.waiting["metadata"]["name"]: s for s in states if s.name not in self.refused}
        undecided = lambda: f"undecided: {self._undecided(asked)[:5]}"  # noqa: E731
        self._until(lambda: self._undecided(asked) == [], undecided, 0.3)  # that lists all pods that wait
        self.given_up = {asked[name].name for name in self._failed(asked)}
        self.tally["kube-scheduler gave up with an error"] += len(self.given_up)
        inside = {n["metadata"]["name"] for s in states for n in s.nodes if _is_inside(n)}
        return {state.name: self.extender.seen.get(pod, frozenset()) & inside for pod, state in asked.items()}

    def _failed(self, asked):
        """Give the pods about which kube-scheduler could not decide: it places them nowhere while that lasts."""
        for name in NAMESPACES:
            answer = self.client.get(f"/api/v1/namespaces/{name}/pods", fieldSelector="spec.nodeName=")
            for pod in msgspec.json.decode(answer)["items"]:
                told = pod["status"].get("conditions", ())
                if pod["metadata"]["name"] in asked and any(c.get("reason") == "SchedulerError" for c in told):
                    yield pod["metadata"]["name"]

    def _undecided(self, asked):
        found = []
        for name in NAMESPACES:
            answer = self.client.get(f"/api/v1/namespaces/{name}/pods", fieldSelector="spec.nodeName=")
            for pod in msgspec.json.decode(answer)["items"]:
                known = pod["metadata"]["name"]
                told = any(c["type"] == "PodScheduled" for c in pod["status"].get("conditions", ()))
                if known in asked and not told:
                    found.append(known)
        return found

    def _admitted(self, states, referee):
        """Give by state the nodes on which Tenure would place the pod that waits."""
        wanted = {
            (s.waiting["metadata"]["namespace"], s.waiting["metadata"]["name"]) for s in states if s.name in referee
        }
        known = self.informers.pods.records
        self._until(lambda: wanted <= known.keys(), "Tenure does not see all pods")
        self._until(lambda: "last" in self.informers.nodes.nodes, "Tenure does not see all nodes")
        self._until(
            lambda: all(self._sees(item) for s in states for item in s.devices), "Tenure does not see all devices"
        )
        observed = self.observer.observe(time.time_ns() // 1000)
        session = session_of(observed.cluster)
        while session.terms.devices.room.begin_anew():
            pass  # all claims are of one namespace: what its selectors may not be asked in one cycle is in the next
        found = {}
        for state in states:
            meta = state.waiting["metadata"]
            workload = session.workloads.get(f"{meta['namespace']}/{meta['name']}")
            found[state.name] = frozenset() if workload is None else _nodes_for(session, workload.tasks[0])
        return found

    def _sees(self, item):
        """Whether Tenure sees a slice, a class or a claim as it was made, as far as it could be."""
        path, body, status = item
        name = body["metadata"]["name"]
        namespace = path.split("/namespaces/")[1].split("/")[0] if "/namespaces/" in path else ""
        known = self.informers.objects[path.rsplit("/", 1)[1]].items.get((namespace, name))
        return name in self.unmade or (known is not None and (status is None or bool(known.status)))

    def clear(self):
        """Let no pod and no node be left."""
        for name in NAMESPACES:
            self.client.delete(f"/api/v1/namespaces/{name}/pods", {"gracePeriodSeconds": 0})
        self.client.delete("/api/v1/nodes")
        self._until(lambda: not self.informers.nodes.nodes and not self.informers.pods.records, "not all is gone")

    @staticmethod
    def _until(holds, what, every=0.05):
        until = time.monotonic() + WAIT
        while not holds():
            assert time.monotonic() < until, what() if callable(what) else what
            time.sleep(every)


def _is_inside(node):
    return node["metadata"]["labels"].get("tenure.dev/node-pool", "default") == "default"


def _nodes_for(session, task):
    mask = session.scorer.fits(task.cls, slice(None))[0]
    if task.terms is not None:
        mask = mask & session.terms.admission.masks(task.terms)[0]
    return frozenset(session.nodes.names[i] for i in mask.nonzero()[0])


@contextmanager
def refereeing(folder):
    """Run a control plane with kube-scheduler while states are judged."""
    with Referee(Path(folder)) as referee:
        yield referee


def judge_all(referee, seed, count, told=lambda _: None, *, has_devices=False):
    """Judge so many states in batches; gives what differs, and how many were judged (the API server refuses some)."""
    found, judged = [], 0
    for first in range(0, count, BATCH):
        differ, many = referee.judge(seed, range(first, min(first + BATCH, count)), has_devices=has_devices)
        found += differ
        judged += many
        for difference in differ:
            told(describe(difference))
        told(f"{judged} judged, {len(found)} differ")
    return found, judged


def describe(difference):
    """Say what differs, with the objects that it takes to see it again."""
    state, theirs, ours = difference
    said = {
        "state": state.number,
        "only kube-scheduler": sorted(theirs - ours),
        "only Tenure": sorted(ours - theirs),
        "nodes": state.nodes,
        "waiting": state.waiting,
        "storage": state.storage,
        "standing": state.standing,
        "devices": state.devices,
    }
    return json.dumps(said)


def main():
    """Judge states, and print what differs."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--states", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--devices", action="store_true", help="pods wait for claims on devices")
    given = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="referee-") as folder, refereeing(folder) as referee:
        found, judged = judge_all(referee, given.seed, given.states, _say, has_devices=given.devices)
    took = time.monotonic() - began
    for what, many in sorted(referee.tally.items()):
        _say(f"{many:6} {what}")
    _say(f"{judged} states judged in {took:.0f} s, {len(found)} differ (seed {given.seed})")
    return 1 if found else 0


def _say(line):
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
