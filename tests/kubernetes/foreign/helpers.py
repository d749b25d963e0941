"""A control plane with the default kube-scheduler, and what tests of the rescheduler beside it share."""

from __future__ import annotations

from contextlib import contextmanager

from tests.kubernetes.running import PODS, SETS, TENURE, clear, pods_of
from tests.kubernetes.stage import wait_until

from tenure.clusters.kubernetes.external import reservations

ACCOUNT = "system:serviceaccount:tenure-system:tenure"
OWN_PODS = "/api/v1/namespaces/tenure-system/pods"
MAPS = "/api/v1/namespaces/tenure-system/configmaps"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
BUDGET_RULES = f"{TENURE}/disruptionbudgets"
RESCHEDULER = {"schedulers": ["default-scheduler"], "pendingFor": "1s"}


@contextmanager
def filled(plane):
    """Give a client, on two nodes of 10 cores, 4 of each in use: there is no room for 9, and it can be made.

    Tenure's own replicas are simulated there too, and take a quarter of a core each. They are more urgent than all
    others, so they land first: later they would push others out.
    """
    made = plane.client()
    try:
        for name in ("node-0", "node-1"):
            plane.add_node(name, {"cpu": "10", "memory": "32Gi"})
        wait_until(lambda: all(is_ready(n) for n in made.get("/api/v1/nodes")["items"]), "the nodes are not ready", 30)
        wait_until(lambda: len(landed(made, OWN_PODS)) == 2, "Tenure's replicas do not land", 30)
        for name in ("small-a", "small-b"):
            spread(made, name)
        yield made
    finally:
        for budget in made.get(BUDGETS)["items"]:
            made.delete(f"{BUDGETS}/{budget['metadata']['name']}")
        clear(plane.client())


def spread(client, name):
    """Run two pods on two nodes: kube-scheduler would rather have them apart, once it has seen both nodes."""
    for _ in range(5):
        client.create(SETS, replicas(name, 2, 2, terminationGracePeriodSeconds=1))
        wait_until(lambda: len(nodes_of(client, name)) == 2, f"{name} does not land", 60)
        if len(set(nodes_of(client, name))) == 2:
            return
        for path in (f"{SETS}/{name}", *(f"{PODS}/{p['metadata']['name']}" for p in pods_of(client, name))):
            client.discard(path, {"gracePeriodSeconds": 0, "propagationPolicy": "Background"})
        wait_until(lambda: not pods_of(client, name) and not client.exists(f"{SETS}/{name}"), f"{name} does not go", 60)
    raise AssertionError(f"{name} is not spread")


def replicas(name, cpu, count=1, **spec):
    """Give a ReplicaSet for the default scheduler."""
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": str(cpu)}}}
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container], **spec}}
    body = {"replicas": count, "selector": {"matchLabels": {"app": name}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": name}, "spec": body}


def thieves(count, **spec):
    """Give pods that kube-scheduler serves first, and for which Tenure makes no room: it does not evaluate theirs."""
    volumes = [{"name": "data", "portworxVolume": {"volumeID": "data"}}]
    return replicas("thief", 6, count, priorityClassName="thief", volumes=volumes, **spec)


def settle(client, **settings):
    """Give the node pool its settings."""
    body = {"scheduler": {"rescheduler": RESCHEDULER, **settings}}
    item = {"apiVersion": "tenure.dev/v1alpha1", "kind": "NodePool", "metadata": {"name": "default"}, "spec": body}
    client.create(f"{TENURE}/nodepools", item)


def landed(client, pods):
    """Give the nodes of the pods of a namespace that are on one."""
    return [p["spec"]["nodeName"] for p in client.get(pods)["items"] if p["spec"].get("nodeName")]


def nodes_of(client, name):
    return [p["spec"]["nodeName"] for p in pods_of(client, name) if p["spec"].get("nodeName")]


def seen(client, *names):
    """Say where the pods of workloads are and what is kept, for a wait that is in vain."""
    pods = [p for name in names for p in pods_of(client, name)]
    told = [
        f"{p['metadata']['name']} on {p['spec'].get('nodeName')}, deleted {p['metadata'].get('deletionTimestamp')}, "
        f"{p['metadata'].get('annotations')}, {p['status'].get('conditions')}"
        for p in pods
    ]
    said = [f"{e['reason']}: {e['note']}" for e in client.get("/apis/events.k8s.io/v1/events")["items"]
            if e.get("reportingController", "").startswith("tenure")]  # fmt: skip
    return "\n".join([*told, f"tainted {tainted(client)}, kept {record(client)}", *said])


def is_ready(node):
    """Whether pods may land on a node."""
    ready = any(c["type"] == "Ready" and c["status"] == "True" for c in node["status"].get("conditions", ()))
    return ready and not node["spec"].get("taints")


def tainted(client):
    nodes = client.get("/api/v1/nodes")["items"]
    return [n["metadata"]["name"] for n in nodes
            if any(t["key"] == reservations.TAINT for t in n["spec"].get("taints", ()))]  # fmt: skip


def record(client):
    """Give the ConfigMap by which something is kept, if there is one."""
    found = [m for m in client.get(MAPS)["items"] if m["metadata"]["name"].startswith("tenure-moves")]
    return found[0] if found else None


def nothing_is_left(client):
    return not tainted(client) and record(client) is None


def events(client, reason):
    return [e for e in client.get("/apis/events.k8s.io/v1/events")["items"] if e["reason"] == reason]


def status_of(client, name):
    return client.get(f"{BUDGET_RULES}/{name}").get("status", {})


def place(plane, client, node, body):
    """Create pods on a node, by closing all others meanwhile."""
    others = [n["metadata"]["name"] for n in client.get("/api/v1/nodes")["items"] if n["metadata"]["name"] != node]
    close(plane, others)
    is_pod = body["kind"] == "Pod"
    client.create(PODS if is_pod else SETS, body)
    name = body["metadata"]["name"]
    wait_until(lambda: nodes_of(client, name) == [node], f"{name} does not run on {node}", 30)
    plane.kubectl("uncordon", *others)


def close(plane, nodes):
    """Cordon nodes, and wait until kube-scheduler has heard of it: a pod that needs nothing finds no room there."""
    plane.kubectl("cordon", *nodes)
    client = plane.client()
    wait_until(lambda: _is_refused(client, nodes), "kube-scheduler hears nothing of closed nodes", 60)


def _is_refused(client, nodes):
    """Tell whether kube-scheduler refuses a pod that may land on these nodes alone."""
    probe = fixed("probe", 0)
    probe["spec"] |= only(*nodes)
    path = f"{PODS}/{client.create(PODS, probe)['metadata']['name']}"
    try:
        wait_until(lambda: _condition(client.get(path)), "kube-scheduler says nothing of a pod", 60)
        return _condition(client.get(path))["status"] == "False"
    finally:
        client.delete(path, {"gracePeriodSeconds": 0})
        wait_until(lambda: not client.exists(path), "a pod that is forced to go stays", 30)


def _condition(pod):
    """Give what kube-scheduler says of a pod, if it has said anything."""
    return next((c for c in pod["status"].get("conditions", ()) if c["type"] == "PodScheduled"), None)


def only(*nodes):
    """Give the part of a pod's spec that lets it run on some nodes alone."""
    terms = [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": list(nodes)}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return {"affinity": {"nodeAffinity": required}}


def fixed(name, cpu):
    """Give a pod that nobody would recreate, and which is never moved for that."""
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": str(cpu)}}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": name}},
            "spec": {"containers": [container]}}  # fmt: skip


def small(client):
    """Give the small pods by uid."""
    return {pod["metadata"]["uid"]: pod for name in ("small-a", "small-b") for pod in pods_of(client, name)}


def calls(plane):
    """Give what the service account asked for: group, resource, verb, and the answer's code."""
    for event in plane.audit(ACCOUNT):
        about = event.get("objectRef")
        if about is not None:
            resource = "/".join(filter(None, (about["resource"], about.get("subresource"))))
            yield about.get("apiGroup", ""), resource, event["verb"], event["responseStatus"]["code"]


def written(made):
    """Give what was written of pods, nodes and records."""
    writes = {(resource, verb) for _, resource, verb, _ in made if verb in ("create", "update", "patch", "delete")}
    return {call for call in writes if call[0].startswith(("pods", "nodes", "configmaps"))}
