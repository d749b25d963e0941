"""Objects of frameworks on a real API server, and what their operators and kubelets do there, done by the test."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, NamedTuple

from tools.controlplane.client import ApiError

from tenure.model.manifests.workload_kind import CORE_GROUPS, built_in_kinds

PODS = "/api/v1/namespaces/default/pods"
SETS = "/apis/apps/v1/namespaces/default/statefulsets"
GPU = "nvidia.com/gpu"


def definition(group, version, kind, plural, scope):
    """Give a definition for objects of others that are read where they are installed; it takes anything."""
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    versions = [{"name": version, "served": True, "storage": True, "schema": schema}]
    names = {"kind": kind, "plural": plural}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{plural}.{group}",
            "annotations": {"api-approved.kubernetes.io": "unapproved, for tests"},
        },
        "spec": {"group": group, "scope": scope, "names": names, "versions": versions},
    }


OWNERS = [
    definition(kind.group, kind.version, kind.kind, kind.resource, "Namespaced")
    for kind in built_in_kinds()
    if kind.group not in CORE_GROUPS
]
"""The kinds of owners that are known and are not Kubernetes' own."""


def path_of(key):
    """Give the path of the objects of a kind in the namespace of all tests."""
    kind = built_in_kinds().by_key[key]
    return kind.path.replace(f"/{kind.resource}", f"/namespaces/default/{kind.resource}")


class PlannedPod(NamedTuple):
    """A pod as its operator makes it: of a ``driver``'s pod while that runs, or once the pods ``after`` run.

    ``through`` is the name of a StatefulSet that the driver's pod owns, and that owns this one: it is there with it.
    """

    body: dict[str, Any]
    driver: str | None = None
    after: tuple[str, ...] = ()
    through: str | None = None


class Operators:
    """What the operators of all frameworks do, one step at a time: they make pods, and what goes with them goes.

    ``mounts`` has the claims of pods that mount any.
    """

    def __init__(self, client):
        self.client = client
        self.made = {}
        self.plans = {}
        self.mounts = {}

    def create(self, key, name, spec, queue=""):
        """Create an object of a kind."""
        kind = built_in_kinds().by_key[key]
        labels = {"tenure.dev/queue": queue} if queue else {}
        body = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": name, "labels": labels}}
        USED.add(path_of(key))
        found = self.client.create(path_of(key), {**body, "spec": spec})
        self.made[name] = {
            "apiVersion": kind.api_version, "kind": kind.kind, "name": name, "uid": found["metadata"]["uid"],
            "controller": True,
        }  # fmt: skip
        return self.made[name]

    def wants(self, name, owner, gpus=1, *, driver=None, **labels):
        """Let a pod be there from now on: of an owner, or of a driver's pod while that runs."""
        amounts = {GPU: str(gpus)} if gpus else {}
        resources = {"requests": {"cpu": "100m", **amounts}, "limits": amounts}
        container = {"name": "main", "image": "none", "resources": resources}
        meta = {"name": name, "labels": labels, "ownerReferences": [owner]}
        self.keep({"metadata": meta, "spec": {"schedulerName": "tenure", "containers": [container]}}, driver=driver)

    def keep(self, body, *, driver=None, after=(), through=None):
        """Let a pod be there from now on, made anew whenever it has gone."""
        self.plans[body["metadata"]["name"]] = PlannedPod(body, driver, tuple(after), through)

    def act(self):
        """Let kubelets and operators do what is to do; gives whether anything was."""
        pods = {pod["metadata"]["name"]: pod for pod in self.client.get(PODS)["items"]}
        acted = False
        for name, pod in pods.items():
            if pod["metadata"].get("deletionTimestamp") or self.has_lost_its_driver(pod, pods):
                self.client.delete(f"{PODS}/{name}", {"gracePeriodSeconds": 0})
                acted = True
            elif pod["spec"].get("nodeName") and pod["status"]["phase"] == "Pending":
                status = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
                self.client.patch(f"{PODS}/{name}/status", status, "strategic")
                acted = True
        there = {pod["metadata"]["name"]: pod for pod in self.client.get(PODS)["items"]}
        for name in self.plans:
            if name not in there and (body := self.body(name, there)) is not None:
                with suppress(ApiError):
                    self.client.create(PODS, body)
                    acted = True
        return acted

    def has_lost_its_driver(self, pod, pods):
        """Whether the pod that a pod belongs to is no more."""
        (owner,) = pod["metadata"].get("ownerReferences", [{}])
        if owner.get("kind") != "Pod":
            return False
        driver = pods.get(owner["name"])
        return driver is None or driver["metadata"]["uid"] != owner["uid"] or "nodeName" not in driver["spec"]

    def body(self, name, there):
        """Give a pod as its operator makes it; None while what it comes after does not run."""
        planned = self.plans[name]
        running = {other for other, pod in there.items() if planned.through or pod["status"]["phase"] == "Running"}
        if not running.issuperset([planned.driver] if planned.driver else planned.after):
            return None
        meta, spec = dict(planned.body["metadata"]), dict(planned.body["spec"])
        if planned.driver is not None:
            uid = there[planned.driver]["metadata"]["uid"]
            owner = {"apiVersion": "v1", "kind": "Pod", "name": planned.driver, "uid": uid, "controller": True}
            meta["ownerReferences"] = [self.set_of(owner, planned) if planned.through else owner]
        if name in self.mounts:
            spec["volumes"] = [{"name": c, "persistentVolumeClaim": {"claimName": c}} for c in self.mounts[name]]
        return {"metadata": meta, "spec": {**spec, "terminationGracePeriodSeconds": 1}}

    def set_of(self, owner, planned):
        """Give a reference to the StatefulSet between a pod and its driver's, made anew for each of these."""
        path = f"{SETS}/{planned.through}"
        found = self.client.get(path) if self.client.exists(path) else None
        if found is not None and found["metadata"]["ownerReferences"][0]["uid"] != owner["uid"]:
            self.client.delete(path, {"propagationPolicy": "Background"})
            found = None
        if found is None:
            USED.add(SETS)
            labels = {"set": planned.through}
            template = {"metadata": {"labels": labels}, "spec": planned.body["spec"]}
            spec = {"serviceName": "none", "selector": {"matchLabels": labels}, "template": template}
            meta = {"name": planned.through, "ownerReferences": [owner]}
            made = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": meta, "spec": spec}
            found = self.client.create(SETS, made)
        return {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": planned.through, "controller": True,
                "uid": found["metadata"]["uid"]}  # fmt: skip

    def clear(self):
        """Delete all objects of the kinds that were ever used, and forget about them."""
        for path in sorted(USED):
            for item in self.client.get(path)["items"] if self.client.exists(path) else ():
                self.client.discard(f"{path}/{item['metadata']['name']}")
        self.made.clear()
        self.plans.clear()
        self.mounts.clear()


USED = set()
"""Paths of the objects that were created here."""
