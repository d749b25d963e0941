"""The scheduler writes its history on a real control plane, and is killed at random writes while it does."""

from __future__ import annotations

import json
import logging
import os
import time
from collections import Counter
from contextlib import suppress

import pytest
from tests.effort import tries
from tests.kubernetes.invariants import is_going, is_granted, said, workload_of
from tests.kubernetes.proxy import FaultProxy
from tests.kubernetes.running import PODS, Scheduler
from tests.kubernetes.stage import wait_until
from tests.kubernetes.teams import WATCHED, Teams
from tests.kubernetes.test_killed import Kubelet, killed_now_and_then
from tests.kubernetes.witness import Witness
from tools.controlplane.client import ApiError

from tenure.clusters.kubernetes import keys
from tenure.history import open_history
from tenure.history.errors import HistoryError
from tenure.history.query import Query
from tenure.history.reading.statement import statement_of
from tenure.model.values.duration import parse_time
from tenure.model.values.problems import InvalidInputError

ROUNDS = 2
WRITES = 60
"""Writes within which the scheduler is killed: on a busy machine with fewer nobody gets anywhere."""

LOG = logging.getLogger(__name__)
KILLS = int(os.environ.get("TENURE_HISTORY_KILLS", tries(4, 100)))


class UnkindKubelet(Kubelet):
    """One who, now and then after a kill, deletes by hand the pods that were marked and not evicted yet.

    Nobody evicted these, although they stand in the log: they go while no scheduler runs.
    """

    def __init__(self, scheduler, proxy, seed, client):
        super().__init__(scheduler, proxy, seed)
        self.client = client
        self.by_hand = set()
        self.writes = WRITES

    def kill(self, request):
        """Kill the scheduler, and then be unkind."""
        super().kill(request)
        if not self.spares.is_set() and self.chance.random() < 0.8:
            for pod in self.client.get(PODS)["items"]:
                if said(pod, keys.EVICTION) and not is_going(pod):
                    self.by_hand.add(pod["metadata"]["name"])
                    with suppress(ApiError):  # it may just have gone
                        self.client.delete(f"{PODS}/{pod['metadata']['name']}")


def evicted(address):
    return records(address, "evicted")


def records(address, *kinds):
    try:
        with open_history(address) as store:
            return store.records(Query(kinds=kinds), limit=100_000).records
    except (HistoryError, InvalidInputError):
        return []  # no process lived long enough yet to make the store


def uids(found):
    return {record.payload["uid"] for record in found}


def said_by_pods(witness):
    """Give by uid of each pod whose eviction was granted: when, of whom, by which cause and for whom, as it said."""
    found = {}
    for pod in (change.item for change in witness.changes() if change.kind == "pods"):
        if is_granted(pod) and said(pod, keys.EVICTION):
            note = json.loads(said(pod, keys.EVICTION))
            found[pod["metadata"]["uid"]] = parse_time(note["at"]), workload_of(pod), note["cause"], note.get("for")
    return found


def by_pod(found):
    """Give by uid of the pod what records say of its eviction."""
    return {r.payload["uid"]: (r.at, r.workload, r.cause, r.beneficiary) for r in found}


def same(found, truth):
    """Whether records say what pods say, each once."""
    return by_pod(found) == truth and len(found) == len(truth)


def told_apart(witness, found, truth):
    """Give where records and pods differ, with all that was seen of the pods."""
    told = by_pod(found)
    wrong = [uid for uid in {**told, **truth} if told.get(uid) != truth.get(uid)]
    return str([(told.get(uid), truth.get(uid), lives(witness, uid)) for uid in wrong])


def lives(witness, uid):
    """Give what a witness saw of a pod: version, when it was deleted, its condition, its note."""
    seen = [change for change in witness.changes() if change.item["metadata"]["uid"] == uid]
    return [
        (
            change.version, change.gone, change.item["metadata"].get("deletionTimestamp"),
            [c for c in change.item["status"].get("conditions", ()) if c["type"] == "DisruptionTarget"],
            said(change.item, keys.EVICTION),
        )
        for change in seen
    ]  # fmt: skip


@pytest.mark.flaky(reruns=0)  # what is lost once is lost
def test_killed_at_random_writes_the_history_has_each_eviction_once(plane, token, tmp_path, address):
    """The records are what the cluster's own objects say: none is missing, none is there twice, none is made up."""
    teams = Teams(plane)
    with FaultProxy(plane.server, plane.authority) as proxy, Witness(plane, WATCHED) as witness:
        kubeconfig = plane.kubeconfig_for(token, "history", proxy.server)
        scheduler = Scheduler(kubeconfig, tmp_path, "history", "--history", address)
        unkind = UnkindKubelet(scheduler, proxy, 3, plane.client())
        with killed_now_and_then(scheduler, proxy, 3, unkind) as kubelet:
            teams.lives = lambda: kubelet.kills
            teams.ask()

            def both(until):
                """Give what records and pods say of the time until then; what was under way then may still come."""
                time.sleep(1)
                seen = said_by_pods(witness)
                found = [record for record in evicted(address) if record.at <= until]
                return found, {uid: said for uid, said in seen.items() if said[0] <= until}

            def compare():
                """Wait until records and pods say the same of all that was until now; those who take turns go on."""
                until = time.time_ns() // 1000
                wait_until(lambda: same(*both(until)), lambda: told_apart(witness, *both(until)), 200)
                found, truth = both(until)
                LOG.info("%d kills, %d evictions, %d by hand", kubelet.kills, len(truth), len(kubelet.by_hand))
                return found, truth

            while kubelet.kills < KILLS or teams.rounds < ROUNDS:
                teams.round()
                if teams.rounds % ROUNDS == 0:
                    compare()
            kubelet.spares.set()
            teams.end()
            teams.checked(witness, kubelet.by_hand)
            found, truth = compare()
            planned = records(address, "planned")
        teams.go()
    assert len(uids(found)) == len(found), Counter(r.payload["uid"] for r in found).most_common(3)
    assert same(found, truth), told_apart(witness, found, truth)
    assert not [r for r in found if r.payload.get("unproven")]
    assert {(r.payload["uid"], r.plan) for r in found} <= {(r.payload["uid"], r.plan) for r in planned}
    assert all(r.plan == str(r.at) for r in found)
    with open_history(address) as store:
        statement, all_found = statement_of(store), evicted(address)
        assert sum(row.evictions for row in statement.rows) == len({(r.workload, r.at, r.cause) for r in all_found})
        started = store.records(Query(kinds=("started",)), limit=100_000).records
        assert len({(r.workload, r.at) for r in started}) == len(started)
        assert {r.workload for r in found} <= {r.workload for r in started}
