"""What is played of a cluster that changes faster than it is played: what was played last is shown meanwhile."""

import threading
import time
from dataclasses import replace

from tests.web.consoles import small

from tenure.web import console as module
from tenure.web.console import Console
from tenure.web.still import StillSource


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
    end = time.monotonic() + 20
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
