"""Queues of YuniKorn's ConfigMap, live: what is decided about them stands in a ConfigMap of Tenure's own."""

from __future__ import annotations

import json
import time

import pytest
from tests.kubernetes.faults import DelayWatch, LoseAnswer
from tests.kubernetes.proxy import FaultProxy
from tests.kubernetes.running import SETS, TENURE, bound, clear, gang, running
from tests.kubernetes.stage import wait_until
from tests.kubernetes.witness import Witness

from tenure.clusters.kubernetes.install.manifests import Installation

INSTALLATION = Installation(image="tenure:test", yunikorn=("default", "queues"))
GPU = "nvidia.com/gpu"
QUEUE = "root.metered"
THEIRS, OWN = (f"/api/v1/namespaces/{namespace}/configmaps" for namespace in ("default", "tenure-system"))
LAG = 4.0
"""Seconds by which watches of ConfigMaps are late."""


def said(most, priority=0):
    """Give what YuniKorn's ConfigMap says: one queue with a limit, lowered limits enforced after an hour."""
    properties = {"quota.preemption.delay": "1h", "priority.offset": str(priority)}
    metered = {"name": "metered", "resources": {"max": {GPU: str(most)}}, "properties": properties}
    queues = [{"name": "root", "queues": [metered]}]
    return {"data": {"queues.yaml": json.dumps({"partitions": [{"name": "default", "queues": queues}]})}}


def deadline_of(item):
    """Give the deadline of the queue in Tenure's ConfigMap."""
    text = (item.get("data") or {}).get(QUEUE, "{}")
    return (json.loads(text).get("quotaPreemption") or {}).get("deadline")


def deadline(client):
    """Give the deadline of the queue as it stands."""
    return next((d for item in client.get(OWN)["items"] if (d := deadline_of(item))), None)


@pytest.fixture
def client(plane):
    made = plane.client()
    plane.add_node("node-0", {"cpu": "16", "memory": "64Gi", GPU: "4"})
    settings = {"quotaPreemption": {"enabled": True}}
    body = {"apiVersion": "tenure.dev/v1alpha1", "kind": "NodePool", "metadata": {"name": "default"}}
    made.create(f"{TENURE}/nodepools", {**body, "spec": {"scheduler": settings}})
    made.create(THEIRS, {"metadata": {"name": "queues"}, **said(4)})
    yield made
    made.discard(f"{THEIRS}/queues")
    clear(made)


def lower(client, most):
    """Lower the limit, and see that a deadline is armed."""
    client.patch(f"{THEIRS}/queues", said(most))
    wait_until(lambda: deadline(client), "no deadline is armed", 60)


def raise_again(client):
    """Raise the limit, and see that there is no deadline any more."""
    client.patch(f"{THEIRS}/queues", said(4))
    wait_until(lambda: not deadline(client), "what is decided is not written any more", 60)


@pytest.mark.parametrize(
    ("method", "later"),
    [("PATCH", False), ("POST", False), ("PATCH", True)],
    ids=["that it is not there", "that it is created", "that it is patched"],
)
def test_a_deadline_whose_answer_was_lost_is_not_put_off(plane, client, token, tmp_path, method, later):
    """Neither an answer nor a watch tells what became of the ConfigMap before the next cycles."""
    options = ("--yunikorn-config", "default/queues")
    with FaultProxy(plane.server, plane.authority) as proxy, Witness(plane, {"configmaps": OWN}) as witness:
        proxy.script.add(DelayWatch(LAG), path=r"/configmaps\?", watch=True)
        with running(plane.kubeconfig_for(token, "tenure", proxy.server), tmp_path, "one", *options):
            client.create(SETS, gang("holds", QUEUE, 1, gpu=4))
            wait_until(lambda: bound(client, "holds") == 1, "it does not run", 60)
            if later:
                lower(client, 2)
                raise_again(client)
            proxy.script.add(LoseAnswer(), path="/configmaps", body=b"deadline", method=method)
            lower(client, 1)
            time.sleep(LAG)
            client.patch(f"{THEIRS}/queues", said(1, priority=7))  # a cycle follows that may know nothing of it
            time.sleep(2 * LAG)
            raise_again(client)
        written = {deadline_of(change.item) for change in witness.changes()} - {None}
        assert len(written) == 1 + later, written
        assert not proxy.script.pending
