"""Extended resources that devices serve, live: a claim is made for the pod, and goes with it."""

from __future__ import annotations

from tests.kubernetes.running import JOBS, SETS, bound, gang, job, log_of, pods_of, running
from tests.kubernetes.stage import wait_until
from tests.kubernetes.test_devices import CLAIMS, CLASSES, device_class, given, said
from tests.kubernetes.test_devices import client as client  # noqa: PLC0414  a fixture

RESOURCE = "example.com/gpu"


def asking(name, pods, count, resource=RESOURCE):
    """Give a Job whose pods ask for an extended resource."""
    made = job(name, "team", pods)
    container = made["spec"]["template"]["spec"]["containers"][0]
    container["resources"] = {"requests": {"cpu": "1", resource: str(count)}, "limits": {resource: str(count)}}
    return made


def places(client, name):
    """Give the nodes of the pods of a gang that are placed."""
    return {p["spec"]["nodeName"] for p in pods_of(client, name) if p["spec"].get("nodeName")}


def devices_of(client, name):
    """Give the devices that the claims of a gang's pods have, by pool; no device is given out twice."""
    found = given(client)
    named = [p["status"]["extendedResourceClaimStatus"]["resourceClaimName"] for p in pods_of(client, name)]
    return [sorted(found[claim]) for claim in named]


def on_one_node(client, name, node, count, others):
    """Start a gang of one pod on a node, while the others take nothing new."""
    for other in others:
        client.patch(f"/api/v1/nodes/{other}", {"spec": {"unschedulable": True}})
    client.create(SETS, gang(name, "team", 1, gpu=count, resource=RESOURCE))
    wait_until(lambda: places(client, name) == {node}, lambda: f"{name}: {said(client, name)}", 60)
    for other in others:
        client.patch(f"/api/v1/nodes/{other}", {"spec": {"unschedulable": None}})


def is_moved(client, name, node):
    """Whether a gang's one pod is on a node with two devices of it, by a claim, and what it had is given back."""
    pods = pods_of(client, name)
    if places(client, name) != {node} or not all("extendedResourceClaimStatus" in p["status"] for p in pods):
        return False
    owners = {o["uid"] for c in client.get(CLAIMS)["items"] for o in c["metadata"].get("ownerReferences", ())}
    everybody = {p["metadata"]["uid"] for p in client.get("/api/v1/namespaces/default/pods")["items"]}
    return owners <= everybody and devices_of(client, name) == [[(node, device) for _, device in found]
                                                                for found in devices_of(client, name)]  # fmt: skip


def test_a_pod_with_devices_is_moved_off_a_node_that_is_drained(plane, client, token, tmp_path):
    """The rescheduler moves it: it gets devices of the other node by a claim of its own, and the old claim is gone."""
    client.create(CLASSES, device_class("counted", extendedResourceName=RESOURCE))
    with running(plane.kubeconfig_for(token, "tenure"), tmp_path):
        on_one_node(client, "train", "node-0", 2, ["node-1"])
        (before,) = client.get(CLAIMS)["items"]
        client.patch("/api/v1/nodes/node-0", {"metadata": {"labels": {"tenure.dev/drain": "true"}}})
        wait_until(lambda: is_moved(client, "train", "node-1"), lambda: f"it stays: {said(client, 'train')}", 60)
        assert [e.cause for e in log_of(client)] == ["reschedule"]
        (after,) = client.get(CLAIMS)["items"]
        assert after["metadata"]["uid"] != before["metadata"]["uid"]
        assert [len(found) for found in devices_of(client, "train")] == [2]


def test_a_pod_with_devices_is_moved_so_that_a_large_one_gets_all_of_a_node(plane, client, token, tmp_path):
    """Two pods have half of the devices of a node each; one moves to the other one's node, and the large one fits."""
    client.create(CLASSES, device_class("counted", extendedResourceName=RESOURCE))
    with running(plane.kubeconfig_for(token, "tenure"), tmp_path):
        on_one_node(client, "left", "node-0", 2, ["node-1"])
        on_one_node(client, "right", "node-1", 2, ["node-0"])
        client.create(SETS, gang("large", "team", 1, gpu=4, resource=RESOURCE))
        wait_until(lambda: bound(client, "large") == 1, lambda: f"large: {said(client, 'large')}", 90)
        (whole,) = places(client, "large")
        (other,) = {"node-0", "node-1"} - {whole}
        for name in ("left", "right"):
            wait_until(lambda n=name: is_moved(client, n, other), lambda n=name: f"{n}: {said(client, n)}", 60)
        assert [sorted(device for _, device in found) for found in devices_of(client, "large")] == [
            ["gpu-0", "gpu-1", "gpu-2", "gpu-3"]
        ]
        assert len(log_of(client)) == 1, "one pod moved"
        assert len(client.get(CLAIMS)["items"]) == 3


def test_pods_get_devices_for_an_extended_resource_and_give_them_back(plane, client, token, tmp_path):
    """By the name that a class says and by its own; on a node that has the resource by itself no claim is made."""
    client.create(CLASSES, device_class("counted", extendedResourceName=RESOURCE))
    with running(plane.kubeconfig_for(token, "tenure"), tmp_path):
        client.create(JOBS, asking("train", 2, 3))
        client.create(JOBS, asking("own", 1, 1, "deviceclass.resource.kubernetes.io/counted"))
        for name, pods in (("train", 2), ("own", 1)):
            wait_until(lambda n=name, p=pods: bound(client, n) == p, lambda n=name: f"{n}: {said(client, n)}", 60)
        items = client.get(CLAIMS)["items"]
        assert sorted(len(i["status"]["allocation"]["devices"]["results"]) for i in items) == [1, 3, 3]
        by_name = {i["metadata"]["name"]: i for i in items}
        for pod in (*pods_of(client, "train"), *pods_of(client, "own")):
            status = pod["status"]["extendedResourceClaimStatus"]
            claim = by_name[status["resourceClaimName"]]
            assert claim["metadata"]["annotations"]["resource.kubernetes.io/extended-resource-claim"] == "true"
            assert [one["uid"] for one in claim["status"]["reservedFor"]] == [pod["metadata"]["uid"]]
            assert {m["requestName"] for m in status["requestMappings"]} == {
                r["name"] for r in claim["spec"]["devices"]["requests"]
            }
        client.create(JOBS, asking("large", 1, 2))
        wait_until(
            lambda: any("2 devices of class counted" in m for _, m in said(client, "large")),
            lambda: f"it does not say what it waits for: {said(client, 'large')}",
            60,
        )
        plane.add_node("plugin", {"cpu": "16", "memory": "64Gi", RESOURCE: "2"})
        wait_until(lambda: bound(client, "large") == 1, lambda: f"large: {said(client, 'large')}", 60)
        (pod,) = pods_of(client, "large")
        assert pod["spec"]["nodeName"] == "plugin"
        assert "extendedResourceClaimStatus" not in pod["status"]
        for name in ("train", "own"):
            client.delete(f"{JOBS}/{name}", {"propagationPolicy": "Background"})
        wait_until(lambda: not client.get(CLAIMS)["items"], lambda: f"claims are left: {client.get(CLAIMS)}", 60)
