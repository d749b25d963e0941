"""Extended resources that devices serve, live: a claim is made for the pod, and goes with it."""

from __future__ import annotations

from tests.kubernetes.running import JOBS, bound, job, pods_of, running
from tests.kubernetes.stage import wait_until
from tests.kubernetes.test_devices import CLAIMS, CLASSES, device_class, said
from tests.kubernetes.test_devices import client as client  # noqa: PLC0414  a fixture

RESOURCE = "example.com/gpu"


def asking(name, pods, count, resource=RESOURCE):
    """Give a Job whose pods ask for an extended resource."""
    made = job(name, "team", pods)
    container = made["spec"]["template"]["spec"]["containers"][0]
    container["resources"] = {"requests": {"cpu": "1", resource: str(count)}, "limits": {resource: str(count)}}
    return made


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
