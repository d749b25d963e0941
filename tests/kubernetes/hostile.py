"""Objects of a tenant that tries everything: each field that it may write, with values that an API server admits."""

from __future__ import annotations

import json
import random
import threading
from contextlib import suppress

from tools.controlplane.client import ApiError

from tenure.clusters.kubernetes import keys

GPU = "nvidia.com/gpu"
NAMESPACE = "evil"
NODE = "evil-node"

ANNOTATIONS = sorted(
    {
        *keys.WRITTEN, keys.MIN_MEMBER, keys.TASK_ORDER, keys.SUB_GROUP, keys.ROLE, keys.NOT_BEFORE, keys.MIRROR,
        "tenure.dev/gpu-fraction", "tenure.dev/gpu-memory", "tenure.dev/gpu-devices", "tenure.dev/expected-runtime",
        "tenure.dev/requeue-delay", "tenure.dev/checkpoint-interval", "tenure.dev/restart-overhead",
        "tenure.dev/eviction-ack", "tenure.dev/preemptible", "kai.scheduler/preemptibility", "pod-group-name",
        "kai.scheduler/expected-runtime", "volcano.sh/requeue-delay", "volcano.sh/requeue-not-before",
        "yunikorn.apache.org/allow-preemption", "cluster-autoscaler.kubernetes.io/safe-to-evict",
        "karpenter.sh/do-not-disrupt", "tenure.dev/queue", "tenure.dev/node-pool", "tenure.dev/drain",
    }
)  # fmt: skip
LABELS = (
    "tenure.dev/queue", "kai.scheduler/queue", "queue", keys.POD_GROUP, keys.POOL, keys.SUB_GROUP, "app",
    "pod-template-hash", "jobset.sigs.k8s.io/jobset-name", "scheduling.x-k8s.io/pod-group",
    "batch.kubernetes.io/job-completion-index", "apps.kubernetes.io/pod-index", "tenure.dev/preemptible",
    "app.kubernetes.io/name",
)  # fmt: skip
LABEL_VALUES = (
    "honest", "evil", "default", "none", "a", "a.job", "g", "0", "9" * 63, "tenure", "true", "x" * 63, "",
    "tenure-unknown",
)  # fmt: skip
TEXTS = (
    "[" * 100_000, '{"a":' * 50_000, "9" * 5_000, "-" + "9" * 5_000, "x" * 200_000, "\0", "a\nb\x1b[2J\u202e",
    "1e999999",
    "٣", "9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z", "2026-11-20T09:59:59Z", "292000y", "2500000h", "-1h", "0",
    "1",
    "-1", "true", "false", "null", "{}", "[]", "0,1,2", "99999999", ",".join(["0"] * 5000), "../../x", "",
    "500m", "2147483647", "originator", "preemptible", "non-preemptible", "g", "1.5", "1Ei", "NaN",
    json.dumps({"node": NODE, "at": "9999-01-01T00:00:00Z", "devices": [99], "needs": ["u"] * 9}),
    json.dumps({"node": "honest-0", "at": "2026-11-20T09:59:59Z"}),
    json.dumps({"deadline": "9999-01-01T00:00:00Z", "cause": "x", "to": "honest-0", "devices": [99]}),
    json.dumps({"deadline": "2026-11-20T10:00:00Z", "cause": "x", "for": "honest/w-0"}),
)  # fmt: skip
QUANTITIES = (
    "0", "1", "100m", "1n", "1.1Gi", "1e3", "9223372036854775807", "7Ei", "999999999999", "0.000000001", "1500u", "3k",
)  # fmt: skip
RESOURCES = ("cpu", "memory", GPU, "ephemeral-storage", "hugepages-2Mi", "example.com/x", "amd.com/gpu", "pods")
NUMBERS = (0, 1, -1, 2, 7, 99, 10**6, 2**31 - 1, 2**62, 2**63 - 1)
OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
TOPOLOGIES = ("kubernetes.io/hostname", "topology.kubernetes.io/zone", "evil", "none")
VOLUMES = (
    {"emptyDir": {}}, {"persistentVolumeClaim": {"claimName": "c"}}, {"nfs": {"server": "s", "path": "/"}},
    {"csi": {"driver": "d"}}, {"ephemeral": {"volumeClaimTemplate": {"spec": {}}}}, {"hostPath": {"path": "/"}},
)  # fmt: skip
OWNERS = ("DaemonSet", "Node", "Job", "ReplicaSet", "StatefulSet", "RayCluster", "JobSet", "Deployment", "Queue")


class Tenant:
    """Makes objects by chance; the same ones for the same ``random``."""

    def __init__(self, random):
        self.random = random
        self.count = 0

    def some(self, values, most=4):
        """Give a few of some values."""
        return [self.random.choice(values) for _ in range(self.random.randint(0, most))]

    def maybe(self, make, chance=0.3):
        """Give what is made, or nothing."""
        return make() if self.random.random() < chance else None

    def selector(self):
        """Give a label selector, at times one with very many values."""
        many = self.random.random() < 0.1
        expressions = [
            {"key": self.random.choice(LABELS), "operator": self.random.choice(OPERATORS[:2]),
             "values": [str(n) for n in range(2000 if many else 2)]}
            for _ in self.some("ab", 2)
        ]  # fmt: skip
        return {
            "matchLabels": {self.random.choice(LABELS): "a" for _ in self.some("a", 2)},
            "matchExpressions": expressions,
        }

    def pod_term(self):
        """Give a term of affinity towards pods."""
        return {
            "topologyKey": self.random.choice(TOPOLOGIES),
            **({"labelSelector": self.selector()} if self.random.random() < 0.8 else {}),
            **({"namespaceSelector": self.random.choice([{}, self.selector()])} if self.random.random() < 0.3 else {}),
            **({"namespaces": self.some(["honest", "evil"])} if self.random.random() < 0.3 else {}),
            **({"matchLabelKeys": self.some(LABELS)} if self.random.random() < 0.2 else {}),
        }

    def affinity(self):
        """Give an affinity: of nodes, towards pods and away from them."""
        count = self.random.choice([1, 2, 9, 200])
        key = self.random.choice(["requiredDuringSchedulingIgnoredDuringExecution", "preferred"])
        terms = [self.pod_term() for _ in range(count)]
        weighted = [{"weight": 1 + n % 100, "podAffinityTerm": term} for n, term in enumerate(terms)]
        pods = {key: terms} if key != "preferred" else {"preferredDuringSchedulingIgnoredDuringExecution": weighted}
        expression = {
            "key": "evil",
            "operator": self.random.choice(OPERATORS),
            "values": [self.random.choice(TEXTS[15:20])],
        }
        node_terms = [{"matchExpressions": [expression] * self.random.choice([1, 50])}] * self.random.choice([1, 90])
        node = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": node_terms}}
        return {
            self.random.choice(["podAffinity", "podAntiAffinity"]): pods,
            **({"nodeAffinity": node} if count == 1 else {}),
        }

    def requests(self):
        """Give what a container asks for."""
        few = {self.random.choice(RESOURCES): self.random.choice(QUANTITIES) for _ in range(self.random.randint(0, 3))}
        if self.random.random() < 0.05:
            few |= {f"example.com/r{self.random.randrange(10**6)}": "1" for _ in range(100)}
        return {"requests": few}

    def metadata(self, name):
        """Give metadata: labels, annotations and owners."""
        labels = {self.random.choice(LABELS): self.random.choice(LABEL_VALUES) for _ in self.some("abcd", 5)}
        if self.random.random() < 0.02:
            labels |= {f"example.com/l{n}": "x" * 60 for n in range(5000)}
        owner = {
            "kind": self.random.choice(OWNERS), "name": self.random.choice(["a", "g", "x-5d4f", "y" * 200]),
            "uid": self.random.choice(["u1", "u2", "", "uid-w-0"]), "controller": self.random.random() < 0.8,
            "apiVersion": "batch/v1",
        }  # fmt: skip
        made = {
            "name": name, "namespace": NAMESPACE, "uid": f"uid-{name}", "resourceVersion": str(1000 + self.count),
            "creationTimestamp": self.random.choice(["2026-11-20T09:00:00Z", "2026-11-20T10:00:00Z"]), "labels": labels,
            "annotations": {self.random.choice(ANNOTATIONS): self.random.choice(TEXTS) for _ in self.some("abcdef", 6)},
        }  # fmt: skip
        if self.random.random() < 0.6:
            made["ownerReferences"] = [owner] * self.random.choice([1, 1, 3])
        if self.random.random() < 0.1:
            made["deletionTimestamp"] = "2026-11-20T10:00:30Z"
            made["deletionGracePeriodSeconds"] = self.random.choice(NUMBERS)
        return made

    def pod(self):
        """Give a pod that waits, runs, ends or goes."""
        self.count += 1
        runs = self.random.random() < 0.5
        container = {
            "name": "c",
            "resources": self.requests(),
            "ports": [{"hostPort": n} for n in self.some([1, 80, 65535])],
        }
        spec = {
            "schedulerName": self.random.choice(["tenure"] * 4 + ["default-scheduler", "x"]),
            "containers": [container] * self.random.choice([1, 1, 1, 40]),
            "priority": self.random.choice([0, 50, 100, 2_000_000_000, -(2**31)]),
            "priorityClassName": self.random.choice(["", "high", "none"]),
            "terminationGracePeriodSeconds": self.random.choice(NUMBERS),
            "nodeSelector": {"evil": "true"} if self.random.random() < 0.5 else {},
            "tolerations": [{"operator": "Exists"}] * self.random.choice([0, 1, 5000]),
            "volumes": [{"name": f"v{n}", **v} for n, v in enumerate(self.some(VOLUMES))],
        }
        for key, make in (
            ("affinity", self.affinity),
            ("initContainers", lambda: [{"name": "i", "resources": self.requests(), "restartPolicy": "Always"}]),
            ("overhead", lambda: {"cpu": self.random.choice(QUANTITIES)}),
            ("schedulingGates", lambda: [{"name": "x"}]),
            ("resourceClaims", lambda: [{"name": "r"}]),
            ("schedulingGroup", lambda: {"podGroupName": "g"}),
            ("topologySpreadConstraints", lambda: [
                {"maxSkew": self.random.choice([1, 2**31 - 1]), "topologyKey": self.random.choice(TOPOLOGIES),
                 "whenUnsatisfiable": "DoNotSchedule", "labelSelector": self.selector()}
            ] * self.random.choice([1, 60])),
        ):  # fmt: skip
            found = self.maybe(make, 0.2)
            if found is not None:
                spec[key] = found
        status = {"phase": self.random.choice(["Pending", "Running", "Succeeded", "Failed"]) if runs else "Pending"}
        if runs:
            spec["nodeName"] = NODE
        return "pods", {"metadata": self.metadata(f"p-{self.count}"), "spec": spec, "status": status}

    def group(self):
        """Give a pod group, of Tenure's or of another maker, whose spec may be of any shape."""
        self.count += 1
        spec = {
            "queue": self.random.choice(LABEL_VALUES), "minMember": self.random.choice(NUMBERS),
            "priority": self.random.choice(NUMBERS), "priorityClassName": "high", "preemptible": False,
            "subGroups": self.random.choice([[{"name": "s", "minMember": 2}], [{"name": f"s{n}", "parent": f"s{n - 1}"}
                                             for n in range(3000)], 7, "x", [[]], [{"name": {"a": 1}}]]),
            "expectedRuntime": self.random.choice(TEXTS), "evictionNotice": "9h",
            "stalenessGracePeriod": self.random.choice(["-1s", "9999h"]), "topology": {"required": "e"},
            "checkpoint": {"restartOverhead": "2500000h", "interval": "1ns"},
            "minSubGroup": self.random.choice(NUMBERS),
        }  # fmt: skip
        kept = {key: spec[key] for key in spec if self.random.random() < 0.5}
        kind = self.random.choice(["podgroups", "kai podgroups", "native podgroups", "native workloads", "jobsets"])
        body = {"metadata": {**self.metadata(self.random.choice(["g", "a", "a.job"]))}, "spec": kept}
        if self.random.random() < 0.1:
            body["spec"] = self.random.choice([None, 7, "x", [], {"minMember": None}])
        return kind, body

    def owner(self):
        """Give a Job, a Deployment or another owner, or a PodDisruptionBudget."""
        self.count += 1
        kind = self.random.choice(["jobs", "deployments", "statefulsets", "replicasets", "poddisruptionbudgets"])
        body = {"metadata": self.metadata(self.random.choice(["a", "g", "x"]))}
        if kind == "jobs":
            body["spec"] = {
                "parallelism": self.random.choice([0, 1, 2**31 - 1]),
                "completions": self.random.choice([0, 5, None]),
            }
            body["status"] = {"succeeded": self.random.choice([0, 3, 2**31 - 1])}
        if kind == "poddisruptionbudgets":
            body["spec"] = {
                "selector": self.random.choice([{}, self.selector()]),
                self.random.choice(["minAvailable", "maxUnavailable"]): self.random.choice(
                    [0, 2**31 - 1, "100%", "0%", "x"]
                ),
            }
        return kind, body

    def objects(self, count):
        """Give so many objects: the name of the watch that shows each, and the object."""
        makes = [self.pod] * 4 + [self.group, self.owner]
        return [self.random.choice(makes)() for _ in range(count)]


class LiveTenant:
    """A tenant on a real control plane who writes something hostile all the time, with the rights of its namespace.

    Its queue may hold a few cores and nothing else, so that whatever it does takes nothing from anybody by right.
    """

    def __init__(self, plane, seed=1, pause=0.1):
        self.plane, self.random, self.pause = plane, random.Random(seed), pause
        admin = plane.client()
        if not admin.exists(f"/api/v1/namespaces/{NAMESPACE}"):
            plane.add_namespace(NAMESPACE)
            plane.kubectl("-n", NAMESPACE, "create", "serviceaccount", "tenant")
            account = f"--serviceaccount={NAMESPACE}:tenant"
            plane.kubectl("-n", NAMESPACE, "create", "rolebinding", "tenant", "--clusterrole=edit", account)
        queue = {"apiVersion": "tenure.dev/v1alpha1", "kind": "Queue", "metadata": {"name": "evil"},
                 "spec": {"max": {"cpu": 2, GPU: 0, "example.com/seat": 0, "example.com/token": 0}}}  # fmt: skip
        plane.apply(queue)
        self.token = plane.token_of("tenant", NAMESPACE)
        self.written = self.refused = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="hostile tenant", daemon=True)

    def start(self):
        """Begin."""
        self._thread.start()
        return self

    def stop(self):
        """End, and leave nothing."""
        self._ended.set()
        self._thread.join(60)
        client = self.plane.client()
        for item in client.get(self._path())["items"]:
            with suppress(ApiError):
                client.delete(f"{self._path()}/{item['metadata']['name']}", {"gracePeriodSeconds": 0})

    def _run(self):
        number = 0
        while not self._ended.wait(self.pause):
            number += 1
            try:
                self._act(self.plane.client(self.token), number)
                self.written += 1
            except ApiError:
                self.refused += 1
            except OSError:
                continue  # the server is away for a moment

    def _act(self, client, number):
        """Make a pod or a group, change one that is there, or let one go."""
        pods = [p["metadata"]["name"] for p in client.get(self._path())["items"]]
        chance = self.random.random()
        if chance < 0.3 and len(pods) < 40:
            client.create(self._path(), self._pod(f"evil-{number}"))
        elif chance < 0.4:
            group = {"apiVersion": "tenure.dev/v1alpha1", "kind": "PodGroup", "spec": {"queue": "evil"},
                     "metadata": {"name": f"g-{number % 5}", "annotations": self._annotations()}}  # fmt: skip
            client.create(self._path("podgroups", "/apis/tenure.dev/v1alpha1"), group)
        elif pods and chance < 0.85:
            metadata = {"annotations": self._annotations()}
            if self.random.random() < 0.3:
                metadata["labels"] = {keys.POD_GROUP: f"g-{self.random.randrange(5)}"}
            client.patch(f"{self._path()}/{self.random.choice(pods)}", {"metadata": metadata})
        elif pods:
            client.delete(f"{self._path()}/{self.random.choice(pods)}", {"gracePeriodSeconds": 0})

    def _annotations(self):
        return {self.random.choice(ANNOTATIONS): self.random.choice(TEXTS) for _ in range(self.random.randint(1, 3))}

    def _pod(self, name):
        resources = {"requests": {"cpu": self.random.choice(["1m", "100m", "3"])}}
        return {
            "metadata": {"name": name, "labels": {"tenure.dev/queue": "evil"}, "annotations": self._annotations()},
            "spec": {"schedulerName": "tenure", "containers": [{"name": "c", "image": "x", "resources": resources}],
                     "terminationGracePeriodSeconds": self.random.choice([0, 1, 2**40])},
        }  # fmt: skip

    def _path(self, plural="pods", group="/api/v1"):
        return f"{group}/namespaces/{NAMESPACE}/{plural}"
