"""Bindings go on while the next plan is made, and no plan that does more than bind counts on one that is refused."""

from __future__ import annotations

import json
import threading

from tests.builders import SECOND, cluster, node, queue, spec, workload
from tests.kubernetes.stage import wait_until
from tools.controlplane.plane import Options as PlaneOptions

from tenure.clusters.kubernetes import keys
from tenure.clusters.kubernetes.cache.informers import Options
from tenure.clusters.kubernetes.client.access import find_access
from tenure.clusters.kubernetes.client.requests import ApiError, Client
from tenure.clusters.kubernetes.cluster import KubernetesCluster
from tenure.live.loop import Loop

PLANE = PlaneOptions(controllers=False, nodes=False)

LONG = 120.0


class SlowClient(Client):
    """A client whose first write at one place below pods is answered when the test says so: done, or refused."""

    def __init__(self, access, place):
        super().__init__(access)
        self.path = f"/pods/{place}"
        self.held, self.released = threading.Event(), threading.Event()
        self.refusal = None

    def request(self, method, path, body=None, kind="application/json", accept=""):
        if path.endswith(self.path) and not self.held.is_set():
            self.held.set()
            assert self.released.wait(LONG)
            if self.refusal is not None:
                raise self.refusal
        return super().request(method, path, body, kind, accept)


class Running:
    """The scheduler on a cluster, in a thread; all that its plans carried out, and what it was refused."""

    def __init__(self, plane, settings, now, slow):
        self.client = SlowClient(find_access(str(plane.kubeconfig)), slow)
        self.live = KubernetesCluster(self.client, Options(), settings)
        self.done, self.failures = [], []
        self.now = now
        self.loop = Loop(self.live, lambda: 1, wall=lambda: self.now, told=self.told)
        self.thread = threading.Thread(target=self.loop.run)

    def told(self, cycle):
        self.done += [(s.action, s.task) for s in cycle.outcome.done]
        self.failures += [(f.action, f.task) for f in cycle.outcome.failures]

    def seen_to_evict(self):
        """Give what is set once a plan that evicts is judged."""
        seen, judge = threading.Event(), self.live.stands

        def stands(plan):
            if any(step.action == "evict" for step in plan.steps):
                seen.set()
            return judge(plan)

        self.live.stands = stands
        return seen

    def __enter__(self):
        self.live.start()
        self.thread.start()
        wait_until(lambda: self.loop.confirmation.done, "it takes no second look")
        return self

    def __exit__(self, *_):
        self.client.released.set()
        self.loop.stop()
        self.thread.join(LONG)
        self.live.close()


def nodes_of_pods(stage):
    items = stage.client.get("/api/v1/namespaces/default/pods")["items"]
    return {item["metadata"]["name"]: item["spec"].get("nodeName") for item in items}


def is_explained(stage, name):
    status = stage.client.get(f"/api/v1/namespaces/default/pods/{name}")["status"]
    return any(c["type"] == "PodScheduled" and c.get("message") for c in status.get("conditions", ()))


def test_a_binding_that_takes_long_holds_up_nobody_else(plane, stage):
    """A second pod is bound while the API server has not answered the binding of the first."""
    told = cluster([node("n0", cpu=4)], [], [queue("default")])
    slow, quick, third = (workload(name, of=spec(cpu=2), age=10) for name in ("slow", "quick", "third"))
    stage.put(told)
    with Running(plane, told.settings, told.now, "slow-0/binding") as scheduler:
        stage.add_workload(slow)
        assert scheduler.client.held.wait(LONG)
        stage.add_workload(quick)
        wait_until(lambda: nodes_of_pods(stage)["quick-0"] == "n0", "the second waits for the first")
        assert nodes_of_pods(stage)["slow-0"] is None
        stage.add_workload(third)
        wait_until(lambda: is_explained(stage, "third-0"), "nobody says why the third waits")
        assert nodes_of_pods(stage)["third-0"] is None, "the room of a pod that is being bound was given away"
        scheduler.client.released.set()
        wait_until(lambda: nodes_of_pods(stage)["slow-0"] == "n0", "the first is never bound")
        wait_until(lambda: ("bind", "slow-0") in scheduler.done, "nobody says that the first was bound")
    assert sorted(scheduler.done) == [("bind", "quick-0"), ("bind", "slow-0")]
    assert not scheduler.failures


def test_nobody_is_evicted_because_of_a_binding_that_is_refused(plane, stage):
    """While the room of a pod that is being bound is missing, an eviction waits for that, and is not made."""
    gpu = spec(gpu=1, cpu=0)
    old = workload("old", of=gpu, on=["n0"], running=600, age=700, queue="a")
    queues = [queue("a"), queue("b", guaranteed={"gpu": 1})]
    told = cluster([node("n0", cpu=4, gpu=2)], [old], queues, actions=("allocate", "reclaim"))
    stage.put(told)
    with Running(plane, told.settings, told.now, "slow-0/binding") as scheduler:
        scheduler.client.refusal = ApiError(403, "Forbidden", "not today")
        stage.add_workload(workload("slow", of=gpu, age=10, queue="a"))
        assert scheduler.client.held.wait(LONG)
        seen = scheduler.seen_to_evict()
        stage.add_workload(workload("new", of=gpu, age=5, queue="b"))
        assert seen.wait(LONG), "the room was not counted as taken"
        scheduler.client.released.set()
        wait_until(lambda: nodes_of_pods(stage)["new-0"] == "n0", "the guarantee is not met")
        wait_until(lambda: ("bind", "slow-0") in scheduler.failures, "nobody says that the binding was refused")
    assert nodes_of_pods(stage) == {"old-0": "n0", "slow-0": None, "new-0": "n0"}
    assert not any(action == "evict" for action, _ in scheduler.done)


def test_an_eviction_that_is_due_whatever_was_refused_is_made(plane, stage):
    """The plan that is made after a refusal stands, although nobody was told of that refusal yet."""
    gpu = spec(gpu=1, cpu=0)
    old = workload("old", of=gpu, on=["n0"], running=600, age=700, queue="a")
    queues = [queue("a"), queue("b", guaranteed={"gpu": 2})]
    told = cluster([node("n0", cpu=4, gpu=2)], [old], queues, actions=("allocate", "reclaim"))
    stage.put(told)
    with Running(plane, told.settings, told.now, "slow-0/binding") as scheduler:
        scheduler.client.refusal = ApiError(403, "Forbidden", "not today")
        stage.add_workload(workload("slow", of=gpu, age=10, queue="a"))
        assert scheduler.client.held.wait(LONG)
        seen = scheduler.seen_to_evict()
        stage.add_workload(workload("new", of=spec(gpu=2, cpu=0), age=5, queue="b"))
        assert seen.wait(LONG), "nothing was to be evicted"
        scheduler.client.released.set()
        wait_until(lambda: ("evict", "old-0") in scheduler.done, "it decides anew for ever")
        wait_until(lambda: ("bind", "slow-0") in scheduler.failures, "nobody says that the binding was refused")


def test_what_waits_is_promised_its_place_whatever_was_written_of_why_it_waits(plane, stage):
    """That decides nothing: the promise is written on the pod as it is then, and those who make room for it go."""
    gpu = spec(gpu=1, cpu=0)
    old = workload("old", of=gpu, on=["n0"], running=600, age=700, queue="a")
    queues = [queue("a"), queue("b", guaranteed={"gpu": 1})]
    told = cluster([node("n0", cpu=4, gpu=1)], [old], queues, actions=("allocate", "reclaim"))
    stage.put(told)
    with Running(plane, told.settings, told.now, "new-0/status") as scheduler:
        stage.add_workload(workload("new", of=gpu, age=5, queue="b"))
        assert scheduler.client.held.wait(LONG)
        why = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "somebody says so"}
        stage.client.patch(
            "/api/v1/namespaces/default/pods/new-0/status", {"status": {"conditions": [why]}}, "strategic"
        )
        known = scheduler.live.informers.pods.records
        wait_until(lambda: known["default", "new-0"].waits[0] == "Unschedulable", "what was written is not seen")
        scheduler.client.released.set()
        wait_until(lambda: ("evict", "old-0") in scheduler.done, "nobody makes room")
    assert ("nominate", "new-0") in scheduler.done
    assert not scheduler.failures


def notices_of(stage, pod):
    """Give the notice on a pod."""
    meta = stage.client.get(f"/api/v1/namespaces/default/pods/{pod}")["metadata"]
    said = meta.get("annotations", {}).get(keys.NOTICE)
    return None if said is None else json.loads(said)


def test_an_eviction_that_fails_stays_announced(plane, stage):
    """The pod is to go by the notice that it has; it gets no second one, and none is withdrawn."""
    gpu = spec(gpu=1, cpu=0)
    old = workload("old", of=gpu, on=["n0"], running=600, age=700, queue="a")
    queues = [queue("a"), queue("b", guaranteed={"gpu": 1})]
    told = cluster(
        [node("n0", cpu=4, gpu=1)], [old], queues, actions=("allocate", "reclaim"), eviction_notice=60 * SECOND
    )
    stage.put(told)
    with Running(plane, told.settings, told.now, "old-0/eviction") as scheduler:
        scheduler.client.refusal = ApiError(503, "ServiceUnavailable", "not now")
        stage.add_workload(workload("new", of=gpu, age=5, queue="b"))
        wait_until(lambda: notices_of(stage, "old-0"), "nobody is told to go")
        notice = notices_of(stage, "old-0")
        scheduler.now += 61 * SECOND
        scheduler.live.wake()
        assert scheduler.client.held.wait(LONG)
        assert notices_of(stage, "old-0") == notice
        scheduler.client.released.set()
        wait_until(lambda: ("evict", "old-0") in scheduler.failures, "nobody says that the eviction failed")
        wait_until(lambda: ("evict", "old-0") in scheduler.done, "it is not tried again")
    assert [action for action, _ in scheduler.done if action in ("notice", "withdraw", "evict")] == ["notice", "evict"]
