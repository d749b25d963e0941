"""The eviction log of a live cluster when it is full, on a real API server."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.builders import NOW, node, queue
from tests.kubernetes.stage import wait_until
from tools.controlplane.plane import Options as PlaneOptions

from tenure.clusters.kubernetes import keys
from tenure.clusters.kubernetes.cache.informers import Options
from tenure.clusters.kubernetes.client.access import find_access
from tenure.clusters.kubernetes.client.requests import Client
from tenure.clusters.kubernetes.cluster import KubernetesCluster
from tenure.clusters.kubernetes.read import eviction_log
from tenure.model.cluster import Cluster
from tenure.model.duration import DAY, format_time
from tenure.model.settings import BudgetRule, DisruptionSettings, Settings, WorthSettings

PLANE = PlaneOptions(controllers=False, nodes=False)
MAPS = "/api/v1/namespaces/tenure-system/configmaps"


@pytest.fixture
def live(plane, monkeypatch):
    monkeypatch.setattr(keys, "LOG_PAGES", 3)
    monkeypatch.setattr(eviction_log, "MOST_BYTES", 1_000)
    made = KubernetesCluster(Client(find_access(str(plane.kubeconfig))), Options(), Settings())
    made.start()
    wait_until(made.ready, "it does not see the cluster")
    yield made
    made.close()
    plane.client().delete(f"{MAPS}?labelSelector={eviction_log.LABEL}")


def written(live, settings, *, days):
    """Have four evictions logged on each of so many days; give those that could not be, by day."""
    failed = []
    for day in range(days):
        now = NOW + day * DAY
        made = [
            eviction_log.EvictionEntry(
                at=format_time(now),
                workload=f"default/w{n}",
                task="t",
                uid=f"{day}-{n}",
                cause="reclaim",
                times=1,
            )
            for n in range(4)
        ]
        cluster = Cluster(now=now, nodes=(node("n", cpu=1),), queues=(queue("q"),), settings=settings)
        observed = replace(live.observe(now), cluster=cluster)
        failed += [day for _ in live.actor.logbook.add(made, now, observed)]
    return failed


def days_logged(plane):
    found = plane.client().get(f"{MAPS}?labelSelector={eviction_log.LABEL}")["items"]
    entries = [e for item in found for e in eviction_log.parse(item["data"][eviction_log.DATA])[0]]
    return sorted({int(e.uid.partition("-")[0]) for e in entries})


def test_a_full_log_forgets_how_often_rather_than_that_nothing_is_evicted(plane, live):
    """For a month it is to be remembered how often workloads were evicted; there is room for some days."""
    settings = Settings(worth=WorthSettings(forgotten_after=30 * DAY))
    assert written(live, settings, days=12) == []
    logged = days_logged(plane)
    assert logged[-2:] == [10, 11], "what budgets ask for is there"
    assert len(logged) > 2, "and no more is forgotten than there is no room for"


def test_while_there_is_room_all_of_it_is_remembered(plane, live):
    settings = Settings(worth=WorthSettings(forgotten_after=30 * DAY))
    assert written(live, settings, days=3) == []
    assert days_logged(plane) == [0, 1, 2]


def test_what_bounds_ask_for_is_never_forgotten(plane, live):
    """A budget looks back for a month: what does not fit into the log is not evicted."""
    rule = BudgetRule(name="monthly", max_evictions=1000, per=30 * DAY)
    failed = written(live, Settings(disruption=DisruptionSettings(budgets=(rule,))), days=12)
    assert failed
    logged = days_logged(plane)
    assert logged == list(range(len(logged)))
