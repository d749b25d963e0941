"""The scheduler ends between any two writes that bind claims and pods: nothing is bound twice, no claim is left."""

from __future__ import annotations

from tests.builders import NOW, SECOND
from tests.kubernetes.stage import each_end, wait_until
from tests.kubernetes.test_crashes import Killed, MortalClient
from tests.kubernetes.test_volumes import CLAIMS, CLASSES, VOLUMES, late, open_claim, volume
from tools.controlplane.plane import Options

from tenure.clusters.kubernetes.cache.informers import Options as InformerOptions
from tenure.clusters.kubernetes.client.access import find_access
from tenure.clusters.kubernetes.cluster import KubernetesCluster
from tenure.live.loop import Loop
from tenure.model.node import Node

PLANE = Options(controllers=False, nodes=False)
CLEARED = (CLAIMS, VOLUMES, CLASSES)
PODS = "/api/v1/namespaces/default/pods"
SELECTED = "volume.kubernetes.io/selected-node"
DONE = "pv.kubernetes.io/bind-completed"


def set_up(stage):
    """Make two local volumes, a class that makes others, and a core of two pods with two claims each."""
    for name in ("n0", "n1"):
        stage.add_node(Node(name=name, allocatable={"cpu": 8000}, labels={"kubernetes.io/hostname": name}))
    stage.client.create(CLASSES, late("there"))
    stage.client.create(CLASSES, late("made", "csi.example.org"))
    for number in range(2):
        made = volume(f"v{number}", f"n{number}")
        made["spec"] |= {"storageClassName": "there", "claimRef": None}
        stage.client.create(VOLUMES, made)
        stage.client.patch(f"{VOLUMES}/v{number}/status", {"status": {"phase": "Available"}})
        for of_class in ("there", "made"):
            stage.client.create(CLAIMS, open_claim(f"{of_class}-{number}", of_class, mode="ReadWriteMany"))
    group = {
        "apiVersion": "tenure.dev/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": "w"},
        "spec": {"minMember": 2},
    }
    stage.client.create("/apis/tenure.dev/v1alpha1/namespaces/default/podgroups", group)
    for number in range(2):
        named = [{"name": c, "persistentVolumeClaim": {"claimName": f"{c}-{number}"}} for c in ("there", "made")]
        resources = {"requests": {"cpu": "5"}}
        spec = {"schedulerName": "tenure", "volumes": named,
                "containers": [{"name": "c", "image": "x", "resources": resources}]}  # fmt: skip
        labels = {"tenure.dev/pod-group": "w"}
        stage.client.create(PODS, {"metadata": {"name": f"p{number}", "labels": labels}, "spec": spec})


def bind_claims(stage):
    """Do what the controller of volumes and a provisioner do."""
    volumes = {v["metadata"]["name"]: v for v in stage.client.get(VOLUMES)["items"]}
    for claim in stage.client.get(CLAIMS)["items"]:
        name, uid = claim["metadata"]["name"], claim["metadata"]["uid"]
        if claim["spec"].get("volumeName"):
            continue
        held = [v for v, item in volumes.items() if (item["spec"].get("claimRef") or {}).get("uid") == uid]
        assert len(held) <= 1, f"{name} has two volumes"
        node = claim["metadata"].get("annotations", {}).get(SELECTED)
        if not held and node:
            made = volume(f"for-{name}", node)
            made["spec"] |= {"storageClassName": "made", "claimRef": {"namespace": "default", "name": name, "uid": uid}}
            stage.client.create(VOLUMES, made)
            held = [f"for-{name}"]
        if held:
            bound = {"metadata": {"annotations": {DONE: "yes"}}, "spec": {"volumeName": held[0]}}
            stage.client.patch(f"{CLAIMS}/{name}", bound)
            stage.client.patch(f"{CLAIMS}/{name}/status", {"status": {"phase": "Bound"}})


def life(plane, stage, last=0, ends="", cycles=12, kind=MortalClient):
    """Let one process run until it ends at its write number ``last``, or all pods are bound; gives its writes."""
    client = kind(find_access(str(plane.kubeconfig)), last, ends)
    live = KubernetesCluster(client, InformerOptions(), in_flight=1, allowed=client.allowed)
    live.start()
    now = NOW
    loop = Loop(live, lambda: 1, wall=lambda: now)
    try:
        assert live.informers.wait_synced(20), live.informers.troubles
        for _ in range(cycles):
            settle(stage, live)
            loop.cycle()
            now += SECOND
            held = [p for p in stage.client.get(PODS)["items"] if p["spec"].get("nodeName")]
            if held:
                pending = [c for c in stage.client.get(CLAIMS)["items"] if not c["spec"].get("volumeName")]
                assert not pending, "a pod was bound before the claims of its core"
            if len(held) == 2:
                return client.count
            bind_claims(stage)
    except Killed:
        bind_claims(stage)
        return client.count
    finally:
        live.close()
    raise AssertionError("the pods are not bound")


def settle(stage, live):
    """Wait until the watches show what is there."""
    for path, known in ((CLAIMS, "claims"), (VOLUMES, "volumes"), (PODS, None)):
        there = {i["metadata"]["name"]: i["metadata"]["resourceVersion"] for i in stage.client.get(path)["items"]}

        def shown(there=there, known=known):
            if known is None:
                return there == {name: r.version for (_, name), r in list(live.informers.pods.records.items())}
            items = dict(live.informers.objects[known].items)
            return there == {name: i.metadata.resource_version for (_, name), i in items.items()}

        wait_until(shown, f"the watch of {path} does not catch up")


def test_whoever_takes_over_binds_what_is_left_and_nothing_twice(plane, stage):
    """Before or after any write: both pods end where their local volumes are, each claim has one volume of its own."""
    set_up(stage)
    writes = life(plane, stage)
    assert writes >= 6, "four claims and two pods are written"
    for last, ends in each_end(writes):
        stage.clear()
        set_up(stage)
        life(plane, stage, last, ends)
        life(plane, stage)
        claims = {c["metadata"]["name"]: c["spec"]["volumeName"] for c in stage.client.get(CLAIMS)["items"]}
        assert sorted(claims.values()) == ["for-made-0", "for-made-1", "v0", "v1"]
        for pod in stage.client.get(PODS)["items"]:
            number = pod["metadata"]["name"][1:]
            assert pod["spec"]["nodeName"] == f"n{claims[f'there-{number}'][1:]}", (last, ends)


def test_a_volume_that_another_claim_got_between_plan_and_bind_is_planned_anew(plane, stage):
    """Another claim is kept for the planned volume: the pod takes another one, and nothing is shared."""
    set_up(stage)
    for number in range(2, 4):
        made = volume(f"v{number}", f"n{number - 2}")
        made["spec"] |= {"storageClassName": "there", "claimRef": None}
        stage.client.create(VOLUMES, made)
        stage.client.patch(f"{VOLUMES}/v{number}/status", {"status": {"phase": "Available"}})
    taken = []

    class Overtaken(MortalClient):
        """A client that is overtaken at its first write on a volume."""

        def request(self, method, path, body=None, *more, **named):
            name = path.rsplit("/", 1)[-1]
            if method == "PATCH" and "/persistentvolumes/" in path and not taken:
                taken.append(name)
                theirs = {"namespace": "default", "name": "theirs", "uid": "theirs"}
                stage.client.patch(f"{VOLUMES}/{name}", {"spec": {"claimRef": theirs}})
            return super().request(method, path, body, *more, **named)

    life(plane, stage, kind=Overtaken)
    claims = {c["metadata"]["name"]: c["spec"]["volumeName"] for c in stage.client.get(CLAIMS)["items"]}
    assert len(set(claims.values())) == 4
    assert taken
    assert taken[0] not in claims.values()
