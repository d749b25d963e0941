"""What schedulers depend on goes away and comes back, or two of them take themselves for the leader for a moment."""

from __future__ import annotations

import json
import math
import random
import re
import signal
import threading
import time
from collections import Counter
from contextlib import ExitStack

import pytest
from tests import preloaded
from tests.effort import tries
from tests.kubernetes.faults import DelayWatch, LoseAnswer
from tests.kubernetes.invariants import armed
from tests.kubernetes.proxy import FaultProxy
from tests.kubernetes.running import SETS, TENURE, bound, clear, gang, queue, running, tenure
from tests.kubernetes.stage import wait_until
from tests.kubernetes.teams import WATCHED, Teams
from tests.kubernetes.test_history import evicted, records, said_by_pods, same, told_apart
from tests.kubernetes.witness import Witness

from tenure.history import open_history
from tenure.history.reading.statement import statement_of

PAUSES = tries(1, 12)
RESTARTS = tries(1, 8)
ROUNDS = tries(1, 4)
BAD = 400
LAG = 4.0
"""Seconds by which a watch of queues is late."""

GPU = "nvidia.com/gpu"


@pytest.fixture
def teams(plane):
    made = Teams(plane)
    yield made
    made.go()


@pytest.fixture
def besieged(plane):
    made = Teams(plane, besieged=True)
    yield made
    made.tenant.stop()
    made.go()


@pytest.mark.parametrize("what", ["apiserver", "etcd"])
def test_what_was_restarted_in_the_middle_is_no_reason_for_a_wrong_decision(what, plane, token, teams, tmp_path):
    """The API server, or what it keeps its objects in, is killed and started again while much is under way."""
    restart = {"apiserver": plane.restart_apiserver, "etcd": plane.restart_etcd}[what]
    goes_away(restart, RESTARTS, plane, token, teams, tmp_path)


def test_an_api_server_that_goes_away_beside_a_hostile_tenant_costs_nobody_else_anything(
    plane, token, besieged, tmp_path
):
    """What the tenant wrote is listed anew with all the rest, and again nobody else notices it."""
    goes_away(plane.restart_apiserver, 1, plane, token, besieged, tmp_path)


def goes_away(restart, times, plane, token, teams, tmp_path):
    """Restart something a few times while much is under way; nothing of what was decided may be wrong."""
    chance = random.Random(1)
    with Witness(plane, WATCHED) as witness, running(plane.kubeconfig_for(token, "tenure"), tmp_path) as scheduler:
        teams.ask()
        for _ in range(times):
            teams.disturb()
            time.sleep(chance.uniform(0.0, 3.0))
            restart()
            teams.client = plane.client()
            teams.settle()
        teams.end()
        history = teams.checked(witness)
        assert scheduler.process.poll() is None
    assert {"reclaim", "requeue", "quota"} <= {entry.cause for entry in history.entries()}


@pytest.mark.parametrize("what", ["queues", "configmaps"])
def test_a_watch_that_lags_makes_no_decision_twice(what, plane, token, teams, tmp_path):
    """Cycle follows cycle before a watch shows what was written: a deadline, the record of an eviction.

    Nothing is counted twice either: what metrics say was lost, and for whom, is what a report says, cause by cause.
    """
    address = str(tmp_path / "history.db")
    options = ("--history", address, "--queue-metrics", "team-a,team-b,shared,metered")
    with FaultProxy(plane.server, plane.authority) as proxy, Witness(plane, WATCHED) as witness:
        proxy.script.add(DelayWatch(2.0), path=rf"/{what}\?", watch=True)
        with running(plane.kubeconfig_for(token, "tenure", proxy.server), tmp_path, "one", *options) as scheduler:
            teams.ask()
            for _ in range(ROUNDS):
                teams.round()
            teams.end()
            history = teams.checked(witness)
            counted = settled(plane, scheduler, address)
    assert "quota" in {entry.cause for entry in history.entries()}
    assert {key for name, key, _ in counted if name == "cause"} >= {"reclaim", "requeue", "quota"}


def test_a_deadline_whose_answer_was_lost_is_not_put_off(plane, token, tmp_path):
    """The API server wrote it, and neither its answer nor a watch tells so before the next cycles decide."""
    client, path = plane.client(), f"{TENURE}/queues"
    plane.add_node("node-0", {"cpu": "16", "memory": "64Gi", GPU: "4"})
    settings = {"quotaPreemption": {"enabled": True}}
    body = {"apiVersion": "tenure.dev/v1alpha1", "kind": "NodePool", "metadata": {"name": "default"}}
    client.create(f"{TENURE}/nodepools", {**body, "spec": {"scheduler": settings}})
    client.create(path, queue("metered", max={GPU: 4}, quotaPreemptionDelay="1h"))
    try:
        with FaultProxy(plane.server, plane.authority) as proxy, Witness(plane, {"queues": path}) as witness:
            proxy.script.add(DelayWatch(LAG), path=r"/queues\?", watch=True)
            with running(plane.kubeconfig_for(token, "tenure", proxy.server), tmp_path):
                client.create(SETS, gang("holds", "metered", 1, gpu=4))
                wait_until(lambda: bound(client, "holds") == 1, "it does not run", 60)
                proxy.script.add(LoseAnswer(), path="/queues/metered/status", body=b"deadline", write=True)
                client.patch(f"{path}/metered", {"spec": {"max": {GPU: 2}}})
                client.patch(f"{path}/metered", {"spec": {"priority": 7}})  # a watch shows it without the deadline
                wait_until(lambda: armed(client.get(f"{path}/metered")), "it is not armed", 60)
                time.sleep(3 * LAG)
                client.patch(f"{path}/metered", {"spec": {"max": {GPU: 4}}})
                wait_until(
                    lambda: not armed(client.get(f"{path}/metered")), "what is decided is not written any more", 60
                )
            written = {armed(change.item) for change in witness.changes()} - {None}
            assert len(written) == 1, written
            assert not proxy.script.pending
            assert {c.item["spec"].get("priority") for c in witness.changes()} == {None, 7}
    finally:
        clear(client)


def settled(plane, scheduler, address):
    """Pause evictions, wait until metrics and report say the same, and give what they say was lost."""
    assert tenure("pause", "--for", "1h", kubeconfig=plane.kubeconfig).returncode == 0
    try:
        said = {}

        def agree():
            said.update(metrics=lost_in_metrics(scheduler), report=lost_in_report(address))
            return alike(said["metrics"], said["report"])

        wait_until(agree, lambda: str(said), 60)
        return said["metrics"]
    finally:
        assert tenure("pause", "--end", kubeconfig=plane.kubeconfig).returncode == 0


TELLING = (re.compile(r".*/events"), re.compile(r"/apis/tenure\.dev/.*/status"))
"""What is only told, by threads of its own: events, and figures in the status of the scheduler's own objects."""

SAMPLE = re.compile(
    r'tenure_queue_(lost|caused)_resource_seconds_total\{cause="(.*)",queue="(.*)",resource="(.*)"\} (.*)'
)
SHOWN = {"cpu", "memory", "nvidia.com/gpu"}


def lost_in_metrics(scheduler):
    """Give resource-seconds that metrics say were lost by cause and by queue, and caused by queue."""
    found = Counter()
    for name, cause, where, resource, value in SAMPLE.findall(scheduler.page("/metrics")[1]):
        found[name, where, resource] += float(value)
        if name == "lost":
            found["cause", cause, resource] += float(value)
    return +found


def lost_in_report(address):
    """Give the same as a report says it."""
    found = Counter()
    for by, fields in (("cause", {"cause": "lost"}), ("queue", {"lost": "lost", "caused": "caused"})):
        words = ["report", "--history", address, "--by", by, "--format", "json"]
        told = preloaded.run(words, capture_output=True, text=True, check=True)
        for row in json.loads(told.stdout)["rows"]:
            for name, field in fields.items():
                for resource, seconds in row[field].items():
                    shown = resource if resource in SHOWN else "other"
                    found[name, row["key"] or "none", shown] += seconds / (1 << 30 if resource == "memory" else 1)
    return +found


def alike(one, other):
    """Whether figures are equal, but for what floating point leaves."""
    return one.keys() == other.keys() and all(math.isclose(one[key], other[key], rel_tol=1e-9) for key in one)


def test_who_was_stopped_for_longer_than_its_lease_writes_nothing_when_it_goes_on(plane, token, teams, tmp_path):
    """A leader is stopped at any write, another one takes over, and then the first goes on: it says nothing more.

    Both write one history: what the first still had to write when it was stopped is there, and nothing is there twice.
    """
    address = str(tmp_path / "history.db")
    witness = leads_no_longer(PAUSES, plane, token, teams, tmp_path, "--history", address)
    truth = said_by_pods(witness)
    wait_until(lambda: same(evicted(address), truth), lambda: told_apart(witness, evicted(address), truth), 1)
    starts = Counter((record.workload, record.at) for record in records(address, "started"))
    assert set(starts.values()) == {1}
    assert len(records(address, "leader")) > PAUSES
    with open_history(address) as store:
        found = statement_of(store, by="queue")
    assert all(found.used[r] + found.lost[r] + found.idle[r] == found.capacity[r] for r in found.capacity)


def test_a_change_of_leader_beside_a_hostile_tenant_costs_nobody_else_anything(plane, token, besieged, tmp_path):
    """Who takes over finds the tenant's objects before it knows anything else."""
    leads_no_longer(1, plane, token, besieged, tmp_path)


def leads_no_longer(times, plane, token, teams, tmp_path, *options):
    """Stop the leader a few times until another one leads; nothing of what was decided may be wrong.

    Gives the witness of it, when both replicas have ended.
    """
    chance = random.Random(1)
    with ExitStack() as held:
        proxies = {name: held.enter_context(FaultProxy(plane.server, plane.authority)) for name in ("one", "two")}
        replicas = {
            name: held.enter_context(running(plane.kubeconfig_for(token, name, proxy.server), tmp_path, name, *options))
            for name, proxy in proxies.items()
        }
        witness = held.enter_context(Witness(plane, WATCHED))
        teams.ask()
        for _ in range(times):
            teams.everything_runs()
            (old, new) = sorted(replicas, key=lambda name: not replicas[name].leads())
            stopped = stop_at(proxies[old], chance.randint(1, 12), replicas[old].process)
            teams.disturb()
            assert stopped.wait(30), "it writes nothing"
            wait_until(replicas[new].leads, "nobody takes over", 60)
            teams.settle()
            until = proxies[old].writes
            replicas[old].process.send_signal(signal.SIGCONT)
            wait_until(lambda: "stands by" in replicas[old].page("/readyz")[1], "it still leads", 30)  # noqa: B023
            time.sleep(2)
            late = [e.request.path for e in proxies[old].log if e.request.write > until and e.status < BAD]
            assert len(late) <= len(TELLING), late  # one of each thread may have been on its way when all were stopped
            assert all(any(told.fullmatch(path) for told in TELLING) for path in late), late
        teams.end()
        history = teams.checked(witness)
        for replica in replicas.values():
            replica.stop()
    assert {"reclaim", "requeue", "quota"} <= {entry.cause for entry in history.entries()}
    return witness


def stop_at(proxy, number, process):
    """Stop a process at one of its next writes, which goes through."""
    stopped = threading.Event()

    def stop(_request):
        process.send_signal(signal.SIGSTOP)
        stopped.set()

    proxy.before_write(proxy.writes + number, stop)
    return stopped
