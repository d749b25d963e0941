"""Owners as frameworks have them, on a real API server: whole gangs, drivers last, surplus first, kills between."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from tests.builders import SECOND, cluster, node, queue
from tests.effort import tries
from tests.kubernetes.frameworks import OWNERS, PODS, Operators
from tests.kubernetes.stage import Stage, wait_until
from tests.kubernetes.test_crashes import Play
from tools.controlplane.plane import ControlPlane
from tools.controlplane.plane import Options as PlaneOptions

PYTORCH, RAY = "PyTorchJob.kubeflow.org", "RayCluster.ray.io"
SPARK, SET = "SparkApplication.sparkoperator.k8s.io", "JobSet.jobset.x-k8s.io"
ROLE, GROUP = "training.kubeflow.org/replica-type", "ray.io/group"


@pytest.fixture(scope="module")
def plane(programs, tmp_path_factory):
    assert programs.exists()
    with ControlPlane(tmp_path_factory.mktemp("frameworks"), PlaneOptions(controllers=False, nodes=False)) as started:
        started.install_tenure()
        client = started.client()
        for one in OWNERS:
            client.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", one)
        yield started


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
        self.operators = Operators(self.stage.client)
        wait_until(self.are_served, "the kinds of owners are not served")
        told = told or reclaiming()
        self.clear()
        self.stage.put(told)
        self.stage.kubelet = self.operators.act
        self.play = Play(plane, self.stage, replace(told))

    def are_served(self):
        try:
            for one in OWNERS:
                spec = one["spec"]
                version = spec["versions"][0]["name"]
                self.stage.client.get(f"/apis/{spec['group']}/{version}/{spec['names']['plural']}")
        except Exception:  # noqa: BLE001  not yet
            return False
        return True

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
        self.operators.clear()
        self.stage.clear()


@pytest.fixture
def theatre(plane):
    made = Theatre(plane)
    yield made
    made.clear()


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


def test_surplus_gives_way_first_and_the_core_goes_as_a_whole(theatre):
    """Elastic workers go for a cluster of Ray, and the master stays; for a JobSet all the rest of the job goes."""
    train(theatre)
    theatre.act()
    theatre.play.life()
    assert theatre.placed() == {"train": 4}
    ray(theatre)
    theatre.act()
    theatre.play.life()
    assert theatre.placed() == {"train": 2, "ray": 3}
    gone = theatre.evicted()
    assert len(gone) == 2
    assert "train-m" not in gone
    spec = {"replicatedJobs": [{"name": "w", "template": {"spec": {"parallelism": 2, "completions": 2}}}]}
    whole = theatre.operators.create(SET, "set", spec, "b")
    for name in "xy":
        theatre.operators.wants(f"set-{name}", whole, **{"jobset.sigs.k8s.io/replicatedjob-name": "w"})
    theatre.act()
    theatre.play.life()
    assert theatre.placed() == {"ray": 3, "set": 2}
    assert "train-m" in theatre.evicted()


def test_a_gang_waits_as_a_whole_until_its_last_pod_is_there(theatre):
    """Pods of one that is not complete are not bound one by one, however much room there is."""
    ray(theatre)
    last = theatre.operators.plans.pop("ray-y")
    theatre.act()
    theatre.play.life()
    assert theatre.placed() == {}
    theatre.operators.plans["ray-y"] = last
    theatre.act()
    theatre.play.life()
    assert theatre.placed() == {"ray": 3}


def test_executors_come_after_their_driver_and_go_before_it(theatre):
    """A driver starts alone; what it makes is its surplus, which goes for others while the driver stays."""
    application = theatre.operators.create(SPARK, "spark", {"executor": {"instances": 3}}, "a")
    theatre.operators.wants("spark-d", application, **{"spark-role": "driver"})
    for name in "xyz":
        theatre.operators.wants(f"spark-{name}", application, driver="spark-d", **{"spark-role": "executor"})
    theatre.act()
    theatre.play.life()
    assert theatre.placed() == {"spark": 4}
    ray(theatre)
    theatre.act()
    theatre.play.life()
    assert theatre.placed() == {"spark": 2, "ray": 3}
    assert "spark-d" not in theatre.evicted()


def test_whoever_is_killed_between_writes_binds_nothing_twice(plane, theatre):
    """After a kill before or after any write the next scheduler goes on: whole gangs, one record for each eviction."""
    ends = ("before", "after")
    for number in range(tries(4, 100)):
        theatre.clear()
        again = Theatre(plane)
        train(again, elastic=False)
        again.act()
        again.play.life(number % 25 + 1, ends[number % 2])
        again.play.life()
        assert again.placed() == {"train": 4}
        ray(again)
        again.act()
        again.play.life(number % 23 + 1, ends[number // 2 % 2])
        again.play.life()
        assert again.placed() == {"ray": 3}
        assert sorted(again.evicted()) == ["train-m", "train-x", "train-y", "train-z"], "what replaces them stays out"
