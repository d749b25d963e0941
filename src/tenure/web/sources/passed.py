"""What one pass over a history leaves."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from heapq import nsmallest
from typing import Final

from tenure.history.query import Query
from tenure.history.reading.lives import Lives, life_of
from tenure.history.reading.takers import LifeLine
from tenure.history.reading.views import LIFE, Stay, live_on, origin_at, stays_at, version_of_content, workload_of
from tenure.history.store import HistoryStore
from tenure.model.cluster import Cluster
from tenure.model.file.load import cluster_of
from tenure.model.values.duration import DAY, format_time
from tenure.web.sources.picture import Picture
from tenure.web.sources.source import EvictionLine, UseSeries, WaitLine

LARGE: Final = 2_000_000
"""Records of workloads that are gone through at most: of more, those of the last days."""

LAST_DAYS: Final = 7
SHORTEST: Final = 0.01
"""Days that are gone through in any case."""

STRIDE: Final = 5_000
"""Records between two moments whose state is kept."""

MOST_KEPT: Final = 300_000
"""Workloads in all states that are kept."""

MOST_WAITS: Final = 10_000
"""Workloads that are kept as those that waited longest."""


@dataclass(slots=True)
class Passed:
    """What one pass over a history leaves: the lives of all workloads, and the state at some moments."""

    content: str
    span: tuple[int, int]
    begin: int
    lives: Lives = field(default_factory=Lives)
    moments: list[int] = field(default_factory=list)
    states: list[dict[str, Stay]] = field(default_factory=list)
    kept: int = 0
    evictions: list[EvictionLine] | None = None
    waits: list[WaitLine] = field(default_factory=list)
    series: dict[int, UseSeries | None] = field(default_factory=dict)
    then: tuple[int, Lives] | None = None
    newest: Picture | None = None

    def keep(self, at: int, found: dict[str, Stay]) -> None:
        """Keep the state at a moment."""
        self.moments.append(at)
        self.states.append({key: _copy(stay) for key, stay in found.items()})
        self.kept += len(found)

    def last(self, at: int | None) -> int:
        """Give the last moment of which is told: one that is asked for, at the latest the end."""
        return self.span[1] if at is None else min(at, self.span[1])

    def lives_at(self, at: int | None) -> Lives:
        """Give the lives as they were known at a moment; at the end where none is given."""
        if at is None or at >= self.span[1]:
            return self.lives
        found = self.then
        if found is None or found[0] != at:
            found = self.then = at, self.lives.as_of(at)
        return found[1]

    def cluster_at(self, store: HistoryStore, at: int) -> Cluster:
        """Give the cluster at a moment: the state that was kept last before it, and what happened since."""
        number = bisect_right(self.moments, at) - 1
        found = {key: _copy(stay) for key, stay in self.states[number].items()} if number >= 0 else {}
        since = self.moments[number] + 1 if number >= 0 else at + 1
        with store.reading() as connection:
            origin = origin_at(store, connection, at)
            if since <= at:
                for record, _ in store.scan(connection, Query(kinds=LIFE, since=since, until=at + 1)):
                    live_on(found, record)
        cluster = Cluster(now=at)
        if origin is not None:
            cluster = cluster_of({**origin, "now": format_time(at)}, store.place)
        return replace(cluster, workloads=tuple(workload_of(stay) for _, stay in sorted(found.items())))


def gone_through(store: HistoryStore) -> Passed:
    """Go through a history once, from its first record on; through a very long one from later on."""
    span = store.span() or (0, 0)
    begin = _begin(store, span)
    made = Passed(version_of_content(store), span, begin)
    count, last = 0, begin
    with store.reading() as connection:
        found = stays_at(store, connection, begin - 1)
        made.lives = Lives({key: life_of(stay, begin) for key, stay in found.items()})
        made.keep(begin - 1, found)
        for record, _ in store.scan(connection, Query(kinds=LIFE, since=begin)):
            if count >= STRIDE and record.at > last and made.kept + len(found) <= MOST_KEPT:
                made.keep(last, found)
                count = 0
            live_on(found, record)
            made.lives.note(record)
            count, last = count + 1, record.at
    made.waits = longest_waits(made.lives.newest, span[1], MOST_WAITS)
    return made


def _begin(store: HistoryStore, span: tuple[int, int]) -> int:
    """Say from when on records are gone through: of very many, those of the last days, or of a part of these."""
    begin, days = span[0], float(LAST_DAYS)
    while days > SHORTEST and store.count(Query(kinds=LIFE, since=begin)) > LARGE:
        begin, days = max(span[0], span[1] - round(days * DAY)), days / 2
    return begin


def _copy(stay: Stay) -> Stay:
    return replace(stay, tasks=dict(stay.tasks))


def longest_waits(lives: Mapping[str, LifeLine], last: int, most: int) -> list[WaitLine]:
    """Give the workloads that waited longest, the longest first; ``last`` is the last moment that is known."""
    found = (
        WaitLine(key, life.queue, life.submitted, life.started, life.waited_until(last) - life.submitted)
        for key, life in lives.items()
    )
    waited = (line for line in found if line.started_at is None or line.waited > 0)
    return nsmallest(most, waited, key=lambda line: (-line.waited, line.workload))
