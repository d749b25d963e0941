"""``tenure scheduler`` as it is installed: a process under its own service account, on a real control plane."""

from __future__ import annotations

import json
import signal
import time

import pytest
from tests import preloaded
from tests.cli.test_terminal import check_fits
from tests.kubernetes.faults import CutWatch, DropRequest, ExpireWatch, LoseAnswer, Refuse, RepeatWatch
from tests.kubernetes.proxy import FaultProxy
from tests.kubernetes.running import (
    JOBS,
    PODS,
    SETS,
    TENURE,
    all_pods,
    bound,
    clear,
    gang,
    job,
    log_of,
    pods_of,
    queue,
    running,
    tenure,
)
from tests.kubernetes.stage import wait_until
from tests.live.test_finished_runs import written

from tenure.clusters.kubernetes import keys

ACCOUNT = "system:serviceaccount:tenure-system:tenure"


@pytest.fixture
def client(plane):
    made = plane.client()
    for number in range(2):
        plane.add_node(f"node-{number}", {"cpu": "16", "memory": "64Gi", "nvidia.com/gpu": "4"})
    for name in ("team-a", "team-b"):
        made.create(f"{TENURE}/queues", queue(name, guaranteed={"nvidia.com/gpu": 4}))
    yield made
    clear(plane.client())


def reclaim(client):
    """Let team-a take everything, then let team-b ask for its own."""
    client.create(SETS, gang("a-first", "team-a", 4))
    client.create(SETS, gang("a-second", "team-a", 4))
    wait_until(lambda: bound(client, "a-first") == bound(client, "a-second") == 4, "team-a's Jobs do not start", 60)
    client.create(JOBS, job("b-first", "team-b", 4))
    wait_until(
        lambda: bound(client, "b-first") == 4,
        lambda: f"team-b's Job does not start: {log_of(client)}\n{all_pods(client)}",
        60,
    )
    wait_until(
        lambda: len(pods_of(client, "a-first")) == len(pods_of(client, "a-second")) == 4, "pods do not come back", 30
    )


def test_a_queue_gets_what_it_is_owed_and_every_eviction_has_a_record(plane, client, token, tmp_path):
    """Gangs start whole; for what another queue is owed one gang goes, on record; the rest waits and says why."""
    kubeconfig = plane.kubeconfig_for(token, "tenure")
    with running(kubeconfig, tmp_path) as scheduler:
        reclaim(client)
        assert scheduler.leads()
        assert 'tenure_evictions_total{cause="reclaim"} 4.0' in scheduler.page("/metrics")[1]
        entries = log_of(client)
        assert len(entries) == 4
        assert {(e.cause, e.beneficiary) for e in entries} == {("reclaim", "default/b-first")}
        waiting = [
            p for name in ("a-first", "a-second") for p in pods_of(client, name) if not p["spec"].get("nodeName")
        ]
        assert len(waiting) == 4

        def reason():
            pod = client.get(f"{PODS}/{waiting[0]['metadata']['name']}")
            return [c["reason"] for c in pod["status"].get("conditions", ()) if c["type"] == "PodScheduled"]

        wait_until(lambda: reason() == ["Unschedulable"], lambda: f"it says {reason()}")
        for pod in pods_of(client, "b-first"):
            assert keys.STARTED in pod["metadata"]["annotations"]
        client.delete(f"{JOBS}/b-first", {"propagationPolicy": "Background"})
        both = lambda: bound(client, "a-first") == bound(client, "a-second") == 4  # noqa: E731
        wait_until(both, "who gave way does not come back", 60)
        client.create(JOBS, job("b-second", "team-b", 4))
        wait_until(lambda: bound(client, "b-second") == 4, "team-b's next Job does not start", 60)
        assert len(log_of(client)) == 8
        assert scheduler.stop() < 5
        assert scheduler.lines()[-1]["message"] == "scheduler ends"
    lease = client.get("/apis/coordination.k8s.io/v1/namespaces/tenure-system/leases/tenure-scheduler-default")
    assert not lease["spec"].get("holderIdentity")
    refused = [e for e in plane.audit(ACCOUNT) if e["responseStatus"]["code"] == 403]
    assert not [(e["verb"], e.get("objectRef", {}).get("resource")) for e in refused]


def test_who_goes_says_why_and_who_waits_for_that_says_where(plane, client, token, tmp_path):
    """While victims terminate they say that a scheduler preempts them, for whom; the place is promised until then."""
    slow = {"simulated.tenure.dev/stop-seconds": "12"}
    with running(plane.kubeconfig_for(token, "tenure"), tmp_path):
        client.create(SETS, gang("a-first", "team-a", 8, **slow))
        wait_until(lambda: bound(client, "a-first") == 8, "it does not start", 60)
        client.create(JOBS, job("b-first", "team-b", 4))

        def leaving():
            pods = client.get(f"{PODS}?labelSelector=app%3Da-first")["items"]
            return [p for p in pods if p["metadata"].get("deletionTimestamp")]

        wait_until(lambda: len(leaving()) == 8, lambda: f"{len(leaving())} go", 30)

        def why():
            found = [c for pod in leaving() for c in pod["status"]["conditions"] if c["type"] == "DisruptionTarget"]
            return [c["reason"] for c in found]

        wait_until(lambda: why() == ["PreemptionByScheduler"] * 8, why, 10)  # it is said again after the eviction
        for pod in leaving():
            said = json.loads(pod["metadata"]["annotations"][keys.EVICTION])
            assert (said["cause"], said["for"]) == ("reclaim", "default/b-first")

        def nominated_to():
            return [p["status"].get("nominatedNodeName") for p in pods_of(client, "b-first")]

        wait_until(lambda: len(nominated_to()) == 4 and all(nominated_to()), "nothing is promised", 10)
        waiting = pods_of(client, "b-first")
        assert bound(client, "b-first") == 0
        wait_until(lambda: bound(client, "b-first") == 4, "it does not start in the place that it was promised", 60)
        places = {p["metadata"]["name"]: p["spec"]["nodeName"] for p in pods_of(client, "b-first")}
        assert places == {p["metadata"]["name"]: p["status"]["nominatedNodeName"] for p in waiting}


def test_a_snapshot_gives_the_plan_of_the_scheduler(plane, client, token, tmp_path):
    """What is planned on a snapshot is what the scheduler then does."""
    client.create(JOBS, job("a-first", "team-a", 3))
    client.create(JOBS, job("b-first", "team-b", 2, gpu=2))
    wait_until(lambda: len(pods_of(client, "a-first")) == 3 and len(pods_of(client, "b-first")) == 2, "no pods")
    file = tmp_path / "snapshot.json"
    run = tenure("snapshot", "-o", str(file), kubeconfig=plane.kubeconfig)
    assert run.returncode == 0, run.stderr
    live = tenure("plan", "--live", "--format", "json", kubeconfig=plane.kubeconfig)
    assert live.returncode == 0, live.stderr
    told = tenure_plan(file)
    assert told["steps"] == json.loads(live.stdout)["steps"]
    places = {s["task"]: s["node"] for s in told["steps"]}
    assert len(places) == 5
    assert policy_diff(tmp_path, "--cluster", str(file)) == policy_diff(
        tmp_path, "--live", "--kubeconfig", str(plane.kubeconfig)
    )
    with running(plane.kubeconfig_for(token, "tenure"), tmp_path):
        wait_until(lambda: bound(client, "a-first") == 3 and bound(client, "b-first") == 2, "they do not start", 60)
    pods = [*pods_of(client, "a-first"), *pods_of(client, "b-first")]
    assert {p["metadata"]["name"]: p["spec"]["nodeName"] for p in pods} == places


def test_a_look_at_a_live_cluster_has_the_finished_runs_of_a_history(plane, tmp_path):
    """As the scheduler has them that keeps that history; where it cannot be read, that is said."""
    history = str(tmp_path / "history.db")
    written(history, (int(time.time()) - 3600) * 1_000_000)
    file = tmp_path / "snapshot.json"
    run = tenure("snapshot", "-o", str(file), "--runs-from", history, kubeconfig=plane.kubeconfig)
    assert run.returncode == 0, run.stderr
    assert json.loads(file.read_text())["finishedRuns"] == [{"queue": "default", "ran": ["5m", "1m40s", "3m20s"]}]
    told = json.loads(tenure("plan", "--live", "--format", "json", "--runs-from", history,
                             kubeconfig=plane.kubeconfig).stdout)  # fmt: skip
    assert told["steps"] == []
    lost = tenure("plan", "--live", "--runs-from", str(tmp_path / "none.db"), kubeconfig=plane.kubeconfig)
    assert lost.returncode == 1
    assert "none.db" in lost.stderr


def test_a_file_has_its_own_finished_runs():
    run = preloaded.run(["plan", "cluster.yaml", "--runs-from", "x.db"], capture_output=True, text=True)
    assert run.returncode == 2
    assert "--runs-from is for a live cluster" in run.stderr


def policy_diff(folder, *where):
    """What it does to let nothing be allocated any more; when one looks does not matter."""
    files = [folder / "old.yaml", folder / "new.yaml"]
    for file, action in zip(files, ("allocate", "reclaim"), strict=True):
        file.write_text(f"kind: SchedulerConfig\nscheduler: {{actions: [{action}]}}\n")
    run = preloaded.run(["diff", *map(str, files), *where, "--format", "json"], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout)
    assert {w["workload"]: (w["old"]["start_s"], w["new"]["runs"]) for w in found["workloads"]} == {
        "default/a-first": (0.0, False), "default/b-first": (0.0, False),
    }  # fmt: skip
    return found


def tenure_plan(file):
    run = preloaded.run(["plan", str(file), "--format", "json"], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


LIVE = (
    "queues", "workloads", "plan --live", "explain --live default/a-second", "diff {old} {new} --live",
    "reschedule --live --dry-run --drain node-0", "report --history {history} --by workload",
    "story default/b-first --history {history}",
)  # fmt: skip
"""Commands that show a live cluster, or what its scheduler wrote of it."""


def test_what_commands_show_of_a_live_cluster_fits_a_terminal(plane, client, token, tmp_path):
    """At 60 columns and at 120 no line is wider and no word is cut; and what runs is counted as what runs."""
    names = {"history": tmp_path / "history.db", "old": tmp_path / "old.yaml", "new": tmp_path / "new.yaml"}
    for name, actions in (("old", "[allocate]"), ("new", "[allocate, reclaim]")):
        names[name].write_text(f"kind: SchedulerConfig\nscheduler: {{actions: {actions}}}\n")
    with running(plane.kubeconfig_for(token, "tenure"), tmp_path, "one", "--history", str(names["history"])):
        reclaim(client)
        counts = {f"default/{name}": bound(client, name) for name in ("a-first", "a-second", "b-first")}
        told = tenure("workloads", "--format", "json", kubeconfig=plane.kubeconfig)
        assert {row["workload"]: row["running"] for row in json.loads(told.stdout)} == counts
        for command in LIVE:
            check_fits(command.format(**names).split(), 60, 120, KUBECONFIG=str(plane.kubeconfig))


def test_another_replica_goes_on_when_the_leader_is_killed(plane, client, token, tmp_path):
    """Of two replicas one acts; when it dies, the other takes over."""
    kubeconfig = plane.kubeconfig_for(token, "tenure")
    with running(kubeconfig, tmp_path, "one") as one:
        wait_until(one.leads, "nobody leads", 60)
        with running(kubeconfig, tmp_path, "two") as two:
            wait_until(lambda: two.page("/readyz")[0] == 200, "the second is not ready", 60)
            assert not two.leads()
            one.stop(signal.SIGKILL)
            client.create(SETS, gang("a-first", "team-a", 4))
            wait_until(lambda: bound(client, "a-first") == 4, "nobody took over", 60)
            assert two.leads()


def test_a_pause_stops_evictions_and_not_placements_and_ends(plane, client, token, tmp_path):
    """While evictions are paused, what fits is placed and nobody goes; afterwards, what is owed is taken."""
    with running(plane.kubeconfig_for(token, "tenure"), tmp_path):
        client.create(SETS, gang("a-first", "team-a", 4))
        run = tenure("pause", "--for", "1h", "--reason", "demonstration", kubeconfig=plane.kubeconfig)
        assert run.returncode == 0, run.stderr
        client.create(SETS, gang("a-second", "team-a", 4))
        wait_until(lambda: bound(client, "a-second") == 4, "what fits is not placed", 60)
        client.create(JOBS, job("b-first", "team-b", 4))

        def says():
            pods = pods_of(client, "b-first")
            return {c["reason"] for p in pods for c in p["status"].get("conditions", ()) if c["type"] == "PodScheduled"}

        wait_until(lambda: says() == {"Unschedulable"}, "it does not say why it waits", 30)
        assert bound(client, "b-first") == 0
        assert not log_of(client)
        assert tenure("pause", "--end", kubeconfig=plane.kubeconfig).returncode == 0
        wait_until(lambda: bound(client, "b-first") == 4, "the pause does not end", 60)


def test_shadow_writes_nothing_but_its_own(plane, client, tmp_path):
    """Where every cause is in shadow nothing is evicted, and what would be is told."""
    config = tmp_path / "config.yaml"
    causes = ("stale-gang", "quota", "reclaim", "preempt", "requeue", "consolidate", "reschedule")
    modes = ", ".join(f"{cause}: shadow" for cause in causes)
    config.write_text(f"apiVersion: tenure.dev/v1alpha1\nkind: SchedulerConfig\nscheduler: {{modes: {{{modes}}}}}\n")
    kubeconfig = plane.kubeconfig_for(plane.token_of("tenure", "tenure-system"), "tenure")
    with running(kubeconfig, tmp_path, "one", "--config", str(config)):
        client.create(SETS, gang("a-first", "team-a", 4))
        client.create(SETS, gang("a-second", "team-a", 4))
        wait_until(lambda: bound(client, "a-first") == bound(client, "a-second") == 4, "they do not start", 60)
        client.create(JOBS, job("b-first", "team-b", 4))
        path = "/apis/events.k8s.io/v1/namespaces/default/events"

        def told():
            return [e for e in client.get(path)["items"] if e.get("reason") == "WouldEvict"]

        wait_until(told, "nothing is told", 30)
    assert not log_of(client)
    assert bound(client, "b-first") == 0
    names = {p["metadata"]["name"] for n in ("a-first", "a-second") for p in pods_of(client, n)}
    evictions = [e for e in plane.audit() if e.get("objectRef", {}).get("subresource") == "eviction"]
    assert not [e for e in evictions if e["objectRef"]["name"] in names]


FAULTS = {
    "conflicts": lambda script: script.add(Refuse(409), write=True, path="/pods/", times=6, skip=2),
    "too-many": lambda script: script.add(Refuse(429, retry_after=1), write=True, path="/pods/", times=6, skip=3),
    "errors": lambda script: script.add(Refuse(500), write=True, path="/pods/", times=6, skip=4),
    "away": lambda script: script.add(Refuse(503), path="", times=15, skip=10),
    "dropped": lambda script: script.add(DropRequest(), write=True, path="/pods/", times=5, skip=5),
    "lost-answers": lambda script: script.add(LoseAnswer(), write=True, path="/pods/", times=8, skip=1),
    "cut-watches": lambda script: script.add(CutWatch(events=3, torn=True), watch=True, path="/pods", times=5),
    "repeated": lambda script: script.add(RepeatWatch(), watch=True, path="/pods", times=5),
    "expired": lambda script: script.add(ExpireWatch(events=5), watch=True, path="/pods", times=3),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults_between_scheduler_and_server_change_nothing(name, plane, client, token, tmp_path):
    """Whatever goes wrong on the way, everything ends as it should: four go for four, each on record, none twice."""
    with FaultProxy(plane.server, plane.authority) as proxy:
        FAULTS[name](proxy.script)
        with running(plane.kubeconfig_for(token, f"by-{name}", proxy.server), tmp_path):
            reclaim(client)
    entries = log_of(client)
    assert len({e.uid for e in entries}) == len(entries)
    assert {(e.cause, e.beneficiary) for e in entries} == {("reclaim", "default/b-first")}
    running_pods = sum(bound(client, n) for n in ("a-first", "a-second", "b-first"))
    assert running_pods == 8
    assert len(entries) == 4


def test_a_restarted_server_is_no_reason_for_a_wrong_decision(plane, client, token, tmp_path):
    """The API server goes and comes back; the scheduler goes on."""
    with running(plane.kubeconfig_for(token, "tenure"), tmp_path):
        client.create(SETS, gang("a-first", "team-a", 4))
        wait_until(lambda: bound(client, "a-first") == 4, "it does not start", 60)
        plane.restart_apiserver()
        again = plane.client()
        again.create(JOBS, job("b-first", "team-b", 4))
        wait_until(lambda: bound(again, "b-first") == 4, "nothing starts after the restart", 60)
        assert not log_of(again)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.usefixtures("client")
def test_a_server_that_falls_silent_holds_up_no_end(number, plane, token, tmp_path):
    """A request has 30 s for its answer, and is tried again; an end waits for neither."""
    kubeconfig = plane.kubeconfig_for(token, "tenure")
    with running(kubeconfig, tmp_path) as scheduler:
        wait_until(scheduler.leads, "it does not lead", 30)
        plane.apiserver.signal(signal.SIGSTOP)
        try:
            scheduler.stop(number)
        finally:
            plane.apiserver.signal(signal.SIGCONT)
        assert scheduler.process.returncode == 0
        assert [line["level"] for line in scheduler.lines()][-1] == "warning"


def test_bad_objects_are_told_of_and_stop_nobody(plane, client, token, tmp_path):
    """A bad annotation, a Job for a queue that is not there and a queue without its parent stop nobody else."""
    client.create(f"{TENURE}/queues", queue("orphan", parent="nobody"))
    client.create(JOBS, job("lost", "no-such-queue", 1))
    strange = job("strange", "team-a", 1)
    strange["spec"]["template"]["metadata"]["annotations"] = {
        keys.DEVICES: "all",
        keys.NOTICE: "soon",
        "tenure.dev/gpu-fraction": "x",
    }
    client.create(JOBS, strange)
    client.create(JOBS, job("fine", "team-b", 2))
    with running(plane.kubeconfig_for(token, "tenure"), tmp_path):
        wait_until(lambda: bound(client, "fine") == 2, "the others are stopped", 60)

        def accepted():
            status = client.get(f"{TENURE}/queues/orphan").get("status", {})
            return [(c["status"], c["message"]) for c in status.get("conditions", ()) if c["type"] == "Accepted"]

        wait_until(lambda: accepted() and accepted()[0][0] == "False", "the queue does not say that it is bad", 30)
        assert "nobody" in accepted()[0][1]

        def told():
            events = client.get("/apis/events.k8s.io/v1/namespaces/default/events")["items"]
            return {e["regarding"]["name"].split("-")[0] for e in events if e.get("reason") == "Invalid"}

        wait_until(lambda: {"lost", "strange"} <= told(), lambda: f"told of {told()}", 30)
        assert bound(client, "lost") == bound(client, "strange") == 0
        (lost,) = pods_of(client, "lost")
        conditions = [c["reason"] for c in lost["status"]["conditions"] if c["type"] == "PodScheduled"]
        assert conditions == ["QueueUnknown"]
