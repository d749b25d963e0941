"""Parts of GPUs reach containers: what each sees is what the plan says, whoever comes, goes or is killed between."""

from __future__ import annotations

import random
from contextlib import suppress

import pytest
from tests.builders import SECOND, cluster, node, queue
from tests.effort import tries
from tests.kubernetes.gpu_kubelets import GPU, GpuKubelets
from tests.kubernetes.stage import Stage, wait_until
from tests.kubernetes.test_crashes import Killed, MortalClient
from tools.controlplane.client import ApiError
from tools.controlplane.plane import Options as PlaneOptions

from tenure.clusters.kubernetes import keys
from tenure.clusters.kubernetes.cache.informers import InformerCache, Options, start_synced
from tenure.clusters.kubernetes.client.access import find_access
from tenure.clusters.kubernetes.client.requests import Client
from tenure.clusters.kubernetes.cluster import KubernetesCluster
from tenure.clusters.kubernetes.gpus.environment import VARIABLE
from tenure.clusters.kubernetes.gpus.keeper import ReservationKeeper
from tenure.clusters.kubernetes.gpus.reservations import reservation_name
from tenure.clusters.kubernetes.install.installation import CONTAINER
from tenure.clusters.kubernetes.install.manifests import Installation
from tenure.clusters.kubernetes.read.observe import Observer
from tenure.live.loop import Loop

PODS, OWN = "/api/v1/namespaces/default/pods", "/api/v1/namespaces/tenure-system/pods"
NODES = ("n0", "n1")
DEVICES = 2


PLANE = PlaneOptions(controllers=False, nodes=False)
INSTALLATION = Installation(image="tenure:test", share_gpus=True)


PART = {
    "metadata": {"name": "part", "annotations": {"gpu-fraction": "0.5"}},
    "spec": {"schedulerName": "tenure", "containers": [{"name": "main", "image": "none"}]},
}


@pytest.fixture(scope="module")
def plane(plane):
    """Wait until the API server does with a pod what the installation asks for: a new policy is in effect later."""
    client = Stage(plane).client
    accounts = "/api/v1/namespaces/tenure-system/serviceaccounts"  # no controller makes it here
    client.create(accounts, {"metadata": {"name": "default"}})
    wait_until(
        lambda: "env" in client.create(f"{PODS}?dryRun=All", PART)["spec"]["containers"][0],
        "the policy is not in effect",
    )
    return plane


class Theatre:
    """Nodes with GPUs, pods that ask for parts or for whole ones, and schedulers one after the other.

    A scheduler has the rights of the installation, and no others.
    """

    def __init__(self, plane, seed):
        self.plane, self.stage = plane, Stage(plane)
        self.client = self.stage.client
        self.account = plane.kubeconfig_for(plane.token_of("tenure", "tenure-system"), "tenure")
        self.clear()
        told = cluster([node(n, cpu=64, gpu=DEVICES) for n in NODES], [], [queue("default")], actions=("allocate",))
        self.stage.put(told)
        self.kubelets = GpuKubelets(self.client, NODES, DEVICES, seed)
        self.told, self.now, self.count = told, told.now, 0

    def clear(self):
        for item in self.client.get(OWN)["items"]:
            self.client.discard(f"{OWN}/{item['metadata']['name']}", {"gracePeriodSeconds": 0})
        self.stage.clear()

    def add(self, fraction=None, *, gpus=0, devices=1):
        """Create a pod that asks for a part of a GPU, of one or several, or for whole ones."""
        self.count += 1
        name = f"p-{self.count}"
        asked = {} if fraction is None else {"gpu-fraction": fraction, "gpu-fraction-num-devices": str(devices)}
        limits = {GPU: str(gpus)} if gpus else {}
        resources = {"requests": {"cpu": "100m", **limits}, "limits": limits}
        body = {
            "metadata": {"name": name, "annotations": asked},
            "spec": {"schedulerName": "tenure", "terminationGracePeriodSeconds": 1,
                     "containers": [{"name": "main", "image": "none", "resources": resources}]},
        }  # fmt: skip
        self.client.create(PODS, body)
        return name

    def end(self, name):
        with suppress(ApiError):
            self.client.delete(f"{PODS}/{name}")

    def life(self, last=0, ends="", *, cycles=40):
        """Let one scheduler run until it is killed at a write, or nothing happens any more."""
        client = MortalClient(find_access(str(self.account)), last, ends)
        options = Options(holds_gpus=True, reservation_image="tenure:test")
        live = KubernetesCluster(client, options, self.told.settings, in_flight=1, allowed=client.allowed)
        live.start()
        loop, quiet = Loop(live, lambda: 1, wall=lambda: self.now), 0
        try:
            assert live.informers.wait_synced(20), live.informers.troubles
            for _ in range(cycles):
                self.settle(live)
                before = client.count
                loop.cycle()
                live.actor.bindings.wait()  # on a busy machine they are answered when nothing else happens any more
                self.now += SECOND
                acted = self.kubelets.act()
                self.check()
                quiet = 0 if acted or client.count > before else quiet + 1
                if quiet > 1:
                    return client.count
        except Killed:
            self.kubelets.act()
            return client.count
        finally:
            live.close()
        raise AssertionError(f"no rest after {cycles} cycles")

    def settle(self, live):
        """Wait until the watches have shown what is there."""

        def told():
            there = {(i["metadata"]["namespace"], i["metadata"]["name"]): i["metadata"]["resourceVersion"]
                     for i in self.client.get("/api/v1/pods")["items"]}  # fmt: skip
            held = {k: v for k, v in there.items() if k[0] == "tenure-system"}
            store = {
                k: o.metadata.resource_version for k, o in live.informers.objects["gpu reservations"].items.items()
            }
            return held == store and there == {k: r.version for k, r in list(live.informers.pods.records.items())}

        wait_until(told, "the watches do not catch up")

    def running(self):
        return [p for p in self.client.get(PODS)["items"] if p["metadata"]["uid"] in self.kubelets.seen]

    def check(self):
        """One number of a node is one device, two are two; nobody has a whole one of which others have parts."""
        known, parts, whole = {}, {}, {}
        for pod in self.running():
            seen, place = self.kubelets.seen[pod["metadata"]["uid"]], pod["spec"]["nodeName"]
            annotations = pod["metadata"]["annotations"]
            if "gpu-fraction" not in annotations:
                whole.update(dict.fromkeys(seen, pod["metadata"]["name"]))
                continue
            numbers = annotations[keys.DEVICES].split(",")
            names = annotations[keys.VISIBLE_DEVICES].split(",")
            assert seen == set(names)
            assert len(set(names)) == len(numbers)
            for number, name in zip(numbers, names, strict=True):
                assert known.setdefault((place, number), name) == name, "one number is two devices"
                parts[name] = parts.get(name, 0) + float(annotations["gpu-fraction"])
        assert len(set(known.values())) == len(known), "two numbers are one device"
        assert all(total <= 1 for total in parts.values()), parts
        assert not parts.keys() & whole.keys(), "a whole device of which others have parts"
        assert not self.kubelets.refused, "more than a node has"

    def check_leaks(self):
        """The devices that are held are those of which somebody has a part."""
        parts = {
            reservation_name((p["spec"]["nodeName"], int(n)))
            for p in self.running()
            if "gpu-fraction" in p["metadata"]["annotations"]
            for n in p["metadata"]["annotations"][keys.DEVICES].split(",")
        }
        assert {i["metadata"]["name"] for i in self.client.get(OWN)["items"]} == parts


def test_pods_with_parts_of_one_device_are_told_its_name(plane):
    """Two parts share a device that a pod holds for them; a whole one is another; when they end, nothing is held."""
    theatre = Theatre(plane, 1)
    names = [theatre.add("0.5"), theatre.add("0.5"), theatre.add(gpus=1)]
    theatre.life()
    pods = {p["metadata"]["name"]: p for p in theatre.running()}
    assert set(pods) == set(names)
    first, second, other = (theatre.kubelets.seen[pods[n]["metadata"]["uid"]] for n in names)
    assert first == second != other
    (variable,) = pods[names[0]]["spec"]["containers"][0]["env"]
    assert variable["name"] == VARIABLE
    assert "env" not in pods[names[2]]["spec"]["containers"][0]
    theatre.check_leaks()
    for name in names[:2]:
        theatre.end(name)
    theatre.kubelets.act()
    theatre.life()
    assert theatre.client.get(OWN)["items"] == []
    theatre.clear()


@pytest.mark.parametrize("deadly", [False, True])
def test_what_containers_see_is_what_the_plan_says(plane, deadly):
    """Over random sequences of start and end, with schedulers killed between any two writes: no device is leaked."""
    for seed in range(tries(2, 250)):
        theatre, chance, there = Theatre(plane, seed), random.Random(seed), []
        for _ in range(tries(4, 8)):
            for _ in range(chance.randint(1, 3)):
                kind = chance.choice(["part", "part", "parts", "whole"])
                part = chance.choice(["0.25", "0.5", "0.75"])
                there.append(
                    theatre.add(gpus=1) if kind == "whole"
                    else theatre.add(part, devices=2 if kind == "parts" else 1)
                )  # fmt: skip
            if there and chance.random() < 0.6:
                theatre.end(there.pop(chance.randrange(len(there))))
            theatre.kubelets.act()
            if deadly:
                theatre.life(chance.randint(1, 9), chance.choice(["before", "after"]))
            theatre.life()
            theatre.check_leaks()
        theatre.clear()


def test_what_holds_a_device_outranks_what_is_scheduled_and_has_the_image_that_the_cluster_knows(plane):
    """It is made of the scheduler's own pod, with no right but those of the installation."""
    stage, (name, uid) = Stage(plane), ("tenure-0", 65_532)
    secure = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    container = {"name": CONTAINER, "image": "r.example/tenure:1", "securityContext": secure}
    user = {"runAsNonRoot": True, "runAsUser": uid, "seccompProfile": {"type": "RuntimeDefault"}}
    spec = {"priorityClassName": "tenure", "imagePullSecrets": [{"name": "registry"}], "securityContext": user}
    stage.client.create(OWN, {"metadata": {"name": name}, "spec": {**spec, "containers": [container]}})
    account = plane.kubeconfig_for(plane.token_of("tenure", "tenure-system"), "tenure")
    client = Client(find_access(str(account)))
    for pod_name, refused in (("tenure-1", [404]), (name, [])):
        keeper = ReservationKeeper(client, InformerCache(client, Options(holds_gpus=True, pod_name=pod_name)))
        assert [error.status for _, error in keeper.hold({("n0", 0)})] == refused
    made = stage.client.get(f"{OWN}/{reservation_name(('n0', 0))}")["spec"]
    assert (made["priority"], made["imagePullSecrets"]) == (1_000_000_000, [{"name": "registry"}])
    assert {one["image"] for one in (*made["initContainers"], *made["containers"])} == {"r.example/tenure:1"}
    for one in (name, reservation_name(("n0", 0))):
        stage.client.delete(f"{OWN}/{one}", {"gracePeriodSeconds": 0})


def test_who_only_looks_counts_a_shared_device_once(plane):
    """Tables, explanations and the console hold no devices, and see what the scheduler sees: none is full twice."""
    theatre = Theatre(plane, 2)
    for _ in range(2):
        theatre.add("0.5")
    theatre.life()
    client = Client(find_access(str(theatre.plane.kubeconfig)))
    informers = InformerCache(client, Options(only_reads=True))
    start_synced(informers, 20)
    try:
        seen = Observer(informers, theatre.told.settings).observe(theatre.now).cluster
    finally:
        informers.stop()
    assert sorted((w.name, t.node, t.devices) for w in seen.workloads for t in w.tasks) == sorted(
        (p["metadata"]["name"], p["spec"]["nodeName"], (int(p["metadata"]["annotations"][keys.DEVICES]),))
        for p in theatre.running()
        if "gpu-fraction" in p["metadata"]["annotations"]
    )
    theatre.clear()
