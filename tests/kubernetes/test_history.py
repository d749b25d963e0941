"""The scheduler writes its history on a real control plane, and is killed at random writes while it does."""

from __future__ import annotations

import os
from collections import Counter

import pytest
from tests.history import postgres
from tests.kubernetes.proxy import FaultProxy
from tests.kubernetes.running import Scheduler
from tests.kubernetes.stage import wait_until
from tests.kubernetes.teams import WATCHED, Teams
from tests.kubernetes.test_killed import killed_now_and_then
from tests.kubernetes.witness import Witness

from tenure.history import open_history
from tenure.history.errors import HistoryError
from tenure.history.query import Query
from tenure.history.statement import statement_of
from tenure.model.problems import InvalidInputError

KILLS = 100 if os.environ.get("TENURE_EXAMPLES") == "thorough" else 5


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request, tmp_path):
    if request.param == "sqlite":
        yield str(tmp_path / "history.db")
        return
    server = postgres.started()
    yield server.database()
    server.close()


def uids(records):
    return {record.payload["uid"] for record in records}


def evicted(address):
    try:
        with open_history(address) as store:
            return store.records(Query(kinds=("evicted",)), limit=100_000).records
    except (HistoryError, InvalidInputError):
        return []  # no process lived long enough yet to make the store


@pytest.mark.flaky(reruns=0)  # what is lost once is lost
def test_killed_at_random_writes_the_history_has_each_eviction_once(plane, token, tmp_path, address):
    """The records are what the cluster's own objects say: none is missing, none is there twice."""
    teams = Teams(plane)
    with FaultProxy(plane.server, plane.authority) as proxy, Witness(plane, WATCHED) as witness:
        kubeconfig = plane.kubeconfig_for(token, "history", proxy.server)
        scheduler = Scheduler(kubeconfig, tmp_path, "history", "--history", address)
        with killed_now_and_then(scheduler, proxy, seed=3) as kubelet:
            teams.ask()
            while kubelet.kills < KILLS:
                teams.round()
            kubelet.spares.set()
            teams.end()
            history = teams.checked(witness)
            wait_until(lambda: set(history.evicted) <= uids(evicted(address)), "evictions are missing", 120)
            found = evicted(address)
        teams.go()
    assert max(Counter(r.payload["uid"] for r in found).values()) == 1
    known = {entry.uid: entry for entry in history.entries()} | history.evicted
    for record in found:  # an eviction that was announced before a kill may be recorded though its pod went by itself
        entry = known.get(record.payload["uid"])
        assert entry is None or (record.workload, record.cause, record.beneficiary) == (
            entry.workload,
            entry.cause,
            entry.beneficiary,
        )
    with open_history(address) as store:
        statement = statement_of(store)
        assert sum(row.evictions for row in statement.rows) == len({(r.workload, r.at, r.cause) for r in found})
        started = store.records(Query(kinds=("started",)), limit=100_000).records
        assert len({(r.workload, r.at) for r in started}) == len(started)
        assert {r.workload for r in found} <= {r.workload for r in started}
