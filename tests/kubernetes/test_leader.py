"""The election of a leader on a real API server, with clocks that the test moves."""

from __future__ import annotations

import threading

import pytest
from tests.kubernetes.stage import wait_until

from tenure.clusters.kubernetes.client.access import find_access
from tenure.clusters.kubernetes.client.leader import DURATION, SURE_FOR, Election, NotLeaderError
from tenure.clusters.kubernetes.client.requests import Client
from tenure.clusters.kubernetes.write.pause import Pause, pause_of, write_pause


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def election(plane, request):
    """Give a function that makes candidates, all with one clock."""
    clock = Clock()
    client = Client(find_access(str(plane.kubeconfig)))
    name = request.node.name.replace("_", "-")[:60].strip("-")

    def make(identity, **options):
        return Election(client, "default", name, identity, monotonic=clock, **options)

    make.clock = clock
    return make


def test_one_of_two_leads(election):
    """Who comes first leads; the other does not, as long as the first renews."""
    one, two = election("one"), election("two")
    assert one.attempt()
    assert not two.attempt()
    for _ in range(10):
        election.clock.now += DURATION / 3
        assert one.attempt()
        assert not two.attempt()
    assert (one.leads, two.leads, two.holder) == (True, False, "one")


def test_a_leader_that_was_paused_acts_no_more_before_another_one_may(election):
    """Who was paused is no longer sure of its lease before it can be taken, and loses it when it looks again."""
    one, two = election("one"), election("two")
    one.attempt()
    two.attempt()
    election.clock.now += SURE_FOR
    with pytest.raises(NotLeaderError):
        one.require()
    assert not two.attempt()
    election.clock.now += DURATION - SURE_FOR
    assert two.attempt()
    assert not one.attempt()
    assert (one.leads, two.leads) == (False, True)


def test_a_term_begins_anew_when_leadership_was_lost_and_won_again(election):
    """The number of the term changes, so that a second cycle has to confirm again."""
    one = election("one")
    one.attempt()
    assert one.terms == 1
    one.attempt()
    assert one.terms == 1
    election.clock.now += 100
    one.attempt()
    assert one.terms == 2


def test_a_lease_that_is_given_back_is_free_at_once(election):
    """An orderly end does not make the next one wait."""
    one, two = election("one"), election("two")
    one.attempt()
    one.stop()
    assert not one.leads
    assert two.attempt()


def test_who_could_not_act_leaves_the_lease_to_others(election):
    """It does not even ask for it, until it could act."""
    asked, able = [], threading.Event()
    one = election("one", stands=lambda: bool(asked.append(1)) or able.is_set())
    one.start()
    wait_until(lambda: len(asked) >= 2, "it does not look whether it could act")
    assert one._read() is None
    able.set()
    wait_until(lambda: one.leads, "it does not lead")
    one.stop()


def test_a_pause_stands_on_the_lease_and_outlives_renewals(plane):
    """A pause is written whether there is a lease or not, is kept when the lease is renewed, and can be taken away."""
    client = Client(find_access(str(plane.kubeconfig)))
    write_pause(client, "default", "pool", Pause(1_800_000_000_000_000, "maintenance"))
    held = Election(client, "default", "tenure-scheduler-pool", "one")
    assert held.attempt()
    lease = held._read()
    assert pause_of(lease["metadata"]["annotations"]["tenure.dev/pause"]) == (1_800_000_000_000_000, "maintenance")
    write_pause(client, "default", "pool", None)
    assert "tenure.dev/pause" not in (held._read()["metadata"].get("annotations") or {})


@pytest.mark.parametrize("text", [None, "", "soon", "{}", '{"until": "soon"}', "[1]"])
def test_a_note_that_cannot_be_read_is_no_pause(text):
    """What is no note pauses nothing."""
    assert pause_of(text) is None
