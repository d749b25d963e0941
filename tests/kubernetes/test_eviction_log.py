"""What the eviction log says that happened."""

from __future__ import annotations

from tenure.clusters.kubernetes.read.eviction_log import EvictionEntry, happened


def entry(uid, at, **fields):
    return EvictionEntry(at=at, workload="default/w", task="w-0", uid=uid, cause="reclaim", **fields)


def test_a_pod_is_evicted_once_however_often_it_was_announced():
    """A scheduler ended between announcing and evicting, and the next one announced it again."""
    first, second = entry("a", "2027-01-15T08:00:01Z"), entry("a", "2027-01-15T08:00:09Z")
    assert happened([first, second], ()) == [second]


def test_the_announcement_that_is_known_to_have_been_carried_out_counts():
    done = entry("a", "2027-01-15T08:00:01Z", done=True)
    assert happened([done, entry("a", "2027-01-15T08:00:09Z")], ()) == [done]


def test_what_is_still_there_was_not_evicted():
    assert happened([entry("a", "2027-01-15T08:00:01Z"), entry("b", "2027-01-15T08:00:01Z")], {"a"}) == [
        entry("b", "2027-01-15T08:00:01Z")
    ]
