"""What ``kubectl get`` shows of queues, pod groups and pools while the scheduler runs."""

import pytest
from tests.kubernetes.test_rights import GPU, Scheduler, job, own, running
from tools.controlplane.process import wait_for

QUEUES = "/apis/tenure.dev/v1alpha1/queues"
POOLS = "/apis/tenure.dev/v1alpha1/nodepools"
GROUPS = "/apis/tenure.dev/v1alpha1/namespaces/team/podgroups"


@pytest.fixture
def cluster(plane, tmp_path):
    """Give a cluster on which a scheduler runs, for one try: what it leaves holds the node."""
    plane.add_namespace("team")
    plane.add_node("node-0", {"cpu": "16", "memory": "64Gi", GPU: "8"})
    plane.apply(
        own("NodePool", "default", {"scheduler": {}}),
        own("Queue", "research", {"max": {GPU: 8}}),
        own("Queue", "vision", {"parent": "research"}),
        own("Queue", "other", {}),
    )
    scheduler = Scheduler(plane, tmp_path)
    yield plane
    scheduler.stop()
    plane.put_back()


def grouped(name, group):
    made = job(name, "vision", 2)
    made["spec"]["template"]["metadata"]["labels"]["tenure.dev/pod-group"] = group
    return made


def test_figures_follow_what_runs(cluster):
    """Queues say what they and those below hold, groups how far they are; what has ended is not shown any longer."""
    client = cluster.client()
    cluster.apply(own("PodGroup", "pair", {"minMember": 2}, namespace="team"))
    cluster.apply(grouped("left", "pair"), grouped("right", "pair"))
    wait_for(lambda: running(client, "left") and running(client, "right"), "the pair to run")
    cluster.apply(job("large", "vision", 6))

    def status(path):
        return client.get(path).get("status", {})

    wait_for(lambda: status(f"{QUEUES}/research").get("allocated", {}).get(GPU) == "4", "the figures of the queue", 60)
    wait_for(lambda: counts(status(f"{QUEUES}/vision")) == (1, 1), "the queue to say that one runs and one waits", 60)
    vision = status(f"{QUEUES}/vision")
    assert vision["fairShare"][GPU] == "8"
    assert vision["conditions"][0]["type"] == "Accepted"
    assert status(f"{QUEUES}/other").get("allocated", {}) == {}
    wait_for(lambda: status(f"{GROUPS}/pair").get("running") == 2, "the figures of the group", 60)
    group = status(f"{GROUPS}/pair")
    assert (group["phase"], group["pending"]) == ("Running", 0)
    assert group["startedAt"]
    header, row = cluster.kubectl("get", "tq", "vision").splitlines()
    shown = dict(zip(header.split(), row.split(), strict=False))
    assert shown["PARENT"] == "research"
    assert "pair" in cluster.kubectl("get", "tpg", "-n", "team")
    wait_for(lambda: status(f"{POOLS}/default").get("nodes") == 1, "the figures of the pool", 60)
    assert status(f"{POOLS}/default")["leader"]
    cluster.kubectl("-n", "team", "delete", "job", "left", "right", "large")
    wait_for(lambda: status(f"{QUEUES}/vision")["allocated"] == {}, "the queue to hold nothing", 60)
    wait_for(lambda: status(f"{GROUPS}/pair")["running"] == 0, "the group to have no pods", 60)


def counts(status):
    return status.get("runningWorkloads"), status.get("pendingWorkloads")
