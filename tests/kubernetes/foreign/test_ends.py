"""The rescheduler beside the default kube-scheduler, where things end early: limits, pauses, crashes, closed nodes."""

from __future__ import annotations

import re
import threading
import time

import msgspec
import pytest
from tests.kubernetes.foreign.helpers import (
    close,
    events,
    nodes_of,
    nothing_is_left,
    record,
    replicas,
    settle,
    small,
    tainted,
    thieves,
)
from tests.kubernetes.proxy import FaultProxy
from tests.kubernetes.running import PODS, SETS, Scheduler, bound, pods_of, running, tenure
from tests.kubernetes.stage import PATIENCE, wait_until

from tenure.clusters.kubernetes import api
from tenure.clusters.kubernetes.external import reservations


def test_a_hole_that_nobody_fills_in_time_is_given_back(client, kubeconfig, tmp_path):
    """The taint goes when the time is over, though what moves has not left; the record goes when that has landed."""
    settle(client, nominationTimeout="3s")
    for name in ("small-a", "small-b"):
        for pod in pods_of(client, name):
            slow = {"metadata": {"annotations": {"simulated.tenure.dev/stop-seconds": "12"}}}
            client.patch(f"{PODS}/{pod['metadata']['name']}", slow, "merge")
    client.create(SETS, replicas("large", 9))
    with running(kubeconfig, tmp_path) as scheduler:
        wait_until(lambda: tainted(client), lambda: scheduler.log.read_text()[-3000:], 60)
        until = reservations.hole_of(item_of(record(client))).until
        wait_until(lambda: not tainted(client), lambda: scheduler.log.read_text()[-3000:], 30)
        wait_until(lambda: events(client, "HoleGivenUp"), "it does not say so", 30)
        assert time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime()) >= until[:19]
        assert bound(client, "large") == 0
        wait_until(lambda: record(client) is None, lambda: str(record(client)), 60)


def dead_once_room_is_kept(plane, client, proxy, folder):
    """Give a scheduler that was killed as soon as it had kept a node and told the pods of it; it moved nobody."""
    kubeconfig = plane.kubeconfig_for(plane.token_of("tenure", "tenure-system"), "killed", proxy.server)
    scheduler = Scheduler(kubeconfig, folder, "killed")
    proxy.arm(scheduler, "after", [r"PATCH /api/v1/namespaces/default/pods/[^/]+$"])
    scheduler.start()
    wait_until(lambda: not proxy.left, lambda: scheduler.log.read_text()[-3000:], 60)
    assert tainted(client)
    return scheduler


def test_a_hole_whose_scheduler_has_died_is_given_back_by_the_next_one(plane, client, tmp_path):
    """The limit stands in the cluster: whoever comes after it takes everything back, and has moved nobody."""
    settle(client, nominationTimeout="3s")
    before = set(small(client))
    client.create(SETS, replicas("large", 9))
    with Deadly(plane.server, plane.authority) as proxy:
        scheduler = dead_once_room_is_kept(plane, client, proxy, tmp_path)
        time.sleep(6)
        scheduler.start()
        try:
            wait_until(lambda: nothing_is_left(client), lambda: scheduler.log.read_text()[-3000:], 60)
        finally:
            scheduler.stop()
    assert set(small(client)) == before


def test_a_pause_lets_nobody_leave_and_gives_back_what_was_kept_for_that(plane, client, tmp_path):
    """Room that is kept although nothing has moved yet is given back, and none is kept before the pause ends."""
    settle(client)
    before = set(small(client))
    client.create(SETS, replicas("large", 9))
    with Deadly(plane.server, plane.authority) as proxy:
        scheduler = dead_once_room_is_kept(plane, client, proxy, tmp_path)
        paused = tenure("pause", "--for", "10m", "--reason", "a test", kubeconfig=plane.kubeconfig)
        assert paused.returncode == 0, paused.stderr
        scheduler.start()
        try:
            wait_until(lambda: nothing_is_left(client), lambda: scheduler.log.read_text()[-3000:], 60)
            time.sleep(3)
            assert nothing_is_left(client)
        finally:
            scheduler.stop()
            tenure("pause", "--end", kubeconfig=plane.kubeconfig)
    assert set(small(client)) == before


def test_a_replacement_that_is_kept_off_in_vain_is_made_anew(plane, client, tmp_path):
    """Where it was to land has closed, and where it comes from is free again: it goes there in the end."""
    settle(client)
    before = {uid: pod["spec"]["nodeName"] for uid, pod in small(client).items()}
    client.create(SETS, replicas("large", 9))
    with Closing(plane.server, plane.authority) as proxy:
        proxy.plane, proxy.closed = plane, set()
        kubeconfig = plane.kubeconfig_for(plane.token_of("tenure", "tenure-system"), "closing", proxy.server)
        with running(kubeconfig, tmp_path) as scheduler:
            wait_until(lambda: bound(client, "large") == 1, lambda: scheduler.log.read_text()[-3000:], 60)
            (hole,) = nodes_of(client, "large")
            wait_until(lambda: not tainted(client), "the taint stays", 30)
            client.delete(f"{SETS}/large", {"propagationPolicy": "Background"})
            wait_until(lambda: bound(client, "small-a") == bound(client, "small-b") == 2, "they wait for ever", 120)
            wait_until(lambda: nothing_is_left(client), "something is left", 60)
    new = [pod["spec"]["nodeName"] for uid, pod in small(client).items() if uid not in before]
    assert new == [hole, hole]
    plane.kubectl("uncordon", *proxy.closed)


class Closing(FaultProxy):
    """A proxy that closes the node where something would land, just before that is evicted."""

    once = threading.Lock()  # two are evicted side by side

    def run_before(self, request):
        super().run_before(request)
        if request.path.endswith("/eviction") and b"dryRun" not in request.body:
            with self.once:
                self.close_others()

    def close_others(self):
        if not self.closed:
            client = self.plane.client()
            self.closed |= {n["metadata"]["name"] for n in client.get("/api/v1/nodes")["items"]} - set(tainted(client))
            close(self.plane, self.closed)


FATAL = (
    r"(POST|PUT) .*/configmaps(/tenure-moves-default)?$",
    r"PATCH /api/v1/nodes/",
    r"PATCH /api/v1/namespaces/default/pods/[^/]+$",
    r"(POST|PUT) .*/configmaps(/tenure-evictions-default-0)?$",
    r"PATCH .*/pods/small-[^/]+/status$",
    r"POST .*/eviction$",
    r"PATCH /api/v1/nodes/",
    r"(PUT|DELETE) .*/configmaps/tenure-moves-default$",
)
"""The writes of one move, in their order."""


class Deadly(FaultProxy):
    """A proxy that kills the scheduler at certain writes, one after the other, before or after they are done."""

    def arm(self, scheduler, when, writes=FATAL):
        self.scheduler, self.when, self.left = scheduler, when, list(writes)

    def run_before(self, request):
        super().run_before(request)
        self.kill("before", request)

    def run_after(self, request):
        super().run_after(request)
        self.kill("after", request)

    def kill(self, when, request):
        if when == self.when and self.left and re.match(self.left[0], f"{request.method} {request.path}"):
            if request.path.endswith("/eviction") and b"dryRun" in request.body:
                return
            del self.left[0]
            self.scheduler.process.kill()
            self.scheduler.process.wait(10)


@pytest.mark.parametrize("when", ["before", "after"])
def test_killed_at_every_one_of_its_writes_it_gets_there_all_the_same(when, plane, client, tmp_path):
    """Whoever comes next goes on: two pods move, once each, the room goes to whom it was made for, nothing is left."""
    settle(client)
    client.create(SETS, replicas("large", 9))
    client.create(SETS, thieves(4))
    before = set(small(client))
    with Deadly(plane.server, plane.authority) as proxy:
        kubeconfig = plane.kubeconfig_for(plane.token_of("tenure", "tenure-system"), "killed", proxy.server)
        scheduler = Scheduler(kubeconfig, tmp_path, "killed")
        proxy.arm(scheduler, when)
        until = time.monotonic() + PATIENCE * 150
        try:
            while time.monotonic() < until and not (bound(client, "large") and nothing_is_left(client)):
                if scheduler.process is None or scheduler.process.poll() is not None:
                    scheduler.start()
                time.sleep(0.1)
        finally:
            scheduler.process.kill()
            scheduler.process.wait(10)
        assert proxy.left == []
    assert bound(client, "large") == 1
    assert nothing_is_left(client)
    assert bound(client, "thief") == 0
    wait_until(lambda: bound(client, "small-a") == bound(client, "small-b") == 2, "what moved does not land", 30)
    assert len(before - set(small(client))) == 2


def item_of(plain):
    return msgspec.convert({key: plain[key] for key in ("metadata", "data")}, api.ApiObject, strict=False)
