"""Two node pools of one cluster, each with a scheduler of its own: neither undoes what the other does or says."""

import time

import pytest
from tests.kubernetes.running import SETS, TENURE, bound, clear, gang, log_of, queue, running
from tests.kubernetes.stage import wait_until

from tenure.clusters.kubernetes.install.installation import Installation
from tenure.clusters.kubernetes.install.manifests import objects

CPU_EACH = {"cpu": "16", "memory": "64Gi", "nvidia.com/gpu": "4"}
QUIET_SECONDS = 20
"""Longer than it takes until figures are looked at again."""

GROUPS = f"{TENURE}/namespaces/default/podgroups"


def own(kind, name, spec, **meta):
    return {"apiVersion": "tenure.dev/v1alpha1", "kind": kind, "metadata": {"name": name, **meta}, "spec": spec}


@pytest.fixture
def stage(plane):
    client = plane.client()
    plane.apply(*objects(Installation(image="tenure:test", pool="gpu")))
    plane.add_node("node-0", CPU_EACH)
    plane.add_node("node-1", CPU_EACH, labels={"tenure.dev/node-pool": "gpu"})
    quota = {"scheduler": {"quotaPreemption": {"enabled": True}}}
    clash = {"budgets": [{"name": "all", "maxEvictions": 5, "per": "1h"}]}
    client.create(f"{TENURE}/nodepools", own("NodePool", "default", quota))
    client.create(
        f"{TENURE}/nodepools", own("NodePool", "gpu", {"scheduler": {**quota["scheduler"], "disruption": clash}})
    )
    client.create(f"{TENURE}/disruptionbudgets", own("DisruptionBudget", "all", {"maxEvictions": 9, "per": "1h"}))
    client.create(f"{TENURE}/queues", queue("team", max={"nvidia.com/gpu": 4}, quotaPreemptionDelay="8s"))
    yield plane
    for item in client.get(GROUPS)["items"]:
        client.delete(f"{GROUPS}/{item['metadata']['name']}")
    clear(client)


def of_group(name, pods, pool=None, minimum=1):
    """Give a set of pods that belong to a PodGroup, in a pool."""
    made = gang(name, "team", pods)
    labels, notes = (made["spec"]["template"]["metadata"][key] for key in ("labels", "annotations"))
    labels["tenure.dev/pod-group"] = name
    if pool is not None:
        labels["tenure.dev/node-pool"] = pool
    notes.clear()
    return own("PodGroup", name, {"minMember": minimum}, namespace="default"), made


def shared(client):
    """Give the objects that both pools look at, by path."""
    paths = [f"{TENURE}/{kind}" for kind in ("queues", "disruptionbudgets", "nodepools")] + [GROUPS]
    items = {p: client.get(p)["items"] for p in paths}
    return {f"{path}/{item['metadata']['name']}": item for path, found in items.items() for item in found}


def versions(client):
    return {path: item["metadata"]["resourceVersion"] for path, item in shared(client).items()}


def quiet(client):
    """Whether nobody writes on the objects for a while."""
    before = versions(client)
    time.sleep(QUIET_SECONDS)
    return versions(client) == before


def test_two_pools_share_queues_and_neither_undoes_what_the_other_does(stage, token, tmp_path):
    """Figures and deadlines are those of each pool; a lowered maximum is enforced in the pool that is over it."""
    client = stage.client()
    kubeconfig = stage.kubeconfig_for(token, "tenure")
    of_gpu = stage.kubeconfig_for(stage.token_of("tenure-gpu", "tenure-system"), "tenure-gpu")
    for pool, pods in ((None, 1), ("gpu", 3)):
        group, pods_made = of_group(f"of-{pool or 'default'}", pods, pool)
        client.create(GROUPS, group)
        client.create(SETS, pods_made)
    with (
        running(kubeconfig, tmp_path, "one") as first,
        running(of_gpu, tmp_path, "two", "--pool", "gpu") as second,
    ):

        def status(kind, name):
            return shared(client)[f"{kind}/{name}"].get("status", {})

        def of_pool(kind, name):
            return status(kind, name).get("nodePools", {}).get("gpu", {})

        wait_until(lambda: bound(client, "of-default") == 1 and bound(client, "of-gpu") == 3, "not all run", 100)
        queues = f"{TENURE}/queues"
        wait_until(lambda: status(queues, "team").get("allocated", {}).get("nvidia.com/gpu") == "1",
                   lambda: str(status(queues, "team")), 60)  # fmt: skip
        wait_until(lambda: of_pool(queues, "team").get("allocated", {}).get("nvidia.com/gpu") == "3",
                   lambda: str(status(queues, "team")), 60)  # fmt: skip
        wait_until(
            lambda: status(GROUPS, "of-default").get("running") == 1, lambda: str(status(GROUPS, "of-default")), 60
        )
        wait_until(lambda: status(GROUPS, "of-gpu").get("running") == 3, lambda: str(status(GROUPS, "of-gpu")), 60)
        pools = f"{TENURE}/nodepools"
        wait_until(lambda: status(pools, "gpu").get("conditions", [{}])[0].get("status") == "False",
                   lambda: str(status(pools, "gpu")), 60)  # fmt: skip
        assert "has the name of a DisruptionBudget" in status(pools, "gpu")["conditions"][0]["message"]
        wait_until(lambda: quiet(client), lambda: f"they write on and on: {shared(client)}", 200)
        client.patch(f"{queues}/team", {"spec": {"max": {"nvidia.com/gpu": 2}}})
        wait_until(lambda: of_pool(queues, "team").get("quotaPreemption", {}).get("deadline"),
                   lambda: str(status(queues, "team")), 60)  # fmt: skip
        assert "quotaPreemption" not in status(queues, "team")
        wait_until(lambda: [e.cause for e in log_of(client)] == ["quota"], lambda: str(log_of(client)), 60)
        budgets = f"{TENURE}/disruptionbudgets"
        assert status(budgets, "all")["evictions"] == 0, "it is of the pool default"
        assert bound(client, "of-default") == 1
        wait_until(lambda: quiet(client), lambda: f"they write on and on: {shared(client)}", 200)
        assert first.process.poll() is None
        assert second.process.poll() is None
