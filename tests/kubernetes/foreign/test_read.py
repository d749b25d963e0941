"""What would be moved of kube-scheduler's pods is told before anything is moved: live, and from a snapshot."""

from __future__ import annotations

import json

from tests import preloaded
from tests.kubernetes.foreign.helpers import nothing_is_left, replicas, settle, small
from tests.kubernetes.running import SETS, pods_of, tenure
from tests.kubernetes.stage import wait_until


def moved(text):
    (plan,) = json.loads(text)["external"]["moves"]
    assert plan["feasible"], plan
    return plan["for"], sorted((s["from"], s["to"]) for wave in plan["waves"] for s in wave)


def test_the_plan_for_its_pods_is_read_live_and_from_a_snapshot_and_moves_nobody(client, kubeconfig, tmp_path):
    """Two of the small pods would leave one node for the other; both readings agree."""
    settle(client)
    client.create(SETS, replicas("large", 9))
    wait_until(lambda: any("conditions" in p["status"] for p in pods_of(client, "large")), "it is not looked at", 30)
    before = set(small(client))
    file = tmp_path / "cluster.yaml"
    taken = tenure("snapshot", "--output", str(file), kubeconfig=kubeconfig)
    assert taken.returncode == 0, taken.stderr
    options = ["--set", "scheduler.rescheduler.pendingFor=0", "--format", "json"]
    live = tenure("reschedule", "--live", "--dry-run", *options, kubeconfig=kubeconfig)
    read = preloaded.run(["reschedule", str(file), *options], capture_output=True, text=True)
    assert (live.returncode, read.returncode) == (0, 0), live.stderr + read.stderr
    whose, moves = moved(read.stdout)
    assert whose[0].startswith("default/large")
    assert moves in ([("node-0", "node-1")] * 2, [("node-1", "node-0")] * 2)
    assert len(moved(live.stdout)[1]) == 2
    assert set(small(client)) == before
    assert nothing_is_left(client)
