"""The scheduler's process is killed at random writes and started again, as a kubelet would."""

from __future__ import annotations

import os
import random
import threading
from collections import Counter
from contextlib import contextmanager

import pytest
from tests.effort import tries
from tests.kubernetes.proxy import FaultProxy
from tests.kubernetes.running import Scheduler
from tests.kubernetes.teams import WATCHED, Teams
from tests.kubernetes.witness import Witness

WRITES = 30 if os.environ.get("TENURE_TENANT") != "hostile" else 120
"""Writes within which it is killed; beside a tenant who is told of what is wrong with its objects there are more."""

KILLS = int(os.environ.get("TENURE_KILLS", tries(6, 200)))


class Kubelet:
    """Starts the scheduler whenever it has ended; kills it at one of its next writes, before or after that is done."""

    def __init__(self, scheduler, proxy, seed):
        self.scheduler, self.proxy, self.chance = scheduler, proxy, random.Random(seed)
        self.kills, self.writes = 0, WRITES
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
        at = self.proxy.writes + self.chance.randint(1, self.writes)
        when = self.chance.choice([self.proxy.before_write, self.proxy.after_write])
        when(at, self.kill)

    def kill(self, _request):
        if not self.spares.is_set():
            self.kills += 1
            self.scheduler.process.kill()
            self.scheduler.process.wait(10)


@contextmanager
def killed_now_and_then(scheduler, proxy, seed, kubelet=None):
    kubelet = kubelet or Kubelet(scheduler, proxy, seed)
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


@pytest.mark.flaky(reruns=0)  # what is lost once is lost
def test_a_scheduler_killed_at_random_writes_loses_nothing(plane, token, tmp_path):
    """No room given twice, no eviction without its record, no start, promise, cooldown, deadline, budget lost."""
    teams = Teams(plane)
    with FaultProxy(plane.server, plane.authority) as proxy, Witness(plane, WATCHED) as witness:
        scheduler = Scheduler(plane.kubeconfig_for(token, "killed", proxy.server), tmp_path, "killed")
        with killed_now_and_then(scheduler, proxy, seed=1) as kubelet:
            teams.lives = lambda: kubelet.kills
            teams.ask()
            while kubelet.kills < KILLS:
                teams.round()
            kubelet.spares.set()
            teams.end()
        history = teams.checked(witness)
    alive = {pod["metadata"]["name"] for pod in history.pods.values()}
    assert teams.tried() - alive == {entry.task for entry in history.evicted.values()}
    causes = Counter(entry.cause for entry in history.evicted.values())
    assert causes["reclaim"] >= 4 * teams.rounds
    assert causes["requeue"] >= teams.rounds
    assert causes["quota"] >= teams.rounds
