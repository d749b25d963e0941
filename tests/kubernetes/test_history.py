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
from tenure.history.query import Query
from tenure.history.statement import statement_of

KILLS = 100 if os.environ.get("TENURE_EXAMPLES") == "thorough" else 5


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request, tmp_path):
    if request.param == "sqlite":
        yield str(tmp_path / "history.db")
        return
    server = postgres.started()
    yield server.database()
    server.close()


def evicted(address):
    with open_history(address) as store:
        return store.records(Query(kinds=("evicted",)), limit=100_000).records


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
            wait_until(lambda: len(evicted(address)) >= len(history.evicted), "evictions are missing", 60)
            found = evicted(address)
        teams.go()
    assert Counter(r.payload["uid"] for r in found) == Counter(dict.fromkeys(history.evicted, 1))
    for record in found:
        entry = history.evicted[record.payload["uid"]]
        assert (record.workload, record.cause, record.beneficiary) == (entry.workload, entry.cause, entry.beneficiary)
    with open_history(address) as store:
        statement = statement_of(store)
        assert sum(row.evictions for row in statement.rows) == len({(r.workload, r.at, r.cause) for r in found})
        started = store.records(Query(kinds=("started",)), limit=100_000).records
        assert len({(r.workload, r.at) for r in started}) == len(started)
        assert {r.workload for r in found} <= {r.workload for r in started}
