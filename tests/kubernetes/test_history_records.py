"""What the live scheduler writes of each eviction, from the plan to what came of it, held to the cluster's objects."""

from __future__ import annotations

import json
import time

import pytest
from tests.kubernetes.running import (
    JOBS,
    PODS,
    SETS,
    TENURE,
    bound,
    clear,
    gang,
    job,
    log_of,
    pods_of,
    queue,
    running,
)
from tests.kubernetes.stage import wait_until

from tenure.clusters.kubernetes import keys
from tenure.history import open_history
from tenure.history.errors import HistoryError
from tenure.history.query import Query
from tenure.history.reading.statement import statement_of
from tenure.model.values.duration import format_time, parse_time
from tenure.model.values.problems import InvalidInputError

GPU = "nvidia.com/gpu"
PDBS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"


@pytest.fixture
def client(plane):
    made = plane.client()
    for number in range(2):
        plane.add_node(f"node-{number}", {"cpu": "16", "memory": "64Gi", GPU: "4"})
    for name in ("team-a", "team-b"):
        made.create(f"{TENURE}/queues", queue(name, guaranteed={GPU: 4}))
    yield made
    for item in made.get(PDBS)["items"]:
        made.delete(f"{PDBS}/{item['metadata']['name']}")
    clear(plane.client())


def told(address, *kinds):
    """Give the records of some kinds."""
    try:
        with open_history(address) as store:
            return store.records(Query(kinds=kinds), limit=100_000).records
    except (HistoryError, InvalidInputError):
        return []


def test_an_eviction_is_told_from_its_plan_to_what_came_of_it(plane, client, token, tmp_path, address):
    """Planned, carried out, what it cost and what was saved; the other one started, and the victim again."""
    with running(plane.kubeconfig_for(token, "tenure"), tmp_path, "one", "--history", address):
        client.create(SETS, gang("a-first", "team-a", 8, **{"tenure.dev/checkpoint-interval": "2s"}))
        wait_until(lambda: bound(client, "a-first") == 8, "it does not start", 200)
        first = {p["metadata"]["uid"]: p for p in pods_of(client, "a-first")}
        time.sleep(5)
        client.create(JOBS, job("b-first", "team-b", 4))
        wait_until(lambda: bound(client, "b-first") == 4, "team-b does not start", 200)
        b_pods = pods_of(client, "b-first")
        client.delete(f"{JOBS}/b-first", {"propagationPolicy": "Background"})
        wait_until(lambda: bound(client, "a-first") == 8, "the victim does not come back", 200)
        wait_until(lambda: told(address, "outcome"), "nobody knows what came of it", 60)
        again = lambda: [r for r in told(address, "started") if r.payload.get("again")]  # noqa: E731
        wait_until(again, lambda: f"the victim's new start is not told: {told(address, 'started')}", 60)
        wait_until(lambda: told(address, "ended"), "the end is not told", 100)
    evicted = check_evictions(address, client, first)
    check_outcome(address, b_pods, evicted)
    check_starts(address, evicted, pods_of(client, "a-first"))
    with open_history(address) as store:
        rows = {row.key: row for row in statement_of(store, by="queue").rows}
    assert (
        rows["team-a"].lost[GPU] == rows["team-b"].caused[GPU] == sum(r.payload["lost"][GPU] for r in evicted.values())
    )
    assert rows["team-a"].saved[GPU] == sum(r.payload["saved"][GPU] for r in evicted.values())
    assert rows["team-a"].evictions == 1


def check_evictions(address, client, first):
    """Hold evictions to the cluster's own log, and to the pods that they were of; gives their records."""
    entries = {entry.uid: entry for entry in log_of(client)}
    assert set(entries) == set(first)
    evicted = {r.payload["uid"]: r for r in told(address, "evicted")}
    assert set(evicted) == set(first)
    planned = {(r.payload["uid"], r.plan): r for r in told(address, "planned")}
    began = parse_time(next(iter(first.values()))["metadata"]["annotations"][keys.STARTED])
    for uid, record in evicted.items():
        entry, pod = entries[uid], first[uid]
        assert (record.workload, record.queue, record.cause) == ("default/a-first", "team-a", "reclaim")
        assert record.beneficiary == "default/b-first"
        assert record.plan == str(record.at)
        assert format_time(record.at) == entry.at
        assert record.payload["node"] == pod["spec"]["nodeName"]
        assert record.payload["forQueue"] == "team-b"
        plan = planned[uid, record.plan]
        assert (plan.cause, plan.beneficiary, plan.payload["node"]) == (
            "reclaim",
            "default/b-first",
            pod["spec"]["nodeName"],
        )
        assert record.payload["reason"] == plan.payload["reason"]
        ran = record.at - began
        lost, saved = record.payload["lost"][GPU] / 1000, record.payload["saved"][GPU] / 1000
        assert 0 <= lost < 2_000_000, "more is lost than since the last checkpoint"
        assert abs(lost + saved - ran) < 2_000_000, (lost, saved, ran)  # pods tell their start in whole seconds
        assert record.value > 0
    return evicted


def check_outcome(address, b_pods, evicted):
    """Hold what came of it to the pods that started."""
    (outcome,) = told(address, "outcome")
    start = parse_time(b_pods[0]["metadata"]["annotations"][keys.STARTED])
    assert outcome.workload == "default/b-first"
    assert outcome.cause == "reclaim"
    assert outcome.payload["start"] == start
    assert outcome.payload["evictedAt"] == min(r.at for r in evicted.values())
    assert outcome.payload["ran"] > 0  # nobody knows when the victim would have ended: what it had of it is its run
    assert outcome.payload["gained"][GPU] == 4000 * outcome.payload["ran"]


def check_starts(address, evicted, again):
    """Hold starts to the pods of the victim, which runs again."""
    started = [r for r in told(address, "started") if r.workload == "default/a-first"]
    assert [bool(r.payload.get("again")) for r in started] == [False, True]
    assert started[1].payload["evictedAt"] == max(r.at for r in evicted.values())
    assert started[1].at == parse_time(again[0]["metadata"]["annotations"][keys.STARTED])
    assert {task for task, _, _ in started[1].payload["tasks"]} == {p["metadata"]["name"] for p in again}
    nominated = told(address, "nominated")
    assert {r.workload for r in nominated} <= {"default/b-first", "default/a-first"}
    (ended,) = told(address, "ended")
    assert ended.workload == "default/b-first"
    assert ended.payload["held"][GPU] > 0


def test_a_cause_that_loses_is_told_of_and_pauses(plane, client, token, tmp_path):
    """Two minutes of work are lost for a few seconds of others': who comes next waits, and is told why."""
    address = str(tmp_path / "history.db")
    pool = {"apiVersion": "tenure.dev/v1alpha1", "kind": "NodePool", "metadata": {"name": "default"},
            "spec": {"scheduler": {"worth": {"breaker": {"enabled": True}}}}}  # fmt: skip
    client.create(f"{TENURE}/nodepools", pool)
    for name in ("team-a", "team-b"):
        client.patch(f"{TENURE}/queues/{name}", {"spec": {"guaranteed": None}})
    with running(plane.kubeconfig_for(token, "tenure"), tmp_path, "one", "--history", address) as scheduler:
        client.create(SETS, gang("a-long", "team-a", 8))
        wait_until(lambda: bound(client, "a-long") == 8, "it does not start", 200)
        time.sleep(15)
        client.create(JOBS, job("b-short", "team-b", 4))
        wait_until(lambda: bound(client, "b-short") == 4, "team-b does not start", 200)
        client.delete(f"{JOBS}/b-short", {"propagationPolicy": "Background"})
        wait_until(lambda: bound(client, "a-long") == 8, "the victim does not come back", 200)
        told_of = lambda: client.get(f"{TENURE}/nodepools/default").get("status", {}).get("outcomes")  # noqa: E731
        wait_until(told_of, "the node pool does not say what evictions came to", 100)
        client.create(JOBS, job("b-next", "team-b", 4))
        why = lambda: "".join(  # noqa: E731
            c.get("message", "") for p in pods_of(client, "b-next") for c in p["status"].get("conditions", ())
        )
        wait_until(
            lambda: "reclaim lost" in why() and "paused until" in why(), lambda: f"it does not say why: {why()}", 100
        )
        assert bound(client, "b-next") == 0
        assert bound(client, "a-long") == 8
        (outcome,) = told_of()
        assert outcome["cause"] == "reclaim"
        assert outcome["lost"] > outcome.get("gained", 0)
        page = scheduler.page("/metrics")[1]
        assert f'tenure_lost_weighted_seconds{{cause="reclaim"}} {outcome["lost"]}.0' in page
        reasons = lambda: {e["reason"] for e in client.get("/api/v1/events")["items"]}  # noqa: E731
        wait_until(lambda: "CauseLoses" in reasons(), lambda: f"there is no event: {reasons()}", 60)


def noticed(client, name):
    """Give by name the notices that pods carry."""
    pods = client.get(f"{PODS}?labelSelector=app%3D{name}")["items"]
    said = {p["metadata"]["name"]: (p["metadata"].get("annotations") or {}).get(keys.NOTICE) for p in pods}
    return {pod: json.loads(note) for pod, note in said.items() if note}


def test_notices_are_told_whether_they_are_carried_out_or_withdrawn(plane, client, token, tmp_path):
    """Who is told to go is on record, and so is that it may stay, or that it went."""
    address = str(tmp_path / "history.db")
    spec = {"scheduler": {"evictionNotice": "8s"}}
    pool = {"apiVersion": "tenure.dev/v1alpha1", "kind": "NodePool", "metadata": {"name": "default"}, "spec": spec}
    client.create(f"{TENURE}/nodepools", pool)
    with running(plane.kubeconfig_for(token, "tenure"), tmp_path, "one", "--history", address):
        client.create(SETS, gang("a-first", "team-a", 8))
        wait_until(lambda: bound(client, "a-first") == 8, "it does not start", 200)
        client.create(JOBS, job("b-gone", "team-b", 4))
        wait_until(lambda: len(noticed(client, "a-first")) == 8, "nobody is told to go", 100)
        notes = noticed(client, "a-first")
        client.delete(f"{JOBS}/b-gone", {"propagationPolicy": "Background"})
        wait_until(lambda: not noticed(client, "a-first"), "nobody may stay", 100)
        wait_until(lambda: len(told(address, "withdrawn")) == 8, "that they may stay is not told", 100)
        client.create(JOBS, job("b-first", "team-b", 4))
        wait_until(lambda: bound(client, "b-first") == 4, "team-b does not start", 200)
        wait_until(lambda: len(told(address, "evicted")) == 8, "evictions are not told", 100)
    first = {r.payload["task"]: r for r in told(address, "noticed") if r.beneficiary == "default/b-gone"}
    assert set(first) == set(notes)
    for task, note in notes.items():
        record = first[task]
        assert record.at == parse_time(note["at"])
        assert record.payload["deadline"] == parse_time(note["deadline"])
        assert (record.cause, record.beneficiary) == (note["cause"], note["for"])
        assert record.value > 0
        assert record.payload["reason"]
    withdrawn = told(address, "withdrawn")
    assert {(r.payload["task"], r.payload["noticedAt"]) for r in withdrawn} == {(t, r.at) for t, r in first.items()}
    second = [r for r in told(address, "noticed") if r.beneficiary == "default/b-first"]
    evicted = told(address, "evicted")
    assert {r.payload["uid"] for r in second} == {r.payload["uid"] for r in evicted}
    assert all(r.at < e.at for r in second for e in evicted if r.payload["uid"] == e.payload["uid"])


def test_an_eviction_that_is_refused_is_told_once(plane, client, token, tmp_path):
    """What a budget of Kubernetes' own keeps is on record as failed, and not as evicted."""
    address = str(tmp_path / "history.db")
    with running(plane.kubeconfig_for(token, "tenure"), tmp_path, "one", "--history", address):
        client.create(SETS, gang("a-first", "team-a", 8))
        wait_until(lambda: bound(client, "a-first") == 8, "it does not start", 200)
        policy = {
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": "no-evictions"},
            "spec": {
                "matchConstraints": {"resourceRules": [{
                    "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods/eviction"],
                }]},
                "validations": [{"expression": "false", "message": "nobody goes today"}],
            },
        }  # fmt: skip
        path = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolic"
        binding = {
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": "no-evictions"},
            "spec": {"policyName": "no-evictions", "validationActions": ["Deny"]},
        }  # fmt: skip
        client.create(f"{path}ies", policy)
        client.create(f"{path}ybindings", binding)
        try:
            time.sleep(3)  # the API server takes a policy in from time to time
            client.create(JOBS, job("b-first", "team-b", 4))
            wait_until(lambda: told(address, "failed"), "that it failed is not told", 60)
            time.sleep(8)
        finally:
            client.delete(f"{path}ybindings/no-evictions")
            client.delete(f"{path}ies/no-evictions")
        failed, planned = told(address, "failed"), told(address, "planned")
        assert not told(address, "evicted")
        wait_until(lambda: bound(client, "b-first") == 4, "team-b does not start", 120)
        wait_until(lambda: len(told(address, "evicted")) == 8, "evictions are not told", 100)
    assert any("nobody goes today" in r.payload["error"] for r in failed)
    assert {r.workload for r in failed} == {"default/a-first"}
    assert len(failed) == len({(r.payload["uid"], r.payload["error"]) for r in failed})
    assert {r.payload["uid"] for r in failed} <= {r.payload["uid"] for r in planned}
    assert {r.payload["uid"] for r in told(address, "evicted")} == {r.payload["uid"] for r in planned}
