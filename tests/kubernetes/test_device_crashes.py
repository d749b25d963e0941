"""The scheduler ends between any two writes that give devices to claims and bind pods: none is given twice or lost."""

from __future__ import annotations

from tests.builders import NOW, SECOND
from tests.kubernetes.stage import each_end, wait_until
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


def life(plane, stage, last=0, ends="", *, until=lambda: False, cycles=6, step=SECOND):
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
            now += step
            live.actor.bindings.wait()
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
    for last, ends in each_end(writes):
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


def set_up_extended(stage):
    """Make a node with three devices, and two pods that ask for them as an extended resource."""
    stage.add_node(Node(name="n0", allocatable={"cpu": 8000}, labels={"kubernetes.io/hostname": "n0"}))
    stage.client.create(CLASSES, device_class(extendedResourceName="example.com/gpu"))
    stage.client.create(SLICES, device_slice("n0", [gpu(i) for i in range(3)]))
    for number in range(2):
        amounts = {"cpu": "1", "example.com/gpu": str(number + 1)}
        resources = {"requests": amounts, "limits": {"example.com/gpu": amounts["example.com/gpu"]}}
        spec = {"schedulerName": "tenure", "containers": [{"name": "c", "image": "x", "resources": resources}]}
        stage.client.create(PODS, {"metadata": {"name": f"p{number}"}, "spec": spec})


def has_extended(stage):
    """Whether both pods are bound, each with one claim of its own that its status names."""
    found = given(stage)
    named = {
        p["metadata"]["name"]: p["status"].get("extendedResourceClaimStatus", {}).get("resourceClaimName")
        for p in stage.client.get(PODS)["items"]
    }
    mine = {name: found.get(claim, (set(), set())) for name, claim in named.items()}
    return sorted(bound(stage)) == ["p0", "p1"] and {n: (len(d), u) for n, (d, u) in mine.items()} == {
        "p0": (1, {"p0"}), "p1": (2, {"p1"}),
    }  # fmt: skip


def test_claims_that_are_made_for_pods_are_made_once(plane, stage):
    """Before or after any write, the claims among them: each pod has one claim, and its status says which."""
    set_up_extended(stage)
    writes = life(plane, stage, until=lambda: has_extended(stage))
    assert has_extended(stage)
    assert writes >= 8, "two claims, two allocations, two statuses and two bindings"
    for last, ends in each_end(writes):
        stage.clear()
        set_up_extended(stage)
        life(plane, stage, last, ends)
        life(plane, stage, until=lambda: has_extended(stage))
        assert has_extended(stage), (last, ends, given(stage))
        assert len(given(stage)) == 2, "a claim was made twice"


def set_up_prepared(stage, devices=1):
    """Make a node with devices that their driver has to prepare, and a pod that claims one."""
    stage.add_node(Node(name="n0", allocatable={"cpu": 8000}, labels={"kubernetes.io/hostname": "n0"}))
    stage.client.create(CLASSES, device_class())
    conditions = {"bindingConditions": [READY], "bindingFailureConditions": [FAILED]}
    stage.client.create(SLICES, device_slice("n0", [{**gpu(i), **conditions} for i in range(devices)]))
    stage.client.create(CLAIMS, device_claim("own", demand()))
    spec = {"schedulerName": "tenure", "resourceClaims": [{"name": "own", "resourceClaimName": "own"}],
            "containers": [{"name": "c", "image": "x", "resources": {"requests": {"cpu": "1"}}}]}  # fmt: skip
    stage.client.create(PODS, {"metadata": {"name": "p0"}, "spec": spec})


READY, FAILED = "example.com/attached", "example.com/broken"


def report(stage, *, broken=()):
    """Do what the driver does: report that the device of the claim is ready, or that it never will be."""
    status = stage.client.get(f"{CLAIMS}/own").get("status", {})
    for result in status.get("allocation", {}).get("devices", {}).get("results", ()):
        kind = FAILED if result["device"] in broken else READY
        told = {"type": kind, "status": "True", "reason": "Tried", "message": "", "lastTransitionTime": START}
        device = {**{key: result[key] for key in ("driver", "pool", "device")}, "conditions": [told]}
        stage.client.patch(f"{CLAIMS}/own/status", {"status": {"devices": [device]}})


START = "2026-11-20T10:00:00Z"


def waits_for_driver(stage):
    """Whether the pod has a device, and is not bound yet."""
    devices, pods = given(stage)["own"]
    return bool(devices) and pods == {"p0"} and not bound(stage)


def test_a_pod_is_bound_once_its_devices_are_ready(plane, stage):
    """The claim has its device, the pod waits; whoever takes over binds it when the driver has reported."""
    set_up_prepared(stage)
    writes = life(plane, stage, cycles=3)
    assert waits_for_driver(stage)
    (pod,) = stage.client.get(PODS)["items"]
    told = {c["type"]: (c["reason"], c["message"]) for c in pod["status"]["conditions"]}
    assert told["PodScheduled"][0] == "DevicesNotReady"
    assert f"condition {READY} of device {DRIVER}/n0/gpu-0 of resource claim own" in told["PodScheduled"][1]
    result = stage.client.get(f"{CLAIMS}/own")["status"]["allocation"]
    assert result["allocationTimestamp"]
    assert result["devices"]["results"][0]["bindingConditions"] == [READY]
    report(stage)
    life(plane, stage, until=lambda: bound(stage) == ["p0"])
    assert bound(stage) == ["p0"]
    for last in range(1, writes + 1):
        stage.clear()
        set_up_prepared(stage)
        life(plane, stage, last, "after", cycles=2)
        life(plane, stage, until=lambda: waits_for_driver(stage))
        assert waits_for_driver(stage), last
        report(stage)
        life(plane, stage, until=lambda: bound(stage) == ["p0"])
        assert bound(stage) == ["p0"], last


def test_a_device_that_cannot_be_prepared_is_given_back_and_another_one_is_tried(plane, stage):
    """The driver says that the first device is broken: the claim gets the second, with which the pod is bound."""
    set_up_prepared(stage, devices=2)
    seen = set()

    def until():
        seen.update(device for _, device in given(stage)["own"][0])
        report(stage, broken=("gpu-0",))
        return bound(stage) == ["p0"]

    life(plane, stage, until=until, cycles=10)
    assert bound(stage) == ["p0"]
    assert seen == {"gpu-0", "gpu-1"}
    assert {device for _, device in given(stage)["own"][0]} == {"gpu-1"}


def test_devices_of_which_nothing_is_reported_in_time_are_given_back(plane, stage):
    """After ten minutes the claim has no device any more, and tries again once that device is not avoided any more."""
    set_up_prepared(stage)
    had = []
    life(plane, stage, until=lambda: had.append(bool(given(stage)["own"][0])), cycles=4, step=400 * SECOND)
    assert had[:2] == [True, True]
    assert False in had[2:]
    assert not bound(stage)
