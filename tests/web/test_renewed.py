"""What is played of a cluster that changes faster than it is played: what was played last is shown meanwhile."""

import os
import threading
import time
from dataclasses import replace

import pytest
from tests.web.consoles import shown, small

from tenure.web import console as module
from tenure.web.access.viewer import Viewer
from tenure.web.console import Console
from tenure.web.playing.player import Player
from tenure.web.sources.still import StillSource
from tenure.web.views.look import Looked


class Moving(StillSource):
    """A cluster that becomes another one when it is told to."""

    is_live = True

    def move(self):
        """Let a µs pass."""
        self._picture = self._picture.after(replace(self._picture.cluster, now=self._picture.cluster.now + 1))


class Slow:
    """Plays when it is let; says of which moment it played. The real one is tried in the other tests."""

    def __init__(self):
        self.let = threading.Semaphore(0)

    def ask(self, cluster, *_):
        """Wait, and tell."""
        assert self.let.acquire(timeout=20)
        return cluster.now

    def close(self):
        """Let all that is asked end."""
        self.let.release(100)


def wait_until(holds):
    """Wait until something holds."""
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_playing_that_takes_longer_than_the_cluster_takes_to_change_comes_to_an_end(monkeypatch):
    monkeypatch.setattr(module, "RENEWED", 0.0)
    slow, source = Slow(), Moving(small(), "moving")
    shown = Console(source, slow)
    began = source.picture().now

    def ask():
        source.move()
        return shown.ask(source.picture(), "outlook", wait=0.0)

    try:
        assert [ask() for _ in range(3)] == [None, None, None]
        slow.let.release()
        wait_until(lambda: shown.played == 1)  # pages that were made without it are made anew
        first = ask()
        assert first == began + 1  # the cluster is another one by now, and is being played
        assert [ask() for _ in range(3)] == [first] * 3
        slow.let.release()
        wait_until(lambda: ask() > first)
        assert len(shown._answers) == 1
    finally:
        shown.close()


class Ends:
    """Ends the process in which it is read."""

    def __reduce__(self):
        return os._exit, (1,)


class Failing(Player):
    """Its process cannot play what it is asked for, or ends."""

    def __init__(self, task, arguments):
        super().__init__()
        self.instead = task, arguments

    def _exchange(self, process, task, arguments):
        played = task in {"shares", "explain", "outlook"}
        return super()._exchange(process, *(self.instead if played else (task, arguments)))


@pytest.mark.parametrize(
    ("instead", "text"),
    [(("nothing of this name", ()), "KeyError"), (("explain", (1, 2, 3)), "TypeError"),
     (("explain", (Ends(),)), "the process that plays it ended")],
)  # fmt: skip
def test_that_playing_failed_is_said_on_the_page_and_in_the_answer(monkeypatch, instead, text):
    """The process is a real one; what it is asked for instead cannot be played."""
    monkeypatch.setattr(module, "Player", lambda: Failing(*instead))
    with shown(small()) as client:
        for path in ("/", "/queues", "/workloads/team-b/longest"):
            wait_until(lambda path=path: "being worked out" not in client.get(path).text)
            page = client.get(path).text
            assert "This could not be worked out" in page, path
            assert text in page
        found = client.get("/api/v1/workloads/team-b/longest").json()
        assert text in found["failed"]
        assert not found["settled"]
        assert found["workload"] == "team-b/longest"


def test_a_limited_viewer_is_not_told_what_it_failed_at(monkeypatch):
    monkeypatch.setattr(module, "Player", lambda: Failing("a/secret", ()))
    console = Console(StillSource(small(), "still"))
    try:
        look = Looked(console, console.picture(), Viewer("ada", frozenset({"team-b"})), wait=60.0)
        assert look.played("shares") is None
        assert look.failed == ["KeyError"]
    finally:
        console.close()
