"""What Kueue has admitted and Tenure evicts: Kueue is told, as a whole and once, and queues it again."""

from __future__ import annotations

import pytest
from tests.effort import tries
from tests.kubernetes.frameworks import OWNERS
from tests.kubernetes.kueue import WORKLOADS, workloads_definition
from tests.kubernetes.pods import NOW, owned_by, pod, thing, watching
from tests.kubernetes.theatre import Theatre, ray, train
from tools.controlplane.plane import Options as PlaneOptions

from tenure.clusters.kubernetes.api import ApiKueueWorkload
from tenure.model.workload import Phase

BEFORE = "2027-01-15T07:00:00Z"
"""An hour before the time of all tests of crashes."""

THEIRS = f"{WORKLOADS}/namespaces/default/workloads"


PLANE = PlaneOptions(controllers=False, nodes=False)


def kinds():
    return (*OWNERS, workloads_definition())


@pytest.fixture
def theatre(plane):
    made = Theatre(plane, also=(THEIRS,))
    yield made
    made.clear()


def admit(theatre, name, *, at=BEFORE):
    """Let Kueue admit what an owner asks for."""
    owner = theatre.operators.made[name]
    client = theatre.stage.client
    body = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload", "spec": {},
            "metadata": {"name": f"of-{name}", "ownerReferences": [owner]}}  # fmt: skip
    client.create(THEIRS, body)
    say(theatre, name, QuotaReserved=("True", at), Admitted=("True", at))


def say(theatre, name, **conditions):
    """Let Kueue write conditions, as it does: applied, by its own name."""
    listed = [
        {"type": kind, "status": status, "lastTransitionTime": at, "reason": "Test", "message": ""}
        for kind, (status, at) in conditions.items()
    ]
    body = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload", "metadata": {"name": f"of-{name}"},
            "status": {"conditions": listed}}  # fmt: skip
    path = f"{THEIRS}/of-{name}/status?fieldManager=kueue-admission&force=true"
    theatre.stage.client.patch(path, body, "apply")


def said(theatre, name):
    """Give the conditions of a workload of Kueue's."""
    found = theatre.stage.client.get(f"{THEIRS}/of-{name}")["status"]["conditions"]
    return {c["type"]: c for c in found}


def test_what_is_evicted_as_a_whole_is_evicted_for_kueue_and_waits_until_it_is_admitted_again(theatre):
    """Its condition has the reason with which Kueue queues a workload again; all other conditions stay Kueue's."""
    train(theatre, elastic=False)
    admit(theatre, "train")
    theatre.act()
    theatre.play.life()
    assert theatre.placed() == {"train": 4}
    ray(theatre)
    theatre.act()
    theatre.play.life()
    assert theatre.placed() == {"ray": 3}
    told = said(theatre, "train")
    assert (told["Evicted"]["status"], told["Evicted"]["reason"]) == ("True", "Preempted")
    assert "reclaim for default/ray" in told["Evicted"]["message"]
    assert (told["QuotaReserved"]["status"], told["QuotaReserved"]["lastTransitionTime"]) == ("True", BEFORE)
    for name in [name for name in theatre.operators.plans if name.startswith("ray")]:
        del theatre.operators.plans[name]
        theatre.stage.client.delete(f"/api/v1/namespaces/default/pods/{name}", {"gracePeriodSeconds": 0})
    theatre.act()
    theatre.play.life()
    assert theatre.placed() == {}, "what Kueue takes back is not placed"
    say(theatre, "train", QuotaReserved=("True", "2027-01-15T08:30:00Z"), Evicted=("False", "2027-01-15T08:30:00Z"))
    theatre.play.life()
    assert theatre.placed() == {"train": 4}
    assert said(theatre, "train")["Evicted"]["status"] == "False", "an earlier eviction counts no more"


def test_what_gives_up_its_surplus_stays_admitted(theatre):
    """A core that goes on is no reason for Kueue to stop it."""
    train(theatre)
    admit(theatre, "train")
    theatre.act()
    theatre.play.life()
    ray(theatre)
    theatre.act()
    theatre.play.life()
    assert theatre.placed() == {"train": 2, "ray": 3}
    assert "Evicted" not in said(theatre, "train")


def test_after_a_crash_the_next_scheduler_tells_kueue(plane, theatre):
    """Whatever write is the last of a scheduler, Kueue is told of what was evicted, once."""
    ends = ("before", "after")
    for number in range(tries(3, 40)):
        theatre.clear()
        again = Theatre(plane, also=(THEIRS,))
        train(again, elastic=False)
        admit(again, "train")
        again.act()
        again.play.life()
        ray(again)
        again.act()
        again.play.life(tries(12 + 4 * number, number + 1), ends[number % 2])
        again.play.life()
        assert again.placed() == {"ray": 3}
        assert said(again, "train")["Evicted"]["status"] == "True"
        again.operators.act()


def kueue_workload(owner, namespace="default", **conditions):
    """Give a workload of Kueue's as a watch shows it."""
    listed = [{"type": k, "status": s, "lastTransitionTime": "2026-11-20T09:00:00Z"} for k, s in conditions.items()]
    meta = {"ownerReferences": [owned_by(*owner)]}
    return thing("w", namespace=namespace, kind=ApiKueueWorkload, metadata=meta, status={"conditions": listed})


def test_pods_of_what_kueue_takes_back_are_gated():
    """They wait from the moment at which Kueue says so, and until it has admitted their owner anew."""
    pods = [pod(f"j-{i}", owner=("Job", "j")) for i in range(2)]
    jobs = [thing("j", namespace="default", spec={"parallelism": 2, "completions": 2})]
    watch = watching(*pods, jobs=jobs)
    store = watch.informers._objects("kueue workloads")

    def phases():
        (made,) = watch.observe(NOW).cluster.workloads
        return {task.phase for task in made.tasks}

    assert phases() == {Phase.PENDING}
    store.put(kueue_workload(("Job", "j"), QuotaReserved="True", Evicted="True"))
    assert phases() == {Phase.GATED}
    store.put(kueue_workload(("Job", "j"), QuotaReserved="True", Evicted="False"))
    assert phases() == {Phase.PENDING}
    store.put(kueue_workload(("Job", "other"), QuotaReserved="True", Evicted="True"))
    assert phases() == {Phase.PENDING}
    store.put(kueue_workload(("Job", "j"), "elsewhere", QuotaReserved="True", Evicted="True"))
    assert phases() == {Phase.PENDING}, "another namespace has no say"
