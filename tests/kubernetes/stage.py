"""A cluster file put on a real API server, and what nodes and owners of pods do there, done by the test.

There are no controllers and no nodes: the stage says that bound pods run, that evicted ones have gone, and makes their
replacements. So what happens when is up to the test.
"""

from __future__ import annotations

import itertools
import re
import time
import warnings
from contextlib import contextmanager
from dataclasses import replace
from functools import cache

from tests.effort import tries
from tools.controlplane.client import ApiError

from tenure.clusters.kubernetes import keys
from tenure.clusters.kubernetes.cache.informers import Options
from tenure.clusters.kubernetes.client.access import find_access
from tenure.clusters.kubernetes.client.requests import Client
from tenure.clusters.kubernetes.cluster import KubernetesCluster
from tenure.clusters.kubernetes.read import eviction_log
from tenure.clusters.kubernetes.seals import NominationNote, Seal, condition_of
from tenure.model.cluster import DEFAULT_QUEUE
from tenure.model.fields.records import fields_of, record_of, write_field
from tenure.model.queue import Queue
from tenure.model.settings import Settings
from tenure.model.values.duration import format_time
from tenure.model.workload import Phase, TaskSpec, Workload

TENURE = "/apis/tenure.dev/v1alpha1"
NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
CLEARED = (
    "/api/v1/namespaces/default/pods", "/api/v1/nodes", f"{TENURE}/queues",
    f"{TENURE}/namespaces/default/podgroups", "/api/v1/namespaces/tenure-system/configmaps",
)  # fmt: skip
GROUP_FIELDS = (
    "queue", "preemptible", "min_member", "sub_groups", "min_sub_group", "topology", "staleness_grace_period",
    "expected_runtime", "requeue_delay", "preemption_delay", "checkpoint", "allow_preemption",
    "allow_preemption_until", "eviction_notice",
)  # fmt: skip
OWNER = {"apiVersion": "example.org/v1", "kind": "Owner", "name": "owner", "uid": "owner", "controller": True}
RUNS = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
"""What the kubelet says of a pod that runs."""

PLACED = (Phase.BOUND, Phase.RUNNING, Phase.TERMINATING)


@cache
def all_fields(cls):
    """Give the fields of a class, worked out once: its types say them, and to read these takes long."""
    return tuple(fields_of(cls))


def plain(cls, value, names=None):
    """Write some fields of an object as they stand in files."""
    found = {}
    for field in all_fields(cls):
        if names is None or field.attribute in names:
            written = write_field(field, value)
            if type(written) is not object:
                found[field.key] = written
    return found


def can_stage(cluster):
    """Whether everything that a cluster file says can be said on an API server."""
    tasks = [t for w in cluster.workloads for t in w.tasks]
    measured = any(n.usage for n in cluster.nodes) or any(t.usage for t in tasks)
    foreign = any(w.scheduler_name != "tenure" or w.owner_kind for w in cluster.workloads)
    volumes = all("(rbd)" in u for t in tasks for u in t.spec.unsupported)
    names = [n.name for n in (*cluster.nodes, *cluster.queues, *cluster.workloads, *tasks)]
    sayable = volumes and all(NAME.fullmatch(name) for name in names)
    return sayable and not (measured or foreign or cluster.disruption_budgets)


class Stage:
    """The test's hands on an API server."""

    def __init__(self, plane, namespace_account=True, also=()):
        self.client = plane.client()
        self.also = also
        self.classes = set()
        self.bodies = {}
        wait_until(self.is_served, "the new kinds are not served")
        if namespace_account and not self.client.exists("/api/v1/namespaces/default/serviceaccounts/default"):
            self.client.create("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})

    def is_served(self):
        """Whether the API server serves the kinds that were installed just now."""
        try:
            for path in CLEARED:
                self.client.get(path)
        except ApiError as error:
            if error.status not in (404, 429):
                raise
            return False
        return True

    def put(self, cluster):
        """Create everything of a cluster."""
        for node in cluster.nodes:
            self.add_node(node)
        for queue in cluster.queues:
            self.add_queue(queue)
        for workload in sorted(cluster.workloads, key=lambda w: w.created_at):
            self.add_workload(workload)
        if cluster.evictions:
            entries = [eviction_log.entry_of(e, "gone", "", None) for e in cluster.evictions]
            body = {"metadata": {"name": "tenure-evictions-default-0", "labels": {eviction_log.LABEL: "default"}},
                    "data": {eviction_log.DATA: eviction_log.write(entries)}}  # fmt: skip
            self.client.create("/api/v1/namespaces/tenure-system/configmaps", body)

    def clear(self):
        """Delete everything that a case may have left."""
        for path in CLEARED:
            self.client.delete(f"{path}?fieldSelector=metadata.name!%3Dkube-root-ca.crt", {"gracePeriodSeconds": 0})
        for path in self.also:
            for item in self.client.get(path)["items"]:
                self.client.discard(f"{path}/{item['metadata']['name']}")

    def add_node(self, node):
        """Create a node, ready or not."""
        known = plain(type(node), node)
        amounts = {"pods": "10000"} | {k: str(v) for k, v in known.get("allocatable", {}).items()}
        labels = dict(node.labels)
        if node.gpu_memory:
            labels[keys.GPU_MEMORY_LABEL] = str(node.gpu_memory >> 20)
        if node.drain:
            labels[keys.DRAIN] = "true"
        ready = {"type": "Ready", "status": "True" if node.ready else "False"}
        body = {
            "metadata": {"name": node.name, "labels": labels},
            "spec": {"unschedulable": node.unschedulable},
            "status": {"allocatable": amounts, "capacity": amounts, "conditions": [ready]},
        }
        self.client.create("/api/v1/nodes", body)
        listed = [{"effect": t.effect, "key": t.key, "value": t.value} for t in node.taints]
        taints = {"spec": {"taints": listed or None}}  # admission says that a new node is not ready
        self.client.patch(f"/api/v1/nodes/{node.name}", taints)

    def add_queue(self, queue):
        """Create a queue, with what the scheduler wrote on it."""
        names = {f.attribute for f in all_fields(Queue)} - {"name", "created_at", "status"}
        body = {"apiVersion": "tenure.dev/v1alpha1", "kind": "Queue", "metadata": {"name": queue.name},
                "spec": plain(Queue, queue, names)}  # fmt: skip
        self.client.create(f"{TENURE}/queues", body)
        if queue.status is not None:
            status = record_of(type(queue.status)).encode(queue.status)
            self.client.patch(f"{TENURE}/queues/{queue.name}/status", {"status": status})

    def add_workload(self, workload):
        """Create a pod group and its pods, with what became of them so far."""
        spec = plain(Workload, workload, GROUP_FIELDS)
        if workload.min_member is None and not workload.sub_groups:
            spec["minMember"] = max(1, len(workload.tasks))
        annotations = dict(workload.annotations)
        body = {"apiVersion": "tenure.dev/v1alpha1", "kind": "PodGroup", "spec": spec,
                "metadata": {"name": workload.name, "annotations": annotations}}  # fmt: skip
        self.client.create(f"{TENURE}/namespaces/{workload.namespace}/podgroups", body)
        for number, task in enumerate(workload.tasks):
            self.add_pod(workload, number, task)

    def add_pod(self, workload, number, task):
        """Create a pod; bind it, let it run, promise it a place or let it terminate, as its task says."""
        path = f"/api/v1/namespaces/{workload.namespace}/pods"
        ordered = task.order if task.order is not None else number
        annotations = {**task.annotations, keys.TASK_ORDER: str(ordered)}
        if task.role:
            annotations[keys.ROLE] = task.role
        annotations |= share_annotations(task.spec)
        labels = {**dict(task.spec.labels), keys.POD_GROUP: workload.name}
        if task.sub_group:
            labels[keys.SUB_GROUP] = task.sub_group
        body = {
            "metadata": {"name": task.name, "labels": labels, "annotations": annotations, "ownerReferences": [OWNER]},
            "spec": self.pod_spec(workload, task),
        }
        self.bodies[workload.namespace, task.name] = body
        wait_until(lambda: self.admits(path, body), "the priority class is not seen")
        self.play(workload, task)

    def admits(self, path, body):
        """Create a pod, unless admission does not know its new priority class yet."""
        try:
            self.client.create(path, body)
        except ApiError as error:
            if error.status != 403:
                raise
            return False
        return True

    def play(self, workload, task):
        """Let become of a pod what its task says."""
        path = f"/api/v1/namespaces/{workload.namespace}/pods/{task.name}"
        if task.nominated is not None:
            promised = task.nominated
            note = NominationNote(promised.node, format_time(promised.at), promised.devices)
            known = [condition_of(Seal(nomination=note), workload.created_at)]
            status = {"nominatedNodeName": promised.node, "conditions": known}
            self.client.patch(f"{path}/status", {"status": status}, "strategic")
        if task.phase in PLACED:
            annotations = {}
            if workload.started_at is not None:
                annotations[keys.STARTED] = format_time(workload.started_at)
            if task.devices:
                annotations[keys.DEVICES] = ",".join(map(str, task.devices))
            meta = {"name": task.name, "annotations": annotations}
            self.client.create(f"{path}/binding", {"metadata": meta, "target": {"kind": "Node", "name": task.node}})
            conditions = [condition_of(sealed_as(workload, task), workload.created_at)]
            if workload.started_at is not None:
                since = format_time(workload.started_at)
                conditions.append({"type": "PodScheduled", "status": "True", "lastTransitionTime": since})
            status = {"conditions": conditions}
            if task.phase is not Phase.BOUND:
                status = {"conditions": [*conditions, *RUNS["conditions"]], "phase": RUNS["phase"]}
            self.client.patch(f"{path}/status", {"status": status}, "strategic")
        if task.phase in (Phase.SUCCEEDED, Phase.FAILED):
            self.client.patch(f"{path}/status", {"status": {"phase": str(task.phase)}})
        if task.phase is Phase.TERMINATING:
            self.client.delete(path, {"gracePeriodSeconds": 30})

    def run(self, namespace, name):
        """Let a bound pod run."""
        self.client.patch(f"/api/v1/namespaces/{namespace}/pods/{name}/status", {"status": RUNS}, "strategic")

    def kubelet(self):
        """Let what is bound run, and what terminates be gone and made anew by its owner; gives whether anything was."""
        pods = self.client.get("/api/v1/namespaces/default/pods")["items"]
        acted = False
        for pod in pods:
            meta = pod["metadata"]
            name, path = meta["name"], f"/api/v1/namespaces/default/pods/{meta['name']}"
            if meta.get("deletionTimestamp"):
                self.client.delete(path, {"gracePeriodSeconds": 0, "preconditions": {"uid": meta["uid"]}})
                self.client.create("/api/v1/namespaces/default/pods", self.bodies["default", name])
                acted = True
            elif pod["spec"].get("nodeName") and pod["status"]["phase"] == "Pending":
                self.run("default", name)
                acted = True
        return acted

    def pod_spec(self, workload, task):
        """Give the spec of a pod that asks for what its task asks for."""
        spec = plain(TaskSpec, task.spec)
        amounts = {k: str(v) for k, v in spec.get("requests", {}).items() if k != "pods"}
        limits = {k: v for k, v in amounts.items() if "/" in k}
        ports = [{"containerPort": p.port, "hostPort": p.port, "protocol": p.protocol} for p in task.spec.host_ports]
        container = {
            "name": "main",
            "image": "none",
            "resources": {"requests": amounts, "limits": limits},
            "ports": ports,
        }
        made = {
            "schedulerName": "tenure",
            "containers": [container],
            "terminationGracePeriodSeconds": 30 if task.grace_period is None else task.grace_period // 1_000_000,
            "priorityClassName": self.priority_class(workload.priority),
            **{
                k: spec[k]
                for k in ("nodeSelector", "affinity", "tolerations", "topologySpreadConstraints")
                if k in spec
            },
        }
        if task.phase is Phase.GATED:
            made["schedulingGates"] = [{"name": "example.org/held"}]
        if task.spec.unsupported:
            made["volumes"] = [{"name": "data", "rbd": {"monitors": ["nowhere"], "image": "data"}}]
        return made

    def priority_class(self, value):
        """Give the name of a priority class of this value, made when it is first needed."""
        name = f"p{value}".replace("-", "minus-")
        if name not in self.classes:
            self.classes.add(name)
            try:
                self.client.create(
                    "/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": name}, "value": value}
                )
            except ApiError as error:
                if error.status != 409:
                    raise
        return name

    def advance(self, cluster):
        """Let time pass as on the embedded cluster: what is bound runs, and what was evicted is pending again."""
        for workload in cluster.workloads:
            for number, task in enumerate(workload.tasks):
                if task.phase is Phase.BOUND:
                    self.run(workload.namespace, task.name)
                elif task.phase is Phase.TERMINATING and not task.never_terminates:
                    path = f"/api/v1/namespaces/{workload.namespace}/pods/{task.name}"
                    self.client.delete(path, {"gracePeriodSeconds": 0})
                    back = replace(task, phase=Phase.PENDING, node=None, devices=(), nominated=None)
                    self.add_pod(workload, number, back)


def sealed_as(workload, task):
    """Give what the scheduler would have recorded on a pod when it bound it."""
    return Seal(
        queue=workload.queue or DEFAULT_QUEUE,
        started="" if workload.started_at is None else format_time(workload.started_at),
        devices=task.devices,
        fixed=not workload.is_preemptible,
        stale="" if workload.stale_since is None else format_time(workload.stale_since),
    )


def share_annotations(spec):
    """Give the annotations by which a pod asks for a part of a GPU."""
    share = spec.gpu_share
    if share is None:
        return {}
    how = (
        {"tenure.dev/gpu-fraction": f"{share.milli}m"} if share.milli else {"tenure.dev/gpu-memory": str(share.memory)}
    )
    return {**how, "tenure.dev/gpu-devices": str(share.devices)}


PATIENCE = 6.0
"""How many times as long as it takes on a quiet machine a test waits: what others do there fails no test."""


def each_end(writes):
    """Give at which of so many writes a scheduler ends, before and after it: at every third one.

    By hand it is at each of them, time after time until there are a hundred ends: threads race differently each time.
    """
    every = list(itertools.product(range(1, writes + 1, tries(3, 1)), ("before", "after")))
    return every * tries(1, -(-100 // len(every)))


def pause_after(waited):
    """Give how long to wait before the next look: each look asks an API server, and most find nothing new."""
    return min(0.4, max(0.05, waited / 8))


LONG = 60.0
"""Seconds after which a wait that ended well is told of all the same: what it waited for may have been stuck."""


@contextmanager
def watched(plane):
    """Give the cluster of a control plane as the scheduler sees it, in this process."""
    made = KubernetesCluster(Client(find_access(str(plane.kubeconfig))), Options(), Settings())
    made.start()
    try:
        wait_until(made.ready, "it does not see the cluster")
        yield made
    finally:
        made.close()


def wait_until(holds, what, seconds=30.0):
    """Wait until something holds; ``seconds`` are enough on a quiet machine."""
    began = time.monotonic()
    waited = 0.0
    while not holds():
        waited = time.monotonic() - began
        assert waited < PATIENCE * seconds, what() if callable(what) else what
        time.sleep(pause_after(waited))
    if waited > LONG:
        warnings.warn(f"waited {waited:.0f} s before it ended that {what() if callable(what) else what}", stacklevel=2)
