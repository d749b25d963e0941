"""Bindings go on beside the next plan, and a pod counts as bound from the moment at which that is asked for."""

from __future__ import annotations

import threading

import pytest
from tests.kubernetes.pods import NOW, node, pod, thing, watching

from tenure.clusters.kubernetes.cache.handlers import ASSUMED_SECONDS
from tenure.clusters.kubernetes.client.leader import NotLeaderError
from tenure.clusters.kubernetes.client.requests import ApiError
from tenure.clusters.kubernetes.write.actor import Actor
from tenure.clusters.kubernetes.write.bindings import DOUBT_SECONDS
from tenure.cycle import Scheduler
from tenure.engine.snapshot import session_of
from tenure.model.workload import Phase

GENEROUS = 60.0


class Slow:
    """An API server that answers when it is told to, by what it is told."""

    def __init__(self):
        self.answers, self.asked = threading.Event(), []
        self.error = None

    def create(self, path, _body, **_query):
        self.asked.append(path)
        assert self.answers.wait(GENEROUS)
        if self.error is not None:
            raise self.error
        return b"{}"


@pytest.fixture
def scene():
    made = Scene()
    yield made
    made.server.answers.set()
    made.actor.close()


class Scene:
    """A node for one pod, and a pod that waits."""

    def __init__(self):
        self.clock = [0.0]
        self.observer = watching(node("n", cpu="1"), pod("p"), queues=[thing("default", spec={})])
        self.informers = self.observer.informers
        self.informers.pods._clock = lambda: self.clock[0]
        self.server = Slow()
        self.actor = Actor(self.server, self.informers, in_flight=2)

    def cycle(self):
        """Observe, decide and carry out; gives the plan's steps and the outcome."""
        self.informers.pods.overdue()
        observed = self.observer.observe(NOW)
        plan = Scheduler(session_of(observed.cluster)).cycle(NOW)
        return [(s.action, s.task) for s in plan.steps], self.actor.carry_out(plan, observed)

    def settled(self):
        self.server.answers.set()
        self.actor.bindings.wait(0)

    def phase(self):
        return self.informers.pods.seen(("default", "p")).task.phase


def test_nobody_waits_for_the_answer_and_the_room_is_taken(scene):
    """The next plan is made while the server still works; what waits does not get the same room."""
    steps, outcome = scene.cycle()
    assert (steps, outcome.done) == ([("bind", "p")], [])
    scene.informers.pods.put(pod("q"))
    assert scene.phase() is Phase.BOUND
    assert scene.cycle()[0] == []
    scene.settled()
    assert [s.task for s in scene.cycle()[1].done] == ["p"]
    assert [s.task for s in scene.cycle()[1].done] == []


def test_what_is_refused_waits_again_at_once(scene):
    """Its room is there for others, what would have been recorded is forgotten, and the loop is woken."""
    scene.cycle()
    scene.informers.changed.clear()
    version = scene.informers.version()
    scene.server.error = ApiError(422, "Invalid", "no")
    scene.settled()
    assert scene.informers.changed.is_set()
    assert scene.informers.version() > version
    assert scene.phase() is Phase.PENDING
    assert scene.informers.pods.seals == {}
    scene.server.error = None
    steps, outcome = scene.cycle()
    assert steps == [("bind", "p")]
    assert [(f.action, f.task, f.error.status) for f in outcome.failures] == [("bind", "p", 422)]


@pytest.mark.parametrize("status", [0, 429, 500])
def test_room_of_which_nobody_knows_stays_taken_for_a_moment(scene, status):
    """It may have been bound: the watch tells, or else the pod waits again."""
    scene.cycle()
    scene.server.error = ApiError(status, "", "silence")
    scene.settled()
    assert scene.phase() is Phase.BOUND
    assert 0.0 < scene.informers.pods.doubtful() <= DOUBT_SECONDS
    assert scene.cycle()[0] == []
    scene.clock[0] += DOUBT_SECONDS
    scene.server.error = None
    assert scene.cycle()[0] == [("bind", "p")]


def test_a_pod_counts_as_bound_however_long_the_answer_takes(scene):
    """Thousands of bindings take longer than a write is believed; only then that time begins."""
    scene.cycle()
    scene.clock[0] += 10 * ASSUMED_SECONDS
    assert scene.informers.pods.doubtful() is None
    assert scene.cycle()[0] == []
    scene.settled()
    assert scene.informers.pods.doubtful() == ASSUMED_SECONDS
    assert scene.cycle()[0] == []
    scene.clock[0] += ASSUMED_SECONDS
    assert scene.cycle()[0] == [("bind", "p")]


def test_what_shows_is_believed_whatever_was_answered(scene):
    """The watch may be faster than an answer that does not come."""
    scene.cycle()
    scene.informers.pods.put(pod("p", node="n"))
    scene.server.error = ApiError(0, "Unreachable", "silence")
    scene.settled()
    assert scene.phase() is Phase.RUNNING


def test_without_the_lease_nothing_is_asked_and_nothing_is_told(scene):
    """Who leads now decides anew."""

    def lost():
        if threading.current_thread() is not threading.main_thread():
            raise NotLeaderError("another one leads")

    scene.actor.allowed = lost
    scene.cycle()
    scene.settled()
    assert scene.server.asked == []
    assert scene.phase() is Phase.PENDING
    scene.actor.allowed = lambda: None
    outcome = scene.cycle()[1]
    assert not outcome.failures
