"""Parts of GPUs that are devices of their own, live: queues share GPUs, whatever parts their pods ask for."""

from __future__ import annotations

import pytest
from tests.kubernetes.running import SETS, TENURE, bound, clear, gang, log_of, queue, running
from tests.kubernetes.stage import wait_until

from tenure.model.values.resources import GPU

SMALL, HALF = "nvidia.com/mig-1g.10gb", "nvidia.com/mig-3g.40gb"


@pytest.fixture
def client(plane):
    made = plane.client()
    for number in range(2):
        plane.add_node(f"small-{number}", {"cpu": "64", "memory": "64Gi", SMALL: "7"})
    plane.add_node("halves", {"cpu": "64", "memory": "64Gi", HALF: "2"})
    yield made
    clear(plane.client())


def elastic(name, whose, pods, resource):
    """Give a ReplicaSet of pods that do not wait for one another."""
    made = gang(name, whose, 1, resource=resource)
    made["spec"]["replicas"] = pods
    return made


def allocated(client, name):
    """Give what the status of a queue says that it has of GPUs."""
    status = client.get(f"{TENURE}/queues/{name}").get("status", {})
    return str(status.get("allocated", {}).get(GPU))


def test_two_queues_share_gpus_by_the_parts_that_their_pods_hold(plane, client, token, tmp_path):
    """All parts are 2.844 GPUs, of which one queue is owed three quarters: two halves and nine parts of seven.

    The other queue has all small parts that there are; by their number alone each queue would get seven of them.
    """
    client.create(f"{TENURE}/queues", queue("vision", guaranteed={GPU: "710m"}))
    client.create(f"{TENURE}/queues", queue("language", guaranteed={GPU: "2134m"}))
    with running(plane.kubeconfig_for(token, "tenure"), tmp_path):
        client.create(SETS, elastic("many", "vision", 14, SMALL))
        client.create(SETS, elastic("halves", "language", 2, HALF))
        wait_until(lambda: bound(client, "many") == 14 and bound(client, "halves") == 2, "they do not start", 30)
        wait_until(lambda: allocated(client, "vision") == "1988m", lambda: allocated(client, "vision"), 30)
        wait_until(lambda: allocated(client, "language") == "856m", lambda: allocated(client, "language"), 30)
        client.create(SETS, elastic("few", "language", 14, SMALL))
        wait_until(lambda: bound(client, "few") == 9, lambda: f"few: {bound(client, 'few')}", 30)
        wait_until(lambda: allocated(client, "language") == "2134m", lambda: allocated(client, "language"), 30)
        wait_until(lambda: allocated(client, "vision") == "710m", lambda: allocated(client, "vision"), 30)
        assert (bound(client, "few"), bound(client, "many")) == (9, 5), "ten would be more than the share"
        entries = log_of(client)
        assert [(e.cause, e.workload) for e in entries] == [("reclaim", "default/many")] * 9
        assert all(abs(1000 * entry.lost[GPU] - 142 * entry.lost[SMALL]) <= 1000 for entry in entries)
