"""Owners as frameworks have them, on a real API server: whole gangs, drivers last, surplus first, kills between."""

from __future__ import annotations

import pytest
from tests.effort import tries
from tests.kubernetes.frameworks import OWNERS, path_of
from tests.kubernetes.theatre import PYTORCH, ROLE, Theatre, ray, train
from tools.controlplane.plane import Options as PlaneOptions

SPARK, SET = "SparkApplication.sparkoperator.k8s.io", "JobSet.jobset.x-k8s.io"
PLANE = PlaneOptions(controllers=False, nodes=False)


def kinds():
    return OWNERS


@pytest.fixture
def theatre(plane):
    made = Theatre(plane)
    yield made
    made.clear()


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


def test_what_runs_of_a_job_stays_that_is_given_more_workers_than_there_is_room_for(theatre):
    """Also under the next scheduler. What it has lost is another matter: it is stale, and goes."""
    train(theatre, elastic=False)
    theatre.act()
    theatre.play.life()
    assert theatre.placed() == {"train": 4}
    more = {"spec": {"pytorchReplicaSpecs": {"Worker": {"replicas": 5}}}}
    theatre.client.patch(f"{path_of(PYTORCH)}/train", more, "merge")
    for name in "uv":
        theatre.operators.wants(f"train-{name}", theatre.operators.made["train"], **{ROLE: "worker"})
    theatre.act()
    theatre.play.life()
    assert (theatre.placed(), theatre.evicted()) == ({"train": 4}, [])
    del theatre.operators.plans["train-x"]
    del theatre.operators.plans["train-u"], theatre.operators.plans["train-v"]
    for name in ("train-x", "train-u", "train-v"):
        theatre.client.delete(f"/api/v1/namespaces/default/pods/{name}", {"gracePeriodSeconds": 0})
    theatre.play.life()
    assert sorted(set(theatre.evicted())) == ["train-m", "train-y", "train-z"]


def test_a_set_goes_on_whose_first_job_has_ended_and_is_gone(theatre):
    """The pods of its second job come then, and all of them start; they wait for what they come after no more."""
    jobs = [
        {"name": name, "template": {"spec": {"parallelism": 2, "completions": 2}}, **after}
        for name, after in (("a", {}), ("b", {"dependsOn": [{"name": "a", "status": "Complete"}]}))
    ]
    whole = theatre.operators.create(SET, "set", {"replicatedJobs": jobs}, "b")
    theatre.client.patch(
        f"{path_of(SET)}/set", {"status": {"replicatedJobsStatus": [{"name": "a", "succeeded": 1}]}}, "merge"
    )
    for name in "xy":
        theatre.operators.wants(f"set-{name}", whole, **{"jobset.sigs.k8s.io/replicatedjob-name": "b"})
    theatre.act()
    theatre.play.life()
    assert theatre.placed() == {"set": 2}


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
    for number in range(tries(3, 100)):
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
