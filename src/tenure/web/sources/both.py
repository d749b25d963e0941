"""A source that is a live cluster together with its history: the present is watched, the past is read."""

from __future__ import annotations

import time
from typing import Final

from tenure.history.reading.takers import Taker
from tenure.model.values.duration import format_time
from tenure.web.access.viewer import EVERYTHING, Viewer
from tenure.web.sources.past import PastSource
from tenure.web.sources.picture import Picture
from tenure.web.sources.source import (
    EvictionLine,
    StoryLine,
    Trouble,
    UseSeries,
    WaitLine,
)
from tenure.web.sources.still import StillSource

SILENT: Final = 10 * 60_000_000
"""µs without any record after which somebody should look; use by queue is recorded every minute."""


class BothSource:
    """What is there now comes from the cluster, whatever was before its last record from the history."""

    kind = "live"
    note = "Read-only. What is now is watched; what was is read from the history, which knows no constraints on nodes."

    def __init__(self, live: StillSource, past: PastSource) -> None:
        self.live, self.past = live, past
        self.name = f"{live.name}, {past.name}"
        self.is_live = live.is_live

    @property
    def version(self) -> int:
        """Number of the present state."""
        return self.live.version + self.past.version

    def span(self) -> tuple[int, int]:
        """Give the first moment of the history, and now."""
        begin, end = self.past.span()
        now = self.live.span()
        return (begin, max(end, now[1])) if end else now

    def namespaces(self) -> set[str]:
        """Give those of both."""
        return self.live.namespaces() | self.past.namespaces()

    def picture(self, at: int | None = None) -> Picture:
        """Give the cluster as it is, or as it was recorded."""
        return self.live.picture(at) if _is_later(self.past, at) else self.past.picture(at)

    def log(self) -> list[EvictionLine]:
        """Give those that were recorded, and those of the cluster's own log that are not recorded yet."""
        recorded = self.past.span()[1]
        later = (line for line in self.live.log() if line.at > recorded)
        return [*self.past.log(), *later]

    def story(self, key: str, limit: int, at: int | None = None, viewer: Viewer = EVERYTHING) -> list[StoryLine]:
        """Tell what was recorded of a workload, and what the cluster knows of what came after."""
        found = self.past.story(key, limit, at, viewer)
        last = self.past.span()[1] if found else 0
        return [*found, *(line for line in self.live.story(key, limit, at, viewer) if line.at > last)][-limit:]

    def takers(self, key: str, limit: int, at: int | None = None) -> list[Taker]:
        """Give who took its room as recorded; where nothing is recorded yet, as the cluster tells."""
        return self.past.takers(key, limit, at) or self.live.takers(key, limit, at)

    def waits(self, viewer: Viewer, limit: int, at: int | None = None) -> list[WaitLine]:
        """Give those that are there, and wait or waited longest; of an earlier moment, as recorded."""
        return self.live.waits(viewer, limit, at) if _is_later(self.past, at) else self.past.waits(viewer, limit, at)

    def series(self, points: int) -> UseSeries | None:
        """Give what was recorded; where nothing is, what is known since the console runs."""
        return self.past.series(points) or self.live.series(points)

    def troubles(self, at: int | None = None) -> list[Trouble]:
        """Say what is wrong with either, and whether nothing is recorded any more."""
        if not _is_later(self.past, at):
            return self.past.troubles(at)
        found = [*self.live.troubles(at), *self.past.troubles(at)]
        last = self.past.span()[1]
        if last and time.time_ns() // 1000 - last > SILENT:
            found.append(Trouble("bad", f"nothing was recorded since {format_time(last)}: the scheduler's loop stands "
                                        "still, or it does not reach its history"))  # fmt: skip
        return found

    def close(self) -> None:
        """Let go of both."""
        self.live.close()
        self.past.close()


def _is_later(past: PastSource, at: int | None) -> bool:
    """Whether a moment is later than what is recorded."""
    return at is None or at > past.span()[1]
