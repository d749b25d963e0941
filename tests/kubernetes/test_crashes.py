"""The scheduler ends between any two writes, and the next one goes on: nothing is lost, nothing is done twice."""

from __future__ import annotations

import itertools
import threading
import time
from dataclasses import replace

import pytest
from tests.builders import NOW, SECOND, cluster, node, queue, spec, task, workload
from tests.effort import tries
from tests.kubernetes.stage import wait_until
from tools.controlplane.plane import Options as PlaneOptions

from tenure.clusters.kubernetes import keys
from tenure.clusters.kubernetes.cache.informers import Options
from tenure.clusters.kubernetes.client.access import find_access
from tenure.clusters.kubernetes.client.leader import NotLeaderError
from tenure.clusters.kubernetes.client.requests import ApiError, Client
from tenure.clusters.kubernetes.cluster import KubernetesCluster
from tenure.clusters.kubernetes.read import eviction_log
from tenure.live.loop import Loop
from tenure.model.settings import BudgetRule, DisruptionSettings

PLANE = PlaneOptions(controllers=False, nodes=False)


class Killed(BaseException):
    """The process is no more."""


WRITERS = {"events", "explanations", "seals"}
"""Threads that write what may be late or missing."""


def is_beside(path, body):
    """Whether a write is made by a thread of its own, when it likes: an event, a reason, or a seal."""
    if threading.current_thread().name in WRITERS:
        return True
    metadata = body.get("metadata", {}) if isinstance(body, dict) else {}
    return "/events" in path or (path.endswith("/status") and metadata.get("annotations") == {})


class MortalClient(Client):
    """A client whose process ends at a write: before it, when it is done and nobody has heard of it, or by its lease.

    ``ends`` is ``before``, ``after`` or ``lost``: whoever has lost the lease goes on, and may write no more.
    """

    def __init__(self, access, last, ends):
        super().__init__(access)
        self.last, self.ends = last, ends
        self.count = 0
        self.dead = False
        self.lock = threading.Lock()

    def request(self, method, path, body=None, kind="application/json", accept=""):
        if self.dead:
            raise ApiError(0, "Dead", "is no more") if is_beside(path, body) else Killed
        if method == "GET" or is_beside(path, body):
            return super().request(method, path, body, kind, accept)
        with self.lock:
            if self.dead:  # by another thread, while this one waited
                raise Killed
            self.count += 1
            fatal = self.count == self.last and self.ends != "lost"
            if fatal and self.ends == "before":
                self.dead = True
                raise Killed
            if fatal:
                super().request(method, path, body, kind, accept)
                self.dead = True
                raise Killed
        return super().request(method, path, body, kind, accept)

    def allowed(self):
        """Let pass who has not lost the lease yet."""
        if self.ends == "lost" and self.last and self.count >= self.last:
            raise NotLeaderError


def reclaiming():
    """A gang of two in a queue above its share has to go for one of two in another, and a budget lets two go."""
    gang = spec(gpu=1, cpu=0)
    nodes = [node("n0", cpu=8, gpu=2), node("n1", cpu=8, gpu=2)]
    queues = [queue("a"), queue("b", guaranteed={"gpu": 2})]
    old = workload("old", tasks=2, of=gang, on=["n0", "n0"], running=600, age=700, queue="a")
    young = workload("young", tasks=2, of=gang, on=["n1", "n1"], running=60, age=700, queue="a")
    new = workload("new", tasks=2, of=gang, age=10, queue="b")
    rule = BudgetRule(name="few", max_evictions=2, per=3600 * SECOND)
    told = cluster(nodes, [old, young, new], queues, actions=("allocate", "reclaim"))
    return replace(told, settings=replace(told.settings, disruption=DisruptionSettings(budgets=(rule,))))


def requeueing():
    """An overdue workload goes back to the queue for a more deserving one; its cooldown is written with that."""
    one = spec(cpu=4)
    old = workload("old", of=one, on=["n0"], running=7200, age=8000, expected_runtime=60, priority=1)
    new = workload("new", of=one, age=10, priority=5)
    return cluster([node("n0", cpu=4)], [old, new], [queue("default")], actions=("allocate", "requeue"))


def moving():
    """A small pod moves to another node so that a large one fits."""
    small = workload("small", of=spec(cpu=2), on=["n0"], running=600, age=700)
    other = workload("other", tasks=[task("other-0", spec(cpu=5), on="n1")], running=600, age=700, preemptible=False)
    large = workload("large", of=spec(cpu=8), age=600)
    nodes = [node("n0", cpu=8), node("n1", cpu=8)]
    queues = [queue("default", guaranteed={"cpu": 16})]
    return cluster(nodes, [small, other, large], queues, actions=("allocate", "consolidate", "reschedule"))


SCENARIOS = {"reclaim": reclaiming, "requeue": requeueing, "move": moving}


class Play:
    """Lives of the scheduler one after the other, on one cluster. ``observed`` is that cluster as it was seen last."""

    def __init__(self, plane, stage, told):
        self.plane, self.stage, self.told = plane, stage, told
        self.now = told.now
        self.seen = {}
        self.observed = None
        self.alive = None

    def begun(self, last, ends):
        """Start a process: give its client, what it sees and its loop."""
        client = MortalClient(find_access(str(self.plane.kubeconfig)), last, ends)
        live = KubernetesCluster(client, Options(), self.told.settings, in_flight=1, allowed=client.allowed)
        live.start()
        return client, live, Loop(live, lambda: 1, wall=lambda: self.now)

    def life(self, last=0, ends="", *, cycles=14):
        """Let one process run until it ends at its write number ``last``, or nothing happens any more."""
        client, live, loop = self.begun(last, ends)
        try:
            self.until_rest(live, loop, cycles)
        except (Killed, NotLeaderError):
            self.stage.kubelet()
            assert client.count <= last
        finally:
            live.close()
        return client.count

    def go_on(self, *, cycles=14):
        """Let the process that ran before go on until nothing happens any more; the first time one is started."""
        self.alive = self.alive or self.begun(0, "")
        _, live, loop = self.alive
        self.until_rest(live, loop, cycles)

    def close(self):
        """End the process that would go on."""
        if self.alive is not None:
            self.alive[1].close()
            self.alive = None

    def until_rest(self, live, loop, cycles):
        """Let cycles follow each other until nothing happens any more."""
        assert live.informers.wait_synced(20), live.informers.troubles
        quiet = 0
        for _ in range(cycles):
            self.settle(live)
            done = loop.cycle()
            live.actor.bindings.wait()  # a later cycle tells of those that took long
            self.observed = done.observed.cluster
            self.now += SECOND
            acted = self.stage.kubelet()
            quiet = 0 if done.outcome.done or acted or done.outcome.failures else quiet + 1
            if quiet > 2:
                return
        raise AssertionError(f"no rest after {cycles} cycles: {done.plan.steps}")

    def settle(self, live):
        """Wait until the watches have shown what is there, and note that."""
        items = []

        def told():
            items[:] = self.stage.client.get("/api/v1/namespaces/default/pods")["items"]
            there = {i["metadata"]["name"]: i["metadata"]["resourceVersion"] for i in items}
            return there == {name: r.version for (_, name), r in list(live.informers.pods.records.items())}

        wait_until(told, "the watches do not catch up")
        self.note(items)

    def note(self, items):
        """Note where pods are, and which terminate."""
        for item in items:
            meta, place = item["metadata"], item["spec"].get("nodeName")
            known = self.seen.setdefault(meta["uid"], (meta["name"], place))
            assert known[1] in (None, place), f"{meta['name']} was bound twice"
            self.seen[meta["uid"]] = (meta["name"], place)

    def log(self):
        """Give what the eviction log says that happened, as it is on the API server."""
        maps = self.stage.client.get("/api/v1/namespaces/tenure-system/configmaps")["items"]
        texts = [
            m["data"].get(eviction_log.DATA, "") for m in maps if m["metadata"]["name"].startswith("tenure-evictions")
        ]
        return eviction_log.happened((entry for text in texts for entry in eviction_log.parse(text)[0]), ())

    def running(self):
        """Give the pods that run, with their node and the start that is written on them."""
        items = self.stage.client.get("/api/v1/namespaces/default/pods")["items"]
        return {
            i["metadata"]["name"]: (i["spec"]["nodeName"], i["metadata"]["annotations"].get(keys.STARTED))
            for i in items
            if i["spec"].get("nodeName")
        }


def settled(plane, stage, told, deaths):
    """Play a scenario with deaths at given writes, and give what is there in the end."""
    stage.clear()
    stage.put(told)
    play = Play(plane, stage, told)
    uids = {i["metadata"]["uid"] for i in stage.client.get("/api/v1/namespaces/default/pods")["items"]}
    for last, ends in deaths:
        play.life(last, ends)
    writes = play.life()
    left = {i["metadata"]["uid"] for i in stage.client.get("/api/v1/namespaces/default/pods")["items"]}
    log = play.log()
    gone = uids - left
    logged = {entry.uid for entry in log}
    assert gone <= logged, "an eviction has no record"
    assert logged <= set(play.seen) | gone
    assert not logged & left, "the log has an eviction that never happened"
    return play, writes, log


@pytest.mark.parametrize("name", SCENARIOS)
def test_whoever_takes_over_after_a_crash_comes_to_the_same_end(name, plane, stage):
    """After a crash before or after any write, or a lost lease, what runs in the end and who went is as without it."""
    told = SCENARIOS[name]()
    play, writes, log = settled(plane, stage, told, [])
    assert log, "the scenario evicts nobody"
    end = {pod: node for pod, (node, _) in play.running().items()}
    causes = sorted((e.workload, e.cause, e.beneficiary, bool(e.not_before)) for e in log)
    starts = {pod: start for pod, (_, start) in play.running().items() if start and start < "2027-01-15T08:00:00Z"}
    every = itertools.product(range(1, writes + 1), ("before", "after", "lost"))
    for last, ends in itertools.islice(every, 0, None, tries(7, 1)):  # all along, with every kind of end in turn
        again, _, log = settled(plane, stage, told, [(last, ends)])
        assert {pod: node for pod, (node, _) in again.running().items()} == end, (last, ends)
        found = sorted((e.workload, e.cause, e.beneficiary, bool(e.not_before)) for e in log)
        assert found == causes, (last, ends, log)
        for pod, start in starts.items():
            assert again.running()[pod][1] == start


def growing():
    """One task of a workload has run for ten minutes by the API server's clock, and another is to begin."""
    running = (NOW - time.time_ns() // 1000) // SECOND + 600
    both = workload("both", tasks=2, of=spec(cpu=2), on=["n0"], running=running, age=running + 100, min_member=1)
    return cluster([node("n0", cpu=8)], [both], [queue("default")], actions=("allocate",))


def test_who_takes_over_records_the_start_of_the_workload_and_not_that_of_its_latest_pod(plane, stage):
    """Who bound that pod has died before it could seal it; later the pod is all that is left of the workload."""
    told = growing()
    stage.clear()
    stage.put(told)
    play = Play(plane, stage, told)
    for _ in range(9):  # each does one thing
        play.life(1, "after")
        if len(play.running()) == 2:
            break
    assert len(play.running()) == 2
    try:
        play.go_on()
        wait_until(lambda: not play.alive[1].informers.pods.unsealed, "the pod is not sealed")
        (before,) = play.observed.workloads
        assert before.started_at == told.workloads[0].started_at
    finally:
        play.close()
    stage.client.delete("/api/v1/namespaces/default/pods/both-0", {"gracePeriodSeconds": 0})
    play.life()
    (after,) = play.observed.workloads
    assert [task.name for task in after.tasks] == ["both-1"]
    assert after.started_at == before.started_at


def test_many_crashes_in_a_row_change_nothing(plane, stage):
    """However often the scheduler ends, early in its life, it gets there."""
    told = reclaiming()
    play, _, log = settled(
        plane, stage, told, [(n % 3 + 1, "after" if n % 2 == 0 else "before") for n in range(tries(8, 30))]
    )
    assert sorted(pod for pod in play.running()) == ["new-0", "new-1", "old-0", "old-1"]
    assert sorted(e.task for e in log) == ["young-0", "young-1"]
