"""The eviction log of a live cluster when it is full, on a real API server."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.builders import NOW, SECOND, node, queue, workload
from tests.kubernetes.stage import wait_until, watched
from tools.controlplane.plane import Options as PlaneOptions

from tenure.clusters.kubernetes import keys
from tenure.clusters.kubernetes.read import eviction_log
from tenure.model.cluster import Cluster
from tenure.model.settings import BudgetRule, DisruptionSettings, Settings, WorthSettings
from tenure.model.values.duration import DAY, format_time

PLANE = PlaneOptions(controllers=False, nodes=False)
MAPS = "/api/v1/namespaces/tenure-system/configmaps"


@pytest.fixture
def live(plane, monkeypatch):
    monkeypatch.setattr(keys, "LOG_PAGES", 3)
    monkeypatch.setattr(eviction_log, "MOST_BYTES", 1_000)
    with watched(plane) as made:
        yield made
    plane.client().delete(f"{MAPS}?labelSelector={eviction_log.LABEL}")


def written(live, settings, days, *, there, names=("a", "b", "c", "d")):
    """Have evictions of some workloads logged on each of some days; give the days on which one could not be."""
    failed = []
    for day in days:
        now = NOW + day * DAY
        made = [
            eviction_log.EvictionEntry(
                at=format_time(now), workload=f"default/{name}", task="t", uid=f"{day}-{name}", cause="reclaim", times=1
            )
            for name in names
        ]
        cluster = Cluster(now=now, nodes=(node("n", cpu=1),), queues=(queue("q"),), settings=settings)
        seen = replace(live.observe(now), cluster=cluster, made={f"default/{name}": None for name in there})
        failed += [day for _ in live.actor.logbook.add(made, now, seen)]
    return failed


def logged(plane):
    """Give by workload the days of which evictions are on record."""
    found = {}
    for item in plane.client().get(f"{MAPS}?labelSelector={eviction_log.LABEL}")["items"]:
        for entry in eviction_log.parse(item["data"][eviction_log.DATA])[0]:
            day, _, name = entry.uid.partition("-")
            found.setdefault(name, []).append(int(day))
    return {name: sorted(days) for name, days in found.items()}


MONTH = Settings(worth=WorthSettings(forgotten_after=30 * DAY))


@pytest.mark.parametrize(
    ("settings", "there", "remembered"),
    [(MONTH, ("old", "a"), True), (MONTH, ("a",), False), (Settings(), ("old", "a"), False)],
    ids=["for a month", "of what is gone", "for a day"],
)
def test_how_often_is_remembered_of_what_is_there_for_as_long_as_asked(plane, live, settings, there, remembered):
    """One was evicted long ago; pages of others are begun and dropped meanwhile, of which the last evictions stay."""
    assert written(live, settings, [0], there=there, names=("old",)) == []
    assert written(live, settings, range(1, 12), there=there) == []
    found = logged(plane)
    assert ("old" in found) is remembered
    assert all({10, 11} <= set(found[name]) for name in "abcd"), "what budgets ask for is there"
    assert len(found["b"]) < 8, "what is gone is not remembered"


def test_a_full_log_forgets_how_often_rather_than_that_nothing_is_evicted(plane, live):
    """More workloads are to be remembered than there is room for."""
    names = [f"{letter}{number}" for letter in "abcd" for number in range(40)]
    for day in range(24):
        some = [name for number, name in enumerate(names) if number % 24 == day]
        assert written(live, MONTH, [day], there=names, names=some) == []
    days = {day for days in logged(plane).values() for day in days}
    assert {22, 23} <= days
    assert min(days) > 0


def test_what_bounds_ask_for_is_never_forgotten(plane, live):
    """A budget looks back for a month: what does not fit into the log is not evicted."""
    rule = BudgetRule(name="monthly", max_evictions=1000, per=30 * DAY)
    failed = written(live, Settings(disruption=DisruptionSettings(budgets=(rule,))), range(12), there="abcd")
    assert failed
    days = logged(plane)["a"]
    assert days == list(range(len(days)))


def test_what_is_remembered_is_known_of_the_workload(live, stage):
    """It was evicted twice, five days ago; a week is to be remembered."""
    stage.put(Cluster(now=NOW, nodes=(node("n", cpu=8),), queues=(queue("q"),), workloads=(workload("w", queue="q"),)))
    wait_until(lambda: "default/w" in live.observe(NOW).made, "its pods are not seen")
    week = Settings(worth=WorthSettings(forgotten_after=7 * DAY))
    at = NOW - 5 * DAY
    entry = eviction_log.EvictionEntry(
        at=format_time(at), workload="default/w", task="t", uid="gone", cause="reclaim", times=2
    )
    seen = live.observe(NOW)
    assert live.actor.logbook.add([entry], at, replace(seen, cluster=replace(seen.cluster, settings=week))) == {}
    wait_until(lambda: live.observe(NOW).workloads["default/w"].evictions, "the log is not read")
    known = live.observe(NOW).workloads["default/w"]
    assert (known.evictions, known.last_evicted_at) == (2, at)
    spans = 7 * DAY, 5 * DAY + SECOND, 5 * DAY  # at the very instant it is forgotten
    assert [known.times_evicted(NOW, span) for span in spans] == [2, 2, 0]
