"""The scheduler ends between any two writes that give devices to claims and bind pods: none is given twice or lost."""

from __future__ import annotations

from tests.builders import NOW, SECOND
from tests.effort import tries
from tests.kubernetes.stage import wait_until
from tests.kubernetes.test_crashes import Killed, MortalClient
from tests.kubernetes.test_devices import (
    CLAIMS,
    CLASSES,
    DRIVER,
    SLICES,
    demand,
    device_claim,
    device_class,
    device_slice,
    gpu,
)
from tools.controlplane.plane import Options

from tenure.clusters.kubernetes.cache.informers import Options as InformerOptions
from tenure.clusters.kubernetes.client.access import find_access
from tenure.clusters.kubernetes.cluster import KubernetesCluster
from tenure.live.loop import Loop
from tenure.model.node import Node

PLANE = Options(controllers=False, nodes=False)
CLEARED = (CLAIMS, SLICES, CLASSES)
PODS = "/api/v1/namespaces/default/pods"
GROUPS = "/apis/tenure.dev/v1alpha1/namespaces/default/podgroups"


def set_up(stage):
    """Make a node with three devices, and a core of two pods that have a claim each and share a third."""
    stage.add_node(Node(name="n0", allocatable={"cpu": 8000}, labels={"kubernetes.io/hostname": "n0"}))
    stage.client.create(CLASSES, device_class())
    stage.client.create(SLICES, device_slice("n0", [gpu(i) for i in range(3)]))
    for name in ("own-0", "own-1", "shared"):
        stage.client.create(CLAIMS, device_claim(name, demand()))
    group = {
        "apiVersion": "tenure.dev/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": "w"},
        "spec": {"minMember": 2},
    }
    stage.client.create(GROUPS, group)
    for number in range(2):
        claims = [{"name": "own", "resourceClaimName": f"own-{number}"}, {"name": "all", "resourceClaimName": "shared"}]
        spec = {"schedulerName": "tenure", "resourceClaims": claims,
                "containers": [{"name": "c", "image": "x", "resources": {"requests": {"cpu": "1"}}}]}  # fmt: skip
        labels = {"tenure.dev/pod-group": "w"}
        stage.client.create(PODS, {"metadata": {"name": f"p{number}", "labels": labels}, "spec": spec})


def settle(stage, live):
    """Wait until the watches show what is there."""
    for path, known in (
        (CLAIMS, "resourceclaims"),
        (SLICES, "resourceslices"),
        (CLASSES, "deviceclasses"),
        (PODS, None),
    ):
        there = {i["metadata"]["name"]: i["metadata"]["resourceVersion"] for i in stage.client.get(path)["items"]}

        def shown(there=there, known=known):
            if known is None:
                return there == {name: r.version for (_, name), r in list(live.informers.pods.records.items())}
            items = dict(live.informers.objects[known].items)
            return there == {name: i.metadata.resource_version for (_, name), i in items.items()}

        wait_until(shown, f"the watch of {path} does not catch up")


def life(plane, stage, last=0, ends="", *, until=lambda: False, cycles=6):
    """Let one process run until it ends at its write number ``last``, or until what is waited for; gives its writes."""
    client = MortalClient(find_access(str(plane.kubeconfig)), last, ends)
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
            live.actor._bindings.wait()
            given(stage)
            if until():
                return client.count
    except Killed:
        return client.count
    finally:
        live.close()
    return client.count


def given(stage):
    """Give the devices of each claim and the pods that it is reserved for; no device is given out twice."""
    found = {}
    for item in stage.client.get(CLAIMS)["items"]:
        status = item.get("status", {})
        results = status.get("allocation", {}).get("devices", {}).get("results", ())
        pods = {one["name"] for one in status.get("reservedFor", ())}
        found[item["metadata"]["name"]] = {(r["driver"], r["device"]) for r in results}, pods
    devices = [device for got, _ in found.values() for device in got]
    assert len(devices) == len(set(devices)), f"a device is given out twice: {found}"
    return found


def bound(stage):
    return [p["metadata"]["name"] for p in stage.client.get(PODS)["items"] if p["spec"].get("nodeName")]


def is_whole(stage):
    """Whether both pods are bound, each with its claims."""
    found = given(stage)
    return sorted(bound(stage)) == ["p0", "p1"] and {name: pods for name, (_, pods) in found.items()} == {
        "own-0": {"p0"}, "own-1": {"p1"}, "shared": {"p0", "p1"},
    }  # fmt: skip


def test_whoever_takes_over_gives_what_is_left_and_nothing_twice(plane, stage):
    """Before or after any write: both pods are bound, each claim has a device of its own, reserved for its pods."""
    set_up(stage)
    writes = life(plane, stage, until=lambda: is_whole(stage))
    assert is_whole(stage)
    assert writes >= 9, "three finalizers, three allocations, a reservation and two bindings"
    for last in range(1, writes + 1, tries(2, 1)):
        for ends in ("before", "after"):
            stage.clear()
            set_up(stage)
            life(plane, stage, last, ends)
            for name, (devices, _) in given(stage).items():
                assert len(devices) <= 1, name
            life(plane, stage, until=lambda: is_whole(stage))
            assert is_whole(stage), (last, ends, given(stage))
            assert {d for got, _ in given(stage).values() for d in got} == {(DRIVER, f"gpu-{i}") for i in range(3)}


def test_devices_of_a_pod_that_gets_no_place_any_more_are_given_back(plane, stage):
    """The scheduler ends after the first claim has its device; then the node takes no pods, and the claim has none."""
    set_up(stage)
    for last in range(1, 8):
        life(plane, stage, last, "after")
        if any(devices for devices, _ in given(stage).values()):
            break
    assert not bound(stage)
    stage.client.patch("/api/v1/nodes/n0", {"spec": {"unschedulable": True}})
    nothing = {"own-0": (set(), set()), "own-1": (set(), set()), "shared": (set(), set())}
    life(plane, stage, until=lambda: given(stage) == nothing)
    assert given(stage) == nothing
    stage.client.patch("/api/v1/nodes/n0", {"spec": {"unschedulable": None}})
    life(plane, stage, until=lambda: is_whole(stage))
    assert is_whole(stage)
