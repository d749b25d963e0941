"""Gangs of frameworks whose pods mount claims, on a real API server: evicted and moved as a whole."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from tests.builders import SECOND, cluster, node, queue
from tests.effort import tries
from tests.kubernetes.frameworks import OWNERS, PODS
from tests.kubernetes.test_frameworks import SET, SPARK
from tests.kubernetes.test_volume_crashes import bind_claims
from tests.kubernetes.test_volumes import CLAIMS, CLASSES, VOLUMES, claim, late, open_claim, volume
from tests.kubernetes.theatre import GROUP, PYTORCH, RAY, ROLE, Theatre, ray, reclaiming, train
from tools.controlplane.plane import Options as PlaneOptions

DONE = "pv.kubernetes.io/bind-completed"
PAIR = ("gang-x", "gang-y")
PLANE = PlaneOptions(controllers=False, nodes=False)


def kinds():
    return OWNERS


@pytest.fixture
def theatre(plane):
    """Give a function that makes a theatre of a cluster, with nothing left of it in the end."""
    made = []

    def opened(told):
        made.append(Theatre(plane, told, also=(CLAIMS, VOLUMES, CLASSES)))
        return made[-1]

    yield opened
    for one in made[-1:]:  # each clears what those before it have left
        one.clear()


def pytorch(theatre, names):
    """Two replicas that start together."""
    roles = {"Master": {"replicas": 1}, "Worker": {"replicas": 1}}
    owner = theatre.operators.create(PYTORCH, "gang", {"pytorchReplicaSpecs": roles}, "a")
    for name, role in zip(names, ("master", "worker"), strict=True):
        theatre.operators.wants(name, owner, **{ROLE: role})


def ray_cluster(theatre, names):
    """A head and a worker."""
    owner = theatre.operators.create(RAY, "gang", {"workerGroupSpecs": [{"groupName": "g", "replicas": 1}]}, "a")
    theatre.operators.wants(names[0], owner, **{"ray.io/node-type": "head"})
    theatre.operators.wants(names[1], owner, **{GROUP: "g"})


def jobset(theatre, names):
    """Both pods of one replicated job."""
    spec = {"replicatedJobs": [{"name": "w", "template": {"spec": {"parallelism": 2, "completions": 2}}}]}
    owner = theatre.operators.create(SET, "gang", spec, "a")
    for name in names:
        theatre.operators.wants(name, owner, **{"jobset.sigs.k8s.io/replicatedjob-name": "w"})


def spark(theatre, names):
    """A driver, and an executor that the driver makes."""
    application = theatre.operators.create(SPARK, "gang", {"executor": {"instances": 1}}, "a")
    theatre.operators.wants(names[0], application, **{"spark-role": "driver"})
    theatre.operators.wants(names[1], application, driver=names[0], **{"spark-role": "executor"})


KINDS = {"PyTorchJob": pytorch, "RayCluster": ray_cluster, "JobSet": jobset, "Spark": spark}


def mounted(theatre, where):
    """Let each pod of the gang mount a claim that is bound to a volume which these nodes reach."""
    client = theatre.stage.client
    for name in PAIR:
        theatre.operators.mounts[name] = [f"data-{name}"]
        made = volume(f"data-{name}", where[0])
        made["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"][0]["matchExpressions"][0]["values"] = where
        asked = client.create(CLAIMS, claim(f"data-{name}"))
        made["spec"]["claimRef"]["uid"] = asked["metadata"]["uid"]
        client.create(VOLUMES, made)
        client.patch(f"{VOLUMES}/data-{name}/status", {"status": {"phase": "Bound"}})
        client.patch(f"{CLAIMS}/data-{name}", {"metadata": {"annotations": {DONE: "yes"}}})
        client.patch(f"{CLAIMS}/data-{name}/status", {"status": {"phase": "Bound"}})


def places(theatre):
    """Give the node of each pod that is placed."""
    pods = theatre.stage.client.get(PODS)["items"]
    return {p["metadata"]["name"]: p["spec"]["nodeName"] for p in pods if p["spec"].get("nodeName")}


def named(told):
    """Give a cluster whose nodes have the label that volumes look at."""
    for one in told.nodes:
        one.labels["kubernetes.io/hostname"] = one.name
    return told


@pytest.mark.parametrize("kind", KINDS)
def test_a_gang_with_volumes_is_evicted_as_a_whole_and_comes_back_where_these_are(theatre, kind):
    """Its volumes lie on one node. When what it went for has ended, it is there again; every claim is kept."""
    made = theatre(named(reclaiming()))
    mounted(made, ["n1"])
    KINDS[kind](made, PAIR)
    made.act()
    made.play.go_on()
    assert places(made) == dict.fromkeys(PAIR, "n1")
    ray(made)
    made.operators.wants("ray-z", made.operators.made["ray"], 2, **{GROUP: "g"})
    made.act()
    made.play.go_on()
    assert made.placed() == {"ray": 4}
    gone = made.evicted()
    if kind != "Spark":
        assert sorted(gone) == sorted(PAIR)
    else:  # what is left of its executors goes with it
        assert set(gone) <= set(PAIR)
        assert gone[-1] == "gang-x", "the driver is the last"
    for name in [name for name in made.operators.plans if name.startswith("ray")]:
        del made.operators.plans[name]
        made.stage.client.delete(f"{PODS}/{name}", {"gracePeriodSeconds": 0})
    made.act()
    made.play.go_on()
    assert places(made) == dict.fromkeys(PAIR, "n1")
    assert len(made.stage.client.get(CLAIMS)["items"]) == 2


def tight():
    """Give two nodes, on each of which half is taken: what needs a whole one fits only if the rest moves together."""
    nodes = [node("n0", cpu=8, gpu=4), node("n1", cpu=8, gpu=4)]
    told = named(cluster(nodes, [], [queue("a"), queue("b")], actions=("allocate", "consolidate")))
    return replace(told, now=round(time.time() - 600) * SECOND)  # pods that are made anew are newer than their moves


def whole_node(made):
    """Ask for all GPUs of a node."""
    owner = made.operators.create(RAY, "whole", {"workerGroupSpecs": []}, "b")
    made.operators.wants("whole-h", owner, 4, **{"ray.io/node-type": "head"})


@pytest.mark.parametrize("kind", KINDS)
def test_a_gang_with_volumes_is_moved_as_a_whole_to_where_these_are_reached(theatre, kind):
    """Both pods leave the node where something else needs all, for one that their volumes reach."""
    made = theatre(tight())
    mounted(made, ["n0", "n1"])
    KINDS[kind](made, PAIR)
    held = made.operators.create(RAY, "held", {"workerGroupSpecs": []}, "a")
    made.act()
    made.play.go_on()
    before = places(made)
    (first,) = set(before.values())
    other = {"n0": "n1", "n1": "n0"}[first]
    made.operators.wants("held-h", held, 2, **{"ray.io/node-type": "head"})
    made.stage.client.patch(f"/api/v1/nodes/{first}", {"spec": {"unschedulable": True}})
    made.act()
    made.play.go_on()
    made.stage.client.patch(f"/api/v1/nodes/{first}", {"spec": {"unschedulable": False}})
    assert places(made) == {**before, "held-h": other}
    whole_node(made)
    made.act()
    made.play.go_on()
    now = places(made)
    assert "whole-h" in now
    assert len({now[name] for name in (*PAIR, "held-h")}) == 1
    assert now["whole-h"] != now[PAIR[0]]
    assert set(made.evicted()) in ({*PAIR}, {"held-h"}) or kind == "Spark"


def test_a_gang_whose_volumes_reach_no_other_node_is_not_moved(theatre):
    """What would make room by moving it waits, and the gang runs on."""
    made = theatre(tight())
    mounted(made, ["n0"])
    pytorch(made, PAIR)
    made.act()
    made.play.go_on()
    filler = made.operators.create(RAY, "held", {"workerGroupSpecs": []}, "a")
    made.operators.wants("held-h", filler, 3, **{"ray.io/node-type": "head"})
    made.act()
    made.play.go_on()
    assert places(made) == {**dict.fromkeys(PAIR, "n0"), "held-h": "n1"}
    whole_node(made)
    made.act()
    made.play.go_on()
    assert places(made) == {**dict.fromkeys(PAIR, "n0"), "held-h": "n1"}
    assert made.evicted() == []


def claiming(made):
    """Let every pod mount a claim that gets its volume where the pod is placed, and let there be a provisioner."""
    made.stage.client.create(CLASSES, late("made", "csi.example.org"))
    operate = made.stage.kubelet

    def unbound():
        return [c for c in made.stage.client.get(CLAIMS)["items"] if not c["spec"].get("volumeName")]

    def act():
        before = len(unbound())
        bind_claims(made.stage)
        return operate() or len(unbound()) < before

    made.stage.kubelet = act


def claim_for(made, names):
    """Make a claim for each of some pods, and let them mount it."""
    for name in names:
        made.operators.mounts[name] = [f"data-{name}"]
        made.stage.client.create(CLAIMS, open_claim(f"data-{name}", "made"))


def check_claims(made):
    """A volume belongs to one claim and a claim to one pod; what is placed has all of its claims, where they are."""
    client = made.stage.client
    claims = {c["metadata"]["name"]: c for c in client.get(CLAIMS)["items"]}
    volumes = {v["metadata"]["name"]: v for v in client.get(VOLUMES)["items"]}
    bound_to = [c["spec"]["volumeName"] for c in claims.values() if c["spec"].get("volumeName")]
    assert sorted(bound_to) == sorted(volumes), "a volume that no claim has, or that two have"
    for name, where in places(made).items():
        held = claims[f"data-{name}"]
        volume_of = volumes[held["spec"]["volumeName"]]
        assert volume_of["spec"]["claimRef"]["uid"] == held["metadata"]["uid"]
        (term,) = volume_of["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
        assert term["matchExpressions"][0]["values"] == [where], "it runs where its volume is not"


def test_whoever_is_killed_between_writes_leaks_no_claim_of_a_gang(theatre):
    """After a kill at any write, those to claims among them, the next scheduler goes on; each pod has its own claim."""
    trained, rays = [f"train-{name}" for name in "mxyz"], [f"ray-{name}" for name in "hxy"]
    ends = ("before", "after")
    for number in range(tries(3, 100)):
        made = theatre(named(reclaiming()))
        claiming(made)
        claim_for(made, trained)
        train(made, elastic=False)
        made.act()
        made.play.life(number % 33 + 1, ends[number % 2])
        made.play.life()
        assert made.placed() == {"train": 4}, number
        check_claims(made)
        claim_for(made, rays)
        ray(made)
        made.act()
        made.play.life(number % 29 + 1, ends[number // 2 % 2])
        made.play.life()
        assert made.placed() == {"ray": 3}, number
        assert sorted(made.evicted()) == sorted(trained), number
        check_claims(made)
        assert len(made.stage.client.get(CLAIMS)["items"]) == len(trained) + len(rays)
