"""Pods that use devices by claims, live: they get devices before they start, and give them back when they are gone."""

from __future__ import annotations

import pytest
from tests.kubernetes.running import JOBS, TENURE, all_pods, bound, clear, job, pods_of, queue, running
from tests.kubernetes.stage import wait_until

DRA = "/apis/resource.k8s.io/v1"
CLAIMS = f"{DRA}/namespaces/default/resourceclaims"
TEMPLATES = f"{DRA}/namespaces/default/resourceclaimtemplates"
SLICES = f"{DRA}/resourceslices"
CLASSES = f"{DRA}/deviceclasses"
DRIVER = "gpu.example.com"


def device_class(name=DRIVER, expression=f'device.driver == "{DRIVER}"', **more):
    """Give a class of devices."""
    spec = {"selectors": [{"cel": {"expression": expression}}], **more}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": name}, "spec": spec}


def gpu(number, **attributes):
    """Give a device of a slice."""
    kinds = {str: "string", int: "int", bool: "bool"}
    plain = {name: {kinds[type(value)]: value} for name, value in attributes.items()}
    return {"name": f"gpu-{number}", "attributes": plain, "capacity": {"memory": {"value": "80Gi"}}}


def device_slice(node, devices, **more):
    """Give the slice of a node."""
    spec = {"driver": DRIVER, "pool": {"name": node, "generation": 1, "resourceSliceCount": 1}, "nodeName": node,
            "devices": devices, **more}  # fmt: skip
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"{node}-gpus"},
        "spec": spec,
    }


def demand(count=1, expression="", **more):
    """Give the devices part of a claim's spec."""
    exactly = {"deviceClassName": DRIVER, "count": count}
    if expression:
        exactly["selectors"] = [{"cel": {"expression": expression}}]
    return {"devices": {"requests": [{"name": "gpus", "exactly": exactly}], **more}}


def device_claim(name, spec):
    """Give a claim."""
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": name}, "spec": spec}


def device_template(name, spec):
    """Give a template of claims."""
    made = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": {"name": name}}
    return {**made, "spec": {"spec": spec}}


def using(name, pods, *, claim="", template=""):
    """Give a Job whose pods use a claim, or one of a template each."""
    made = job(name, "team", pods)
    spec = made["spec"]["template"]["spec"]
    spec["resourceClaims"] = [
        {"name": "gpus", **({"resourceClaimName": claim} if claim else {"resourceClaimTemplateName": template})}
    ]
    spec["containers"][0]["resources"] = {"requests": {"cpu": "1"}, "claims": [{"name": "gpus"}]}
    return made


@pytest.fixture
def client(plane):
    made = plane.client()
    for number in range(2):
        plane.add_node(f"node-{number}", {"cpu": "16", "memory": "64Gi"})
        made.create(SLICES, device_slice(f"node-{number}", [gpu(i, numa=i // 2) for i in range(4)]))
    made.create(CLASSES, device_class())
    made.create(f"{TENURE}/queues", queue("team"))
    yield made
    clear(plane.client())
    for path in (CLAIMS, TEMPLATES, SLICES, CLASSES):
        for item in made.get(path)["items"]:
            made.discard(f"{path}/{item['metadata']['name']}")


def given(client):
    """Give the devices of all claims, and check that no device is given out twice."""
    found = {}
    for item in client.get(CLAIMS)["items"]:
        results = item.get("status", {}).get("allocation", {}).get("devices", {}).get("results", ())
        found[item["metadata"]["name"]] = {(r["pool"], r["device"]) for r in results}
    all_of_them = [device for devices in found.values() for device in devices]
    assert len(all_of_them) == len(set(all_of_them)), f"a device is given out twice: {found}"
    return found


def said(client, name):
    """Give reason and message of the pods of a Job that wait."""
    conditions = [c for p in pods_of(client, name) for c in p["status"].get("conditions", ())]
    return {(c["reason"], c["message"]) for c in conditions if c["type"] == "PodScheduled" and c["status"] == "False"}


def test_pods_get_devices_by_template_and_by_name_and_give_them_back(plane, client, token, tmp_path):
    """Two claims of a template with two GPUs each, one that two pods share; too much waits and says for what."""
    client.create(TEMPLATES, device_template("pair", demand(2, constraints=[{"matchAttribute": f"{DRIVER}/numa"}])))
    client.create(CLAIMS, device_claim("one", demand(1)))
    client.create(CLAIMS, device_claim("five", demand(5)))
    with running(plane.kubeconfig_for(token, "tenure"), tmp_path):
        client.create(JOBS, using("train", 2, template="pair"))
        client.create(JOBS, using("share", 2, claim="one"))
        wait_until(lambda: bound(client, "train") == 2, lambda: f"it does not start: {said(client, 'train')}", 60)
        wait_until(lambda: bound(client, "share") == 2, lambda: f"it does not start: {said(client, 'share')}", 60)
        client.create(JOBS, using("large", 1, claim="five"))
        wait_until(
            lambda: any("5 devices of class" in m for _, m in said(client, "large")),
            lambda: f"it does not say what it waits for: {said(client, 'large')}",
            60,
        )
        devices = given(client)
        assert sorted(map(len, devices.values())) == [0, 1, 2, 2]
        nodes = {p["spec"]["nodeName"] for p in pods_of(client, "share")}
        assert nodes == {pool for pool, _ in devices["one"]}
        for item in client.get(CLAIMS)["items"]:
            results = item.get("status", {}).get("allocation", {}).get("devices", {}).get("results", ())
            if len(results) == 2:
                assert len({int(r["device"][-1]) // 2 for r in results}) == 1, "the two GPUs are not alike in numa"
        for name in ("train", "share"):
            client.delete(f"{JOBS}/{name}", {"propagationPolicy": "Background"})
        wait_until(lambda: not any(given(client).values()), lambda: f"devices are left: {given(client)}", 60)


def test_a_queue_gets_the_devices_that_it_is_guaranteed_from_one_that_borrows_them(plane, client, token, tmp_path):
    """Devices count as the extended resource of their class; a selector that fails costs its own pod alone."""
    client.create(CLASSES, device_class("counted", extendedResourceName="example.com/gpu"))
    client.create(f"{TENURE}/queues", queue("lender", guaranteed={"example.com/gpu": 4}))
    client.create(f"{TENURE}/queues", queue("borrower"))
    pair = demand(2)
    pair["devices"]["requests"][0]["exactly"]["deviceClassName"] = "counted"
    client.create(TEMPLATES, device_template("pair", pair))
    wrong = f'device.attributes["{DRIVER}"].nothing == 1'
    client.create(CLAIMS, device_claim("wrong", demand(1, wrong)))

    def of(queue_name, name, pods):
        made = using(name, pods, template="pair")
        made["spec"] |= {"completions": pods, "backoffLimit": 20}
        made["metadata"]["labels"] = {"tenure.dev/queue": queue_name}
        made["spec"]["template"]["metadata"]["labels"]["tenure.dev/queue"] = queue_name
        return made

    with running(plane.kubeconfig_for(token, "tenure"), tmp_path):
        client.create(JOBS, using("fails", 1, claim="wrong"))
        for number in range(4):
            client.create(JOBS, of("borrower", f"borrows-{number}", 1))
        wait_until(
            lambda: sum(bound(client, f"borrows-{n}") for n in range(4)) == 4, "not all devices are borrowed", 60
        )
        assert len([d for devices in given(client).values() for d in devices]) == 8
        assert any("a selector of the request fails" in m for _, m in said(client, "fails")), said(client, "fails")
        client.create(JOBS, of("lender", "due", 2))
        wait_until(lambda: bound(client, "due") == 2, lambda: f"it gets no devices: {all_pods(client)}", 90)
        devices = given(client)
        held = {r["name"] for i in client.get(CLAIMS)["items"] for r in i.get("status", {}).get("reservedFor", ())}
        there = {
            p["metadata"]["name"] for n in ("due", *(f"borrows-{i}" for i in range(4))) for p in pods_of(client, n)
        }
        assert held <= there, "devices are reserved for pods that are gone"
        assert sum(map(len, devices.values())) <= 8
