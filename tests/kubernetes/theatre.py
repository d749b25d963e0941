"""A cluster with operators, on which schedulers live one after the other, and what plays there."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from tests.builders import SECOND, cluster, node, queue
from tests.kubernetes.frameworks import PODS, Operators
from tests.kubernetes.stage import Stage
from tests.kubernetes.test_crashes import Play

PYTORCH, RAY = "PyTorchJob.kubeflow.org", "RayCluster.ray.io"
ROLE, GROUP = "training.kubeflow.org/replica-type", "ray.io/group"


def reclaiming():
    """Give a cluster of two nodes with four GPUs, all of which one of two queues is owed."""
    return cluster(
        [node("n0", cpu=8, gpu=2), node("n1", cpu=8, gpu=2)],
        [],
        [queue("a"), queue("b", guaranteed={"gpu": 4})],
        actions=("allocate", "reclaim", "consolidate", "stale-gang"),
        staleness_grace_period=SECOND,
    )


class Theatre:
    """A cluster with operators, on which schedulers live one after the other."""

    def __init__(self, plane, told=None, also=()):
        self.stage = Stage(plane, also=also)
        self.client = self.stage.client
        self.operators = Operators(self.client)
        told = told or reclaiming()
        self.play = Play(plane, self.stage, replace(told))
        self.clear()
        self.stage.put(told)
        self.stage.kubelet = self.operators.act

    def act(self):
        """Let operators do all that there is to do without a scheduler."""
        for _ in range(5):
            if not self.operators.act():
                break

    def placed(self):
        """Give how many pods of each owner are placed."""
        pods = self.stage.client.get(PODS)["items"]
        return Counter(p["metadata"]["name"].rpartition("-")[0] for p in pods if p["spec"].get("nodeName"))

    def evicted(self):
        """Give whom the log has, in order."""
        return [entry.task for entry in self.play.log()]

    def clear(self):
        self.play.close()
        self.operators.clear()
        self.stage.clear()


def train(theatre, *, elastic=True):
    """A training job takes all GPUs: a master, a worker that it needs, and two that it does not."""
    workers = {"elasticPolicy": {"minReplicas": 1}} if elastic else {}
    roles = {"Master": {"replicas": 1}, "Worker": {"replicas": 3}}
    job = theatre.operators.create(PYTORCH, "train", {"pytorchReplicaSpecs": roles, **workers}, "a")
    theatre.operators.wants("train-m", job, **{ROLE: "master"})
    for name in "xyz":
        theatre.operators.wants(f"train-{name}", job, **{ROLE: "worker"})


def ray(theatre):
    """A cluster of Ray asks for two of them in a queue that is owed all."""
    groups = [{"groupName": "g", "replicas": 2}]
    owner = theatre.operators.create(RAY, "ray", {"workerGroupSpecs": groups}, "b")
    theatre.operators.wants("ray-h", owner, 0, **{"ray.io/node-type": "head"})
    for name in "xy":
        theatre.operators.wants(f"ray-{name}", owner, **{GROUP: "g"})
