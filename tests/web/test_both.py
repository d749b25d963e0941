"""A live cluster together with its history: the present from the one, the past from the other, and nothing twice."""

import time
from dataclasses import replace

import pytest
from tests.web.consoles import shown, small

from tenure.model.cluster import Eviction
from tenure.web.access.viewer import EVERYTHING
from tenure.web.sources.both import BothSource
from tenure.web.sources.past import PastSource
from tenure.web.sources.source import EvictionQuery, evictions_of
from tenure.web.sources.still import StillSource


@pytest.fixture
def both(history):
    """Give a source of both; one of the cluster's own evictions was recorded already, the others came later."""
    past = PastSource(history)
    last = past.span()[1]
    now = small()
    old = Eviction(at=last - 1, workload="team-b/longest", task="longest-0", cause="reclaim", queue="b")
    found = BothSource(StillSource(replace(now, evictions=(old, *now.evictions)), "a cluster"), past)
    yield found
    found.close()


def test_the_present_is_the_clusters_and_the_past_the_historys(both):
    begin, end = both.past.span()
    assert both.span() == (begin, both.live.span()[1])
    assert both.picture() is both.live.picture()
    middle = (begin + end) // 2
    assert set(both.picture(middle).lines) == set(both.past.picture(middle).lines) != set(both.picture().lines)
    assert both.picture(end + 1).lines.keys() <= both.live.picture().lines.keys()


def test_evictions_are_those_of_both_and_none_is_there_twice(both):
    recorded = evictions_of(both.past, EvictionQuery(), EVERYTHING).total
    assert recorded > 0
    found = evictions_of(both, EvictionQuery(limit=1000), EVERYTHING)
    assert found.total == recorded + 2
    assert sum(one.count for one in found.sums) == found.total
    assert found.lines[0].workload == "team-a/first"


def test_a_workload_is_told_of_by_whoever_knows_it(both):
    old = both.past.waits(EVERYTHING, 1)[0].workload
    assert both.story(old, 100) == both.past.story(old, 100)
    assert both.takers(old, 5) == both.past.takers(old, 5)
    assert [one.workload for one in both.takers("team-b/longest", 5)] == ["team-a/first", "team-b/late", "team-a/small"]
    assert both.waits(EVERYTHING, 1)[0].workload == "team-b/longest"


def test_that_nothing_is_recorded_any_more_is_said(both):
    assert any("nothing was recorded since" in one.message for one in both.troubles())


def test_pages_and_answers_work_over_both(both):
    with shown(both) as client:
        for path in ("/", "/queues", "/workloads", "/evictions", "/timeline", "/api/v1/series"):
            assert client.get(path).status_code == 200, path


def test_a_history_that_is_written_on_is_read_again_beside(history, monkeypatch):
    """Nobody waits for it: who asks meanwhile is shown what was there."""
    monkeypatch.setattr("tenure.web.sources.reread.REREAD", 0.0)
    source = PastSource(history)
    before = source.version
    monkeypatch.setattr("tenure.web.sources.reread.version_of_content", lambda _: "another")
    for _ in range(100):
        if source.version > before:
            break
        time.sleep(0.1)
    assert source.version > before
    monkeypatch.setattr("tenure.web.sources.reread.version_of_content", lambda _: 1 / 0)
    for _ in range(100):
        source.version  # noqa: B018  asking for it is what has it looked at
        if any("could not be read again" in one.message for one in source.troubles()):
            break
        time.sleep(0.1)
    assert any("could not be read again" in one.message for one in source.troubles())
    source.close()
