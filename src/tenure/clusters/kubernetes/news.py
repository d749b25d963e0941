"""Waiting for what happens on a cluster."""

from __future__ import annotations

import time
from collections.abc import Callable

from tenure.clusters.kubernetes.cache.informers import InformerCache

LATER_SECONDS = 0.25
"""After so long what calls for no decision at once is looked at as well."""

SETTLE_SECONDS = 0.001
"""What comes within this time of a first change is taken together with it."""


class ClusterNews:
    """The changes of a cluster since it was observed last, which the scheduler waits for.

    ``version`` changes when something else is observed. ``has_answers`` says whether writes were answered of which
    nothing was told yet.
    """

    def __init__(self, informers: InformerCache, has_answers: Callable[[], bool]) -> None:
        self.version = -1
        self._informers = informers
        self._has_answers = has_answers
        self._urgent = -1
        self._at = self._looked = 0.0
        self._is_over = self._looks_again = False

    def begin(self) -> bool:
        """The cluster is observed now: what comes from here on is news; gives whether a brief look will do."""
        self._urgent, self._at = self._informers.urgent(), time.monotonic()
        is_brief = self._at - self._looked < LATER_SECONDS
        self._looked = self._looked if is_brief else self._at
        self.version = self._informers.version() - (self._informers.pods.deferred if is_brief else 0)
        return is_brief

    def wait(self, seconds: float) -> bool:
        """Wait until something changed that may call for a decision, or so many seconds; gives whether anything did.

        What this process wrote itself, and what only began to run, is looked at a little later.
        """
        changed, until = self._informers.changed, time.monotonic() + seconds
        while not self._is_there():
            changed.clear()
            left = self._next_look(until) - time.monotonic()
            if self._is_over or self._is_there() or left <= 0 or not changed.wait(left):
                break
        if not self._is_there():
            return self._informers.version() != self.version
        self._looks_again = False
        time.sleep(SETTLE_SECONDS)
        return True

    def _is_there(self) -> bool:
        return self._looks_again or self._informers.urgent() != self._urgent or self._has_answers()

    def _next_look(self, until: float) -> float:
        return until if self._informers.version() == self.version else min(until, self._at + LATER_SECONDS)

    def look_again(self) -> None:
        """Let who waits look once more, although nothing has changed."""
        self._looks_again = True
        self._informers.changed.set()

    def end(self) -> None:
        """Let nobody wait any longer: there is nothing to wait for."""
        self._is_over = True
        self._informers.changed.set()
