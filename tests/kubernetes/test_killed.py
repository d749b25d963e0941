"""The scheduler's process is killed at random writes and started again, as a kubelet would."""

from __future__ import annotations

import os
import random
import threading
from collections import Counter
from contextlib import contextmanager

import pytest
from tests.kubernetes.invariants import History
from tests.kubernetes.proxy import FaultProxy
from tests.kubernetes.running import JOBS, PODS, SETS, TENURE, Scheduler, bound, gang, job, pods_of, queue
from tests.kubernetes.stage import wait_until
from tests.kubernetes.witness import Witness

KILLS = 200 if os.environ.get("TENURE_EXAMPLES") == "thorough" else 20
MAPS = "/api/v1/namespaces/tenure-system/configmaps"
SEAT, TOKEN = "example.com/seat", "example.com/token"
BUDGETS = {"team-a": (4, 8.0)}


class Kubelet:
    """Starts the scheduler whenever it has ended; kills it at one of its next writes, before or after that is done."""

    def __init__(self, scheduler, proxy, seed):
        self.scheduler, self.proxy, self.chance = scheduler, proxy, random.Random(seed)
        self.kills = 0
        self.spares = threading.Event()
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)

    def run(self):
        while not self.ended.is_set():
            process = self.scheduler.process
            if process is None or process.poll() is not None:
                self.arm()
                self.scheduler.start()
            self.ended.wait(0.05)

    def arm(self):
        at = self.proxy.writes + self.chance.randint(1, 14)
        when = self.chance.choice([self.proxy.before_write, self.proxy.after_write])
        when(at, self.kill)

    def kill(self, _request):
        if not self.spares.is_set():
            self.kills += 1
            self.scheduler.process.kill()
            self.scheduler.process.wait(10)


@contextmanager
def killed_now_and_then(scheduler, proxy, seed):
    kubelet = Kubelet(scheduler, proxy, seed)
    kubelet.thread.start()
    try:
        yield kubelet
    finally:
        kubelet.spares.set()
        kubelet.ended.set()
        kubelet.thread.join(90)
        if scheduler.process is not None and scheduler.process.poll() is None:
            scheduler.process.kill()
            scheduler.process.wait(10)


class Teams:
    """Who wants what: one queue is owed what another holds, two take turns, and one's quota is lowered and raised."""

    def __init__(self, plane):
        self.client = client = plane.client()
        for number in range(2):
            plane.add_node(f"node-{number}", {"cpu": "16", "memory": "64Gi", "nvidia.com/gpu": "4"})
        plane.add_node("node-2", {"cpu": "16", "memory": "64Gi", SEAT: "1", TOKEN: "2"})
        settings = {"requeueDelay": "6s", "requeue": {"contenders": "any"}, "quotaPreemption": {"enabled": True}}
        for kind, name, spec in (
            ("NodePool", "default", {"scheduler": settings}),
            ("DisruptionBudget", "few", {"queue": "team-a", "maxEvictions": 4, "per": "8s"}),
        ):
            body = {"apiVersion": "tenure.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec}
            client.create(f"{TENURE}/{kind.lower()}s", body)
        for name in ("team-a", "team-b"):
            client.create(f"{TENURE}/queues", queue(name, guaranteed={"nvidia.com/gpu": 4}))
        client.create(f"{TENURE}/queues", queue("shared", expectedRuntime="1s"))
        client.create(f"{TENURE}/queues", queue("metered", max={TOKEN: 2}, quotaPreemptionDelay="3s"))
        self.rounds = 0

    def ask(self):
        """Let those who hold everything ask for it."""
        for name in ("a-first", "a-second"):
            self.client.create(SETS, gang(name, "team-a", 4))
        for name in ("turn-1", "turn-2"):
            self.client.create(SETS, gang(name, "shared", 1, resource=SEAT))
        metered = gang("metered", "metered", 2, resource=TOKEN)
        metered["spec"]["template"]["metadata"]["annotations"]["tenure.dev/min-member"] = "1"
        self.client.create(SETS, metered)

    def runs(self, name, pods):
        """Wait until so many pods of a workload are bound."""
        wait_until(lambda: bound(self.client, name) == pods, f"{name} does not run with {pods}", 180)

    def quota(self, tokens):
        """Change a quota."""
        self.client.patch(f"{TENURE}/queues/metered", {"spec": {"max": {TOKEN: tokens}}})

    def everything_runs(self):
        """Wait until all that there is room for runs."""
        for name in ("a-first", "a-second"):
            self.runs(name, 4)
        self.runs("metered", 2)

    def round(self):
        """Let one queue be owed what another holds, and a quota be lowered; then all is as before."""
        self.everything_runs()
        owed = f"b-{self.rounds}"
        self.client.create(JOBS, job(owed, "team-b", 4))
        self.quota(1)
        self.runs(owed, 4)
        back = lambda: [len(pods_of(self.client, name)) for name in ("a-first", "a-second")] == [4, 4]  # noqa: E731
        wait_until(back, "nobody comes back", 60)
        assert bound(self.client, "a-first") + bound(self.client, "a-second") == 4
        self.runs("metered", 1)
        self.quota(2)
        self.client.delete(f"{JOBS}/{owed}", {"propagationPolicy": "Background"})
        self.rounds += 1


@pytest.mark.flaky(reruns=0)  # what is lost once is lost
def test_a_scheduler_killed_at_random_writes_loses_nothing(plane, token, tmp_path):
    """No room given twice, no eviction without its record, no start, promise, cooldown, deadline, budget lost."""
    teams = Teams(plane)
    collections = {"nodes": "/api/v1/nodes", "queues": f"{TENURE}/queues", "pods": PODS, "configmaps": MAPS}
    with FaultProxy(plane.server, plane.authority) as proxy, Witness(plane, collections) as witness:
        scheduler = Scheduler(plane.kubeconfig_for(token, "killed", proxy.server), tmp_path, "killed")
        with killed_now_and_then(scheduler, proxy, seed=1) as kubelet:
            teams.ask()
            while kubelet.kills < KILLS:
                teams.round()
            kubelet.spares.set()
            teams.everything_runs()
            wait_until(lambda: sum(bound(teams.client, n) for n in ("turn-1", "turn-2")) == 1, "nobody's turn", 60)
        changes = witness.changes()
    history = History.of(changes)
    for name, (most, seconds) in BUDGETS.items():
        history.check_budget(name, most, seconds)
    assert not history.wrong
    alive = {pod["metadata"]["name"] for pod in history.pods.values()}
    went = {entry.task for entry in history.evicted.values()}
    assert tried(plane) - alive == went
    causes = Counter(entry.cause for entry in history.evicted.values())
    assert causes["reclaim"] >= 4 * teams.rounds
    assert causes["requeue"] >= teams.rounds
    assert causes["quota"] >= teams.rounds


def tried(plane):
    """Give the names of pods whose eviction the API server granted, without effect or with it."""
    return {
        event["objectRef"]["name"]
        for event in plane.audit("system:serviceaccount:tenure-system:tenure")
        if event.get("objectRef", {}).get("subresource") == "eviction" and event["responseStatus"]["code"] == 201
    }
