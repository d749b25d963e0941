"""The scheduler's process is killed at random writes and started again, as a kubelet would."""

from __future__ import annotations

import os
import random
import threading
from contextlib import contextmanager

import pytest
from tests.kubernetes.proxy import FaultProxy
from tests.kubernetes.running import JOBS, PODS, SETS, TENURE, Scheduler, bound, clear, gang, job, pods_of, queue
from tests.kubernetes.stage import wait_until
from tools.controlplane.plane import ControlPlane, Options

from tenure.clusters.kubernetes import journal

KILLS = 200 if os.environ.get("TENURE_EXAMPLES") == "thorough" else 4
MAPS = "/api/v1/namespaces/tenure-system/configmaps"


@pytest.fixture(scope="module")
def plane(programs, tmp_path_factory):
    assert programs.exists()
    with ControlPlane(tmp_path_factory.mktemp("plane"), Options(audit=True)) as started:
        started.install_tenure()
        yield started


class Kubelet:
    """Starts the scheduler whenever it has ended; kills it at one of its next writes, before or after that is done."""

    def __init__(self, scheduler, proxy, seed):
        self.scheduler, self.proxy, self.chance = scheduler, proxy, random.Random(seed)
        self.kills = 0
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
        if not self.ended.is_set():
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
        kubelet.ended.set()
        kubelet.thread.join(90)
        if scheduler.process is not None and scheduler.process.poll() is None:
            scheduler.process.kill()
            scheduler.process.wait(10)


def log_of(client):
    texts = [m["data"].get(journal.DATA, "") for m in client.get(MAPS)["items"] if "evictions" in m["metadata"]["name"]]
    return [entry for text in texts for entry in journal.parse(text)[0]]


def test_a_scheduler_killed_at_random_writes_loses_nothing(plane, tmp_path):
    """Each eviction that was made is on record, and in the end of each round the same runs."""
    client = plane.client()
    for number in range(2):
        plane.add_node(f"node-{number}", {"cpu": "16", "memory": "64Gi", "nvidia.com/gpu": "4"})
    for name in ("team-a", "team-b"):
        client.create(f"{TENURE}/queues", queue(name, guaranteed={"nvidia.com/gpu": 4}))
    token = plane.token_of("tenure", "tenure-system")
    with FaultProxy(plane.server, plane.authority) as proxy:
        scheduler = Scheduler(plane.kubeconfig_for(token, "killed", proxy.server), tmp_path, "killed")
        with killed_now_and_then(scheduler, proxy, seed=1) as kubelet:
            for name in ("a-first", "a-second"):
                client.create(SETS, gang(name, "team-a", 4))
            rounds = 0
            while kubelet.kills < KILLS:
                wait_until(
                    lambda: bound(client, "a-first") == bound(client, "a-second") == 4, "team-a does not run", 120
                )
                owed = f"b-{rounds}"
                client.create(JOBS, job(owed, "team-b", 4))
                wait_until(lambda: bound(client, owed) == 4, "team-b does not get its own", 120)  # noqa: B023
                wait_until(
                    lambda: len(pods_of(client, "a-first") + pods_of(client, "a-second")) == 8, "none come back", 60
                )
                assert bound(client, "a-first") + bound(client, "a-second") == 4
                client.delete(f"{JOBS}/{owed}", {"propagationPolicy": "Background"})
                rounds += 1
    evicted = {
        event["objectRef"]["name"]
        for event in plane.audit("system:serviceaccount:tenure-system:tenure")
        if event.get("objectRef", {}).get("subresource") == "eviction"
        and event["responseStatus"]["code"] == 201
        and "dryRun" not in event["requestURI"]
    }
    alive = {p["metadata"]["name"] for p in client.get(PODS)["items"]}
    gone = {name for name in evicted if name not in alive}
    assert gone <= {entry.task for entry in log_of(client)}
    assert len(gone) >= 4 * rounds
    clear(client)
