"""A scheduler whose machine's clock is minutes off protects for as long as one whose clock is right."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from datetime import datetime

import pytest
from tests.kubernetes import running as commands
from tests.kubernetes.running import JOBS, TENURE, bound, clear, gang, job, pods_of, queue, running
from tests.kubernetes.stage import wait_until

from tenure.clusters.kubernetes.keys import SEAL

MINIMUM = 12
TOLERANCE = 20
"""Seconds of a minimum runtime, and by how much it may be missed on a machine that does other things as well."""

OFF = """
import time
def off(read, by):
    return lambda: read() + by
time.time, time.time_ns = off(time.time, {by}), off(time.time_ns, {by} * 10**9)
from tenure.cli.main import main
main()
"""


@pytest.mark.parametrize("minutes", [-10, 10])
def test_a_clock_that_is_off_moves_no_minimum_runtime(plane, token, tmp_path, monkeypatch, minutes):
    """Who holds what another is owed keeps it for its minimum runtime, and no longer; its record has no time in it."""
    client = plane.client()
    plane.add_node("node-0", {"cpu": "16", "memory": "64Gi", "nvidia.com/gpu": "4"})
    settings = {"reclaimMinRuntime": f"{MINIMUM}s"}
    body = {"apiVersion": "tenure.dev/v1alpha1", "kind": "NodePool", "metadata": {"name": "default"}}
    client.create(f"{TENURE}/nodepools", {**body, "spec": {"scheduler": settings}})
    client.create(f"{TENURE}/queues", queue("lender", guaranteed={"nvidia.com/gpu": 4}))
    client.create(f"{TENURE}/queues", queue("borrower"))
    by_a_wrong_clock = [sys.executable, "-c", OFF.format(by=minutes * 60)]
    monkeypatch.setattr(commands, "launched", lambda words, **how: subprocess.Popen([*by_a_wrong_clock, *words], **how))
    try:
        with running(plane.kubeconfig_for(token, "clocks"), tmp_path):
            client.create(commands.SETS, gang("borrows", "borrower", 1, gpu=4))
            wait_until(lambda: bound(client, "borrows") == 1, "it does not run", 60)
            (first,) = pods_of(client, "borrows")
            began = placed(first)
            client.create(JOBS, job("owed", "lender", 1, gpu=4))
            wait_until(lambda: sealed(client, "borrows"), "it is not on record", 20)
            record = sealed(client, "borrows")
            assert (record.get("first"), record.get("started")) == (True, None)
            wait_until(lambda: bound(client, "owed") == 1, "what is owed is not given back", 60)
            kept = time.time() - began
            assert MINIMUM - 1 <= kept <= MINIMUM + TOLERANCE
    finally:
        clear(client)


def placed(pod):
    condition = next(c for c in pod["status"]["conditions"] if c["type"] == "PodScheduled" and c["status"] == "True")
    return datetime.fromisoformat(condition["lastTransitionTime"]).timestamp()


def sealed(client, name):
    conditions = [c for p in pods_of(client, name) for c in p["status"].get("conditions", ())]
    return next((json.loads(c["message"]) for c in conditions if c["type"] == SEAL), None)
