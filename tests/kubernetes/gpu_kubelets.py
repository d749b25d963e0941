"""What kubelets with GPUs do, done by the test: each chooses the devices of pods that ask for whole ones."""

from __future__ import annotations

import random

from tools.controlplane.client import ApiError

from tenure.clusters.kubernetes import keys
from tenure.clusters.kubernetes.gpus.environment import VARIABLE

GPU = "nvidia.com/gpu"


class GpuKubelets:
    """The kubelets of a few nodes with as many devices each, whose names are unlike their numbers in any plan."""

    def __init__(self, client, nodes, devices, seed):
        self.client = client
        self.chance = random.Random(seed)
        self.free = {
            node: {f"GPU-{node}-{number:x}" for number in self.chance.sample(range(16**6), devices)} for node in nodes
        }
        self.held = {}
        self.seen = {}
        self.refused = []

    def act(self):
        """Start what is bound, end what terminates; gives whether anything was to do."""
        acted = False
        for pod in self.client.get("/api/v1/pods")["items"]:
            meta, node = pod["metadata"], pod["spec"].get("nodeName")
            if node not in self.free:
                continue
            if meta.get("deletionTimestamp"):
                self.end(pod)
                acted = True
            elif meta["uid"] not in self.held and pod["status"]["phase"] == "Pending":
                self.start(pod)
                acted = True
        return acted

    def end(self, pod):
        """Let a pod be gone; its devices are free then."""
        meta = pod["metadata"]
        self.free[pod["spec"]["nodeName"]] |= self.held.pop(meta["uid"], set())
        self.seen.pop(meta["uid"], None)
        self.client.delete(f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}", {"gracePeriodSeconds": 0})

    def start(self, pod):
        """Admit a pod with whole devices of its own, or refuse it; its containers see what they are given."""
        meta, node = pod["metadata"], pod["spec"]["nodeName"]
        limits = pod["spec"]["containers"][0].get("resources", {}).get("limits", {})
        wanted, free = int(limits.get(GPU, 0)), sorted(self.free[node])
        if wanted > len(free):
            self.refused.append(meta["name"])
            self.tell(pod, {"phase": "Failed", "reason": "UnexpectedAdmissionError"})
            self.held[meta["uid"]] = set()
            return
        given = set(self.chance.sample(free, wanted))
        self.free[node] -= given
        self.held[meta["uid"]] = given
        self.seen[meta["uid"]] = frozenset(given) or self.environment(pod)
        status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        if pod["spec"].get("initContainers"):
            ended = {"terminated": {"exitCode": 0, "message": ",".join(sorted(given)), "containerID": "c://x"}}
            status["initContainerStatuses"] = [
                {"name": "tell", "state": ended, "ready": True, "restartCount": 0, "image": "x", "imageID": "x"}
            ]
        self.tell(pod, status)

    def environment(self, pod):
        """Give the devices that the environment names, read from where the spec says as a kubelet does."""
        variables = {v["name"]: v for v in pod["spec"]["containers"][0].get("env", ())}
        if VARIABLE not in variables:
            return frozenset()
        path = variables[VARIABLE]["valueFrom"]["fieldRef"]["fieldPath"]
        assert path == f"metadata.annotations['{keys.VISIBLE_DEVICES}']"
        told = pod["metadata"].get("annotations", {}).get(keys.VISIBLE_DEVICES, "")
        assert told, f"{pod['metadata']['name']} starts and is told of no device"
        return frozenset(told.split(","))

    def tell(self, pod, status):
        meta = pod["metadata"]
        path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}/status"
        try:
            self.client.patch(path, {"status": status}, "strategic")
        except ApiError as error:
            if error.status != 404:
                raise
