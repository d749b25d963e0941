"""Kubernetes' own way to say that pods start together: PodGroup and Workload of ``scheduling.k8s.io``."""

from __future__ import annotations

import time

from tests.kubernetes.running import JOBS, SETS, bound, gang, job, queue, running
from tests.kubernetes.stage import wait_until

GATES = {"gates": ("GenericWorkload",), "apis": ("scheduling.k8s.io/v1beta1",)}
GROUPS = "/apis/scheduling.k8s.io/v1beta1/namespaces/default"
GPU = "nvidia.com/gpu"


def test_the_gangs_of_kubernetes_start_whole_or_not_at_all(start_plane, tmp_path):
    """A PodGroup's ``minCount`` holds back three pods where two fit, and a Workload lets two of a Job of four start."""
    plane = start_plane(**GATES)
    plane.install_tenure()
    plane.add_node("node-0", {"cpu": "16", "memory": "64Gi", GPU: "2"})
    client = plane.client()
    client.create("/apis/tenure.dev/v1alpha1/queues", queue("team"))
    policy = {"schedulingPolicy": {"gang": {"minCount": 3}}}
    client.create(f"{GROUPS}/podgroups", {"metadata": {"name": "three"}, "spec": policy})
    three = gang("three", "team", 3)
    del three["spec"]["template"]["metadata"]["annotations"]["tenure.dev/min-member"]
    three["spec"]["template"]["spec"]["schedulingGroup"] = {"podGroupName": "three"}
    client.create(SETS, three)
    token = plane.token_of("tenure", "tenure-system")
    with running(plane.kubeconfig_for(token, "tenure"), tmp_path):
        wait_until(lambda: said(client) == {"Unschedulable"}, lambda: f"its pods say {said(client)}", 60)
        assert bound(client, "three") == 0
        whose = {"apiGroup": "batch", "kind": "Job", "name": "four"}
        template = {"name": "main", "schedulingPolicy": {"gang": {"minCount": 2}}}
        spec = {"controllerRef": whose, "podGroupTemplates": [template]}
        client.create(f"{GROUPS}/workloads", {"metadata": {"name": "four"}, "spec": spec})
        client.create(JOBS, job("four", "team", 4))
        wait_until(lambda: bound(client, "four") == 2, lambda: f"{bound(client, 'four')} of the Job start", 60)
        client.delete(f"{JOBS}/four", {"propagationPolicy": "Background"})
        time.sleep(2)
        assert bound(client, "three") == 0
        plane.add_node("node-1", {"cpu": "16", "memory": "64Gi", GPU: "1"})
        wait_until(lambda: bound(client, "three") == 3, "the group does not start where there is room", 60)


def said(client):
    pods = client.get("/api/v1/namespaces/default/pods?labelSelector=app%3Dthree")["items"]
    found = [c for p in pods for c in p["status"].get("conditions", ()) if c["type"] == "PodScheduled"]
    return {c["reason"] for c in found} if len(found) == 3 else set()
