"""The rescheduler beside the default kube-scheduler: it makes room, keeps it, and leaves nothing behind."""

from __future__ import annotations

import time

import pytest
from tests.kubernetes.faults import Refuse
from tests.kubernetes.foreign.helpers import (
    BUDGET_RULES,
    BUDGETS,
    RESCHEDULER,
    calls,
    events,
    fixed,
    is_ready,
    nodes_of,
    nothing_is_left,
    only,
    place,
    record,
    replicas,
    seen,
    settle,
    small,
    status_of,
    tainted,
    thieves,
    written,
)
from tests.kubernetes.proxy import FaultProxy
from tests.kubernetes.running import SETS, bound, pods_of, running
from tests.kubernetes.stage import wait_until

from tenure.clusters.kubernetes.external import admission, reservations
from tenure.clusters.kubernetes.install.installation import Installation
from tenure.clusters.kubernetes.install.manifests import objects
from tenure.clusters.kubernetes.install.rbac import Role, granted


def test_a_pod_of_kube_scheduler_gets_its_room_by_a_move_and_nobody_steals_it(plane, client, kubeconfig, tmp_path):
    """The hole goes to whom it was made for, what moved lands elsewhere, and nothing is left of how it was done."""
    settle(client)
    before = {uid: pod["spec"]["nodeName"] for uid, pod in small(client).items()}
    client.create(SETS, replicas("large", 9))
    client.create(SETS, thieves(4))
    with running(kubeconfig, tmp_path) as scheduler:
        wait_until(
            lambda: bound(client, "large") == 1,
            lambda: scheduler.log.read_text()[-3000:] + seen(client, "large", "small-a", "small-b", "thief"),
            60,
        )
        wait_until(lambda: nothing_is_left(client), lambda: f"{tainted(client)} {record(client)}", 60)
        wait_until(lambda: bound(client, "small-a") == bound(client, "small-b") == 2, "what moved does not land", 30)
        wait_until(lambda: events(client, "HoleFilled"), "it is not said that the place is taken", 30)
    assert bound(client, "thief") == 0
    after = small(client)
    (hole,) = {before[uid] for uid in set(before) - set(after)}
    new = [after[uid] for uid in set(after) - set(before)]
    assert nodes_of(client, "large") == [hole]
    assert len(new) == 2
    for pod in new:
        assert pod["spec"]["nodeName"] != hole
        assert pod["metadata"]["annotations"][reservations.KEPT_OFF] == hole
    made = list(calls(plane))
    assert [call for call in made if call[1] == "pods/binding" or call[3] == 403] == []
    further = set(granted(Role.SCHEDULER, guides=True)) - set(granted(Role.SCHEDULER))
    assert further <= {call[:3] for call in made}
    assert events(client, "HoleKept")


def test_a_budget_says_what_of_it_is_used(client, kubeconfig, plane, tmp_path):
    """Its status and its columns show the evictions of the current window, and how many more it allows."""
    settle(client)
    for name, most in (("all", 5), ("tight", 2)):
        spec = {"maxEvictions": most, "per": "1h"}
        client.create(BUDGET_RULES, {"apiVersion": "tenure.dev/v1alpha1", "kind": "DisruptionBudget",
                                     "metadata": {"name": name}, "spec": spec})  # fmt: skip
    client.create(SETS, replicas("large", 9))
    with running(kubeconfig, tmp_path) as scheduler:
        wait_until(lambda: bound(client, "large") == 1, lambda: scheduler.log.read_text()[-3000:], 60)
        wait_until(lambda: status_of(client, "all").get("evictions") == 2, lambda: str(status_of(client, "all")), 60)
        wait_until(lambda: status_of(client, "tight").get("nextAt"), lambda: str(status_of(client, "tight")), 60)
    assert (status_of(client, "all")["allowed"], status_of(client, "all")["inForce"]) == (3, True)
    assert (status_of(client, "tight")["allowed"], status_of(client, "tight")["evictions"]) == (0, 2)
    assert "nextAt" not in status_of(client, "all")
    header, row = plane.kubectl("get", "tdb", "all").splitlines()
    shown = [row[header.index(name) :].split()[0] for name in ("EVICTIONS", "PER", "USED", "ALLOWED")]
    assert shown == ["5", "1h", "2", "3"]


def test_a_plan_of_several_waves_goes_wave_by_wave_and_what_it_frees_on_the_way_is_kept(
    client, kubeconfig, plane, tmp_path
):
    """What has to make room for another move goes first; that lands before the next goes, and nobody slips in."""
    settle(client)
    plane.add_node("node-2", {"cpu": "10", "memory": "32Gi"})
    wait_until(lambda: all(is_ready(n) for n in client.get("/api/v1/nodes")["items"]), "no third node", 30)
    for name in ("small-a", "small-b"):
        client.delete(f"{SETS}/{name}", {"propagationPolicy": "Background"})
    wait_until(lambda: not pods_of(client, "small-a") + pods_of(client, "small-b"), "the small ones do not go", 30)
    place(plane, client, "node-0", replicas("first", 4, **only("node-0", "node-1")))
    place(plane, client, "node-1", replicas("second", 4))
    place(plane, client, "node-1", fixed("wall-1", 3))
    place(plane, client, "node-2", fixed("wall-2", 4))
    client.create(SETS, replicas("large", 9, **only("node-0")))
    client.create(SETS, thieves(2, **only("node-0", "node-1")))
    with running(kubeconfig, tmp_path) as scheduler:
        wait_until(
            lambda: bound(client, "large") == 1,
            lambda: scheduler.log.read_text()[-3000:] + seen(client, "large", "first", "second", "thief"),
            60,
        )
        wait_until(lambda: nothing_is_left(client), lambda: f"{tainted(client)} {record(client)}", 60)
        evicted = [line for line in scheduler.lines() if line["message"] == "evicted"]
    assert [line["workload"] for line in evicted] == ["default/second", "default/first"]
    assert (nodes_of(client, "large"), nodes_of(client, "first"), nodes_of(client, "second")) == (
        ["node-0"], ["node-1"], ["node-2"],
    )  # fmt: skip
    (second,) = pods_of(client, "second")
    scheduled = next(c for c in second["status"]["conditions"] if c["type"] == "PodScheduled")
    assert scheduled["lastTransitionTime"] <= evicted[1]["time"]


def test_in_shadow_it_says_what_would_move_and_writes_nothing_of_it(plane, client, kubeconfig, tmp_path):
    """No record, no taint, no toleration, no eviction: only an event on what would move."""
    settle(client, modes={"reschedule": "shadow"})
    client.create(SETS, replicas("large", 9))
    before = len(list(calls(plane)))
    with running(kubeconfig, tmp_path):
        wait_until(lambda: events(client, "WouldEvict"), "it does not say what it would do", 60)
        time.sleep(2)
    assert written(list(calls(plane))[before:]) == set()
    assert nothing_is_left(client)
    assert bound(client, "large") == 0


def test_a_budget_that_refuses_at_the_last_moment_leaves_no_taint(plane, client, tmp_path):
    """What was kept is given back at once, and nobody has left."""
    settle(client)
    with FaultProxy(plane.server, plane.authority) as proxy:
        proxy.script.add(Refuse(429), method="POST", path="/eviction$", times=2, skip=4)
        token = plane.token_of("tenure", "tenure-system")
        client.create(SETS, replicas("large", 9))
        with running(plane.kubeconfig_for(token, "refused", proxy.server), tmp_path) as scheduler:
            wait_until(lambda: events(client, "HoleGivenUp"), lambda: scheduler.log.read_text()[-3000:], 60)
            wait_until(lambda: nothing_is_left(client), "something is left", 10)
            assert bound(client, "small-a") == bound(client, "small-b") == 2
            assert not [line for line in scheduler.lines() if line["message"] == "evicted"]


def test_what_a_budget_forbids_is_never_begun(plane, client, kubeconfig, tmp_path):
    """Where no pod may be down, nothing is kept and nothing is asked for."""
    settle(client)
    for name in ("small-a", "small-b"):
        spec = {"maxUnavailable": 0, "selector": {"matchLabels": {"app": name}}}
        client.create(BUDGETS, {"metadata": {"name": name}, "spec": spec})
    client.create(SETS, replicas("large", 9))
    before = len(list(calls(plane)))
    with running(kubeconfig, tmp_path):
        time.sleep(8)
    assert written(list(calls(plane))[before:]) == set()
    assert bound(client, "large") == 0


@pytest.mark.parametrize(
    ("config", "role", "more"),
    [
        ({"rescheduler": RESCHEDULER}, Role.SCHEDULER, True),
        ({"rescheduler": RESCHEDULER}, Role.READ_ONLY, False),
        ({"rescheduler": {}}, Role.SCHEDULER, False),
        (None, Role.SCHEDULER, False),
    ],
)
def test_further_rights_are_given_only_where_schedulers_are_named(config, role, more):
    """The policy and the rights on nodes and pods stand in the manifests of an installation that uses them alone."""
    made = objects(Installation(image="tenure:test", config=config, role=role))
    rules = next(o["rules"] for o in made if o["kind"] == "ClusterRole" and o["metadata"]["name"] == "tenure")
    assert any("patch" in r["verbs"] and r["resources"] in (["nodes"], ["pods"]) for r in rules) == more
    assert any(r.get("resourceNames") == [admission.NAME] for r in rules) == more
    assert {o["kind"] for o in made if "MutatingAdmission" in o["kind"]} == (
        {"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"} if more else set()
    )
