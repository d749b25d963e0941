"""Very many evictions in one plan: all are on record before they happen, over as many pages as it takes.

2,100 ordinary ones by hand: ``TENURE_EVICTIONS=2100 pytest tests/kubernetes/test_many_evictions.py``.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.kubernetes.running import PODS, TENURE, log_of, queue, running
from tests.kubernetes.stage import wait_until

from tenure.clusters.kubernetes.keys import SEAL

COUNT = int(os.environ.get("TENURE_EVICTIONS", "50"))
LABELS = {} if COUNT >= 1000 else {f"example.com/{'x' * 40}-{n}": "y" * 60 for n in range(80)}
"""Few evictions need more than a page only where each has much to say."""

EACH = min(100, COUNT // 2)
CLIENTS = 8
"""Clients that create pods side by side; a connection for each pod would take longer than the pod."""

MAPS = "/api/v1/namespaces/tenure-system/configmaps"


@pytest.fixture
def large(plane):
    """Give a control plane for one try: what a try leaves holds all nodes."""
    for number in range(-(-COUNT // EACH)):
        plane.add_node(f"node-{number}", {"cpu": str(EACH), "memory": "1Ti"})
    for name, spec in (("owed", {"guaranteed": {"cpu": COUNT}}), ("lent", {})):
        plane.client().create(f"{TENURE}/queues", queue(name, **spec))
    yield plane
    plane.put_back()


def pod(name, of, cpu):
    labels = {"tenure.dev/queue": of, "app": name, **(LABELS if of == "lent" else {})}
    resources = {"requests": {"cpu": str(cpu)}}
    spec = {"schedulerName": "tenure", "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "c", "image": "x", "resources": resources}]}  # fmt: skip
    return {"metadata": {"name": name, "labels": labels}, "spec": spec}


def fill(client, first):
    """Create one client's share of the pods that will be evicted."""
    for number in range(first, COUNT, CLIENTS):
        client.create(PODS, pod(f"lent-{number}", "lent", 1))


def bound(client, of):
    items = client.get(f"{PODS}?labelSelector=tenure.dev/queue%3D{of}")["items"]
    return [p for p in items if p["spec"].get("nodeName") and "deletionTimestamp" not in p["metadata"]]


def settled(client):
    """Give those who run and are on record: nobody has anything left to write on them."""
    return [
        p for p in bound(client, "lent")
        if p["status"]["phase"] == "Running" and SEAL in {c["type"] for c in p["status"]["conditions"]}
    ]  # fmt: skip


def test_each_of_very_many_evictions_is_on_record(large, tmp_path):
    """One gang is owed every node at once: whoever stands there goes, each with its record, and none twice."""
    client = large.client()
    kubeconfig = large.kubeconfig_for(large.token_of("tenure", "tenure-system"), "many")
    with running(kubeconfig, tmp_path) as scheduler, ThreadPoolExecutor(CLIENTS) as pool:
        list(pool.map(lambda first: fill(large.client(), first), range(CLIENTS)))
        wait_until(lambda: len(settled(client)) == COUNT, lambda: f"{len(settled(client))} run", 500)
        gone = {p["metadata"]["name"] for p in bound(client, "lent")}
        group = {"apiVersion": "tenure.dev/v1alpha1", "kind": "PodGroup", "metadata": {"name": "all"}}
        many = -(-COUNT // EACH)
        client.create(f"{TENURE}/namespaces/default/podgroups", {**group, "spec": {"queue": "owed", "minMember": many}})
        for number in range(many):
            body = pod(f"owed-{number}", "owed", EACH)
            body["metadata"]["labels"]["tenure.dev/pod-group"] = "all"
            client.create(PODS, body)
        wait_until(lambda: len(bound(client, "owed")) == many, "the gang does not run", 500)
        recorded = [entry.task for entry in log_of(client) if entry.task in gone]
        assert sorted(recorded) == sorted(gone)
        pages = [m for m in client.get(MAPS)["items"] if m["metadata"]["name"].startswith("tenure-evictions-")]
        assert len(pages) > 1
        plans = [line for line in scheduler.lines() if line["message"] == "cycle" and line["done"] > 0.9 * COUNT]
        assert plans, "the evictions were not those of one plan"
        assert not [line for line in scheduler.lines() if line["message"] == "a cycle failed"]
