"""A source that is a history: of a simulation, of plans, or of a live cluster."""

from __future__ import annotations

import threading
import time
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from heapq import nsmallest
from itertools import chain
from typing import Final

from tenure.history import open_history
from tenure.history.connect import name_of
from tenure.history.query import Query
from tenure.history.reading.lives import Lives, life_of
from tenure.history.reading.story import sentence, told_together
from tenure.history.reading.takers import LifeLine, Taker, causes_of, takers_among
from tenure.history.reading.views import (
    LIFE,
    Stay,
    live_on,
    origin_at,
    queues_over_time,
    stays_at,
    version_of_content,
    workload_of,
)
from tenure.history.record import HistoryRecord
from tenure.history.scope import EVERYTHING_THERE, Scope
from tenure.model.cluster import Cluster
from tenure.model.file.load import cluster_of
from tenure.model.values.duration import DAY, format_time
from tenure.model.values.resources import CPU, GPU
from tenure.web.access.viewer import A_NODE, EVERYTHING, Viewer
from tenure.web.sources.picture import Picture
from tenure.web.sources.source import (
    EvictionLine,
    EvictionPage,
    EvictionQuery,
    StoryLine,
    Trouble,
    UseSeries,
    WaitLine,
    chosen,
    shown_to,
)

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

MOST_EVICTIONS: Final = 50_000
"""Evictions that are sorted and filtered, the newest."""

REREAD: Final = 10.0
"""Seconds after which a store that has changed is gone through again."""

_OF_A_TASK: Final = frozenset({"task", "others", "node", "to"})

WEIGHTED: Final = "weighted"
"""Stands for amounts of several resources, added up by their weights."""


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


class PastSource:
    """A history, gone through once; what it says of a moment or a workload is read when it is asked for.

    ``whose``: the cluster and node pool whose history is shown, where the store has that of several; ``may_begin``:
    there need not be records of it yet.
    """

    is_live = False
    kind = "history"

    def __init__(self, address: str, whose: Scope = EVERYTHING_THERE, *, may_begin: bool = False) -> None:
        self.name = name_of(address)
        self._store = open_history(address)
        self._whose, self._may_begin = whose, may_begin
        self._lock = threading.RLock()
        self._looking = threading.Lock()
        self._number = 1
        self._looked = time.monotonic()
        self._trouble = ""
        self._closed = False
        self._passed = self._pass()
        self._newest: Picture | None = None

    @property
    def note(self) -> str:
        """Say what is shown."""
        if self._passed.begin > self._passed.span[0]:
            return f"This history is long: moments and waits are shown from {format_time(self._passed.begin)} on."
        return "What tasks ask for is recorded, constraints on nodes are not: what is played here leaves these out."

    # -- one pass -----------------------------------------------------------------------------------------------------

    def _pass(self) -> Passed:
        self._choose()
        span = self._store.span() or (0, 0)
        begin = self._begin(span)
        made = Passed(version_of_content(self._store), span, begin)
        count, last = 0, begin
        with self._store.reading() as connection:
            found = stays_at(self._store, connection, begin - 1)
            made.lives = Lives({key: life_of(stay, begin) for key, stay in found.items()})
            self._keep(made, begin - 1, found)
            for record, _ in self._store.scan(connection, Query(kinds=LIFE, since=begin)):
                if count >= STRIDE and record.at > last and made.kept + len(found) <= MOST_KEPT:
                    self._keep(made, last, found)
                    count = 0
                live_on(found, record)
                made.lives.note(record)
                count, last = count + 1, record.at
        made.waits = _waits(made.lives.newest, span[1], MOST_WAITS)
        return made

    def _choose(self) -> None:
        """See one node pool of one cluster; once there are records of one, others that come change nothing."""
        if not self._store.scope.cluster:
            self._store.see(self._whose, alone=True, may_begin=self._may_begin)

    def _begin(self, span: tuple[int, int]) -> int:
        """Say from when on records are gone through: of very many, those of the last days, or of a part of these."""
        begin, days = span[0], float(LAST_DAYS)
        while days > SHORTEST and self._store.count(Query(kinds=LIFE, since=begin)) > LARGE:
            begin, days = max(span[0], span[1] - round(days * DAY)), days / 2
        return begin

    @staticmethod
    def _keep(made: Passed, at: int, found: dict[str, Stay]) -> None:
        made.moments.append(at)
        made.states.append({key: _copy(stay) for key, stay in found.items()})
        made.kept += len(found)

    @contextmanager
    def _current(self) -> Iterator[Passed]:
        """Give the last pass."""
        with self._lock:
            yield self._passed

    def _look_again(self) -> None:
        """Go through the store again where it has changed; whoever asks meanwhile is shown what was there."""
        if version_of_content(self._store) == self._passed.content:
            return
        made = self._pass()
        with self._lock:
            self._passed, self._newest = made, None
            self._number += 1

    # -- what views ask for -------------------------------------------------------------------------------------------

    @property
    def version(self) -> int:
        """Number of the present state. Nobody waits for it; whether the store has changed is found out beside."""
        if time.monotonic() - self._looked > REREAD and self._looking.acquire(blocking=False):
            self._looked = time.monotonic()
            looker = threading.Thread(target=self._look_beside, name="console-rereads", daemon=True)
            looker.start()
        return self._number

    def _look_beside(self) -> None:
        trouble = ""
        try:
            if not self._closed:
                self._look_again()
        except Exception as error:  # noqa: BLE001  the page goes on with what was read last, and says so
            trouble = f"the history could not be read again: {type(error).__name__}: {error}"
        finally:
            if trouble != self._trouble:
                self._trouble = trouble
                self._number += 1
            self._looked = time.monotonic()
            self._looking.release()

    def span(self) -> tuple[int, int]:
        """Give the first and the last moment."""
        with self._current() as passed:
            return passed.span

    def namespaces(self) -> set[str]:
        """Give the namespaces of all whose lives are gone through, and of those of which evictions tell."""
        with self._current() as passed:
            told = {key for line in self.log() for key in (line.workload, line.beneficiary) if key}
            return {key.partition("/")[0] for key in chain(passed.lives.newest, told)}

    def picture(self, at: int | None = None) -> Picture:
        """Give the cluster at a moment, at the end where none is given."""
        with self._current() as passed:
            if at is None and self._newest is not None:
                return self._newest
            made = Picture.of(self._cluster(passed, passed.span[1] if at is None else at))
            if at is None:
                self._newest = made
            return made

    def _cluster(self, passed: Passed, at: int) -> Cluster:
        number = bisect_right(passed.moments, at) - 1
        found = {key: _copy(stay) for key, stay in passed.states[number].items()} if number >= 0 else {}
        since = passed.moments[number] + 1 if number >= 0 else at + 1
        with self._store.reading() as connection:
            origin = origin_at(self._store, connection, at)
            if since <= at:
                for record, _ in self._store.scan(connection, Query(kinds=LIFE, since=since, until=at + 1)):
                    live_on(found, record)
        cluster = Cluster(now=at)
        if origin is not None:
            cluster = cluster_of({**origin, "now": format_time(at)}, self._store.place)
        return replace(cluster, workloads=tuple(workload_of(stay) for _, stay in sorted(found.items())))

    def evictions(self, query: EvictionQuery, viewer: Viewer) -> EvictionPage:
        """Give evictions, of very many the newest."""
        return chosen(shown_to(viewer, self.log()), query)

    def log(self) -> list[EvictionLine]:
        """Give all evictions, of very many the newest."""
        with self._current() as passed:
            if passed.evictions is None:
                passed.evictions = self._evictions()
            return passed.evictions

    def _evictions(self) -> list[EvictionLine]:
        """Go once through what was evicted and what came of it, from the newest on."""
        evicted: list[HistoryRecord] = []
        outcomes: dict[str, list[HistoryRecord]] = {}
        asked = Query(kinds=("evicted", "shadow", "outcome"))
        with self._store.reading() as connection:
            for record, _ in self._store.scan(connection, asked, newest=True):
                if record.kind == "outcome":
                    outcomes.setdefault(record.workload or "", []).append(record)
                elif len(evicted) < MOST_EVICTIONS:
                    evicted.append(record)
                else:
                    break
        return _with_gains(evicted, outcomes)

    def story(self, key: str, limit: int, at: int | None = None, viewer: Viewer = EVERYTHING) -> list[StoryLine]:
        """Tell everything that happened to a workload."""
        found = []
        for record in told_together(self._store.story(key, limit=limit, newest=True, until=_after(at))):
            own = record.workload == key
            kind = record.kind if own or record.kind != "evicted" else "made room"
            whom = record.beneficiary if own else record.workload
            found.append(StoryLine(record.at, kind, sentence(_as_seen(record, viewer), key), record.cause or "", whom))
        return found

    def takers(self, key: str, limit: int, at: int | None = None) -> list[Taker]:
        """Give for whom it was evicted, those that started while it waited, and those that held room when it came."""
        with self._current() as passed:
            lives = passed.lives_at(at)
            own = lives.newest.get(key)
            if own is None:
                return []
            causes = causes_of(self._store.story(key, limit=1000, newest=True, until=_after(at)), key, own.submitted)
            return takers_among(lives.of_all(), key, own, causes, passed.last(at), limit)

    def waits(self, viewer: Viewer, limit: int, at: int | None = None) -> list[WaitLine]:
        """Give those that waited longest."""
        with self._current() as passed:
            found = passed.waits
            if at is not None:
                lives = {key: life for key, life in passed.lives_at(at).newest.items() if viewer.sees(key)}
                found = _waits(lives, passed.last(at), limit)
            return [line for line in found if viewer.sees(line.workload)][:limit]

    def series(self, points: int) -> UseSeries | None:
        """Give what queues held, as means over equal steps."""
        with self._current() as passed:
            if points not in passed.series:
                if len(passed.series) > 8:  # noqa: PLR2004  a few lengths are enough
                    passed.series.clear()
                passed.series[points] = self._series(passed, points)
            return passed.series[points]

    def _series(self, passed: Passed, points: int) -> UseSeries | None:
        rows = queues_over_time(self._store, passed.span[0], passed.span[1] + 1, points)
        total = next((row for row in rows if not row.queue), None)
        if total is None or not total.at:
            return None
        main = GPU if any(total.capacity.get(GPU, ())) else CPU
        capacity = round(max(total.capacity.get(main, [0.0])))
        held = {row.queue: row.held[main] for row in rows if row.queue and any(row.held.get(main, ()))}
        step = total.at[1] - total.at[0] if len(total.at) > 1 else passed.span[1] + 1 - total.at[0]
        return UseSeries(main, capacity, total.at, held, step=step)

    def troubles(self, at: int | None = None) -> list[Trouble]:
        """Say where records are missing."""
        gaps = self._store.records(Query(kinds=("gap",), until=_after(at)), limit=3, newest=True).records
        unread = [Trouble("bad", self._trouble)] if self._trouble else []
        return unread + [
            Trouble("odd", f"records are missing from {format_time(gap.at)} on: {sentence(gap)}") for gap in gaps
        ]

    def close(self) -> None:
        """Give the store back, once nobody reads it any more."""
        self._closed = True
        with self._looking:
            self._store.close()


def _as_seen(record: HistoryRecord, viewer: Viewer) -> HistoryRecord:
    """Give a record without the tasks of workloads, and without the nodes, that a viewer does not see."""
    fields = dict(record.payload)
    if not viewer.sees(record.workload):
        fields = {name: value for name, value in fields.items() if name not in _OF_A_TASK}
    if not viewer.nodes:
        placed = fields["tasks"] if isinstance(fields.get("tasks"), list) else ()
        nodes = {str(fields[name]) for name in ("node", "to") if fields.get(name)} | {str(one[1]) for one in placed}
        nodes.update(*(name.split(", ") for name in list(nodes)))
        fields = {k: viewer.told(v, nodes) if isinstance(v, str) else v for k, v in fields.items()}
        fields |= {name: A_NODE for name in ("node", "to") if fields.get(name)}
        fields |= {"tasks": [(one[0], A_NODE) for one in placed]} if placed else {}
    return record._replace(payload=fields)


def _after(at: int | None) -> int | None:
    """Give the first moment that is later than another."""
    return None if at is None else at + 1


def _copy(stay: Stay) -> Stay:
    return replace(stay, tasks=dict(stay.tasks))


def _waits(lives: Mapping[str, LifeLine], last: int, most: int) -> list[WaitLine]:
    found = (
        WaitLine(key, life.queue, life.submitted, life.started, life.waited_until(last) - life.submitted)
        for key, life in lives.items()
    )
    return nsmallest(most, found, key=lambda line: (-line.waited, line.workload))


def _with_gains(
    evicted: Sequence[HistoryRecord], outcomes: Mapping[str, Sequence[HistoryRecord]]
) -> list[EvictionLine]:
    """Say of evictions what was gained by them: what somebody gained by several is shared out by what each cost."""
    gain_of: list[HistoryRecord | None] = []
    made: dict[int, list[HistoryRecord]] = {}
    for record in evicted:
        found = outcomes.get(record.beneficiary or "", ()) if record.kind == "evicted" else ()
        gain = next((one for one in found if one.payload["evictedAt"] <= record.at <= one.payload["start"]), None)
        gain_of.append(gain)
        if gain is not None:
            made.setdefault(id(gain), []).append(record)
    lines = []
    for record, gain in zip(evicted, gain_of, strict=True):
        if gain is None:
            lines.append(_eviction(record, None, None))
            continue
        together = made[id(gain)]
        cost = sum(one.value for one in together)
        part = record.value / cost if cost else 1 / len(together)
        line = _eviction(record, gain.value * part / 1e6, gain.value >= cost)
        lines.append(line._replace(settled_at=gain.at))
    return lines


def _eviction(record: HistoryRecord, gained: float | None, paid: bool | None) -> EvictionLine:
    fields = record.payload
    return EvictionLine(
        record.at, record.workload or "", record.queue or "", str(fields.get("task", "")), record.cause or "",
        record.beneficiary, fields.get("forQueue"), fields.get("node"), fields.get("to"), record.value / 1e6,
        _spent(fields.get("lost") or {}), None if gained is None else {WEIGHTED: gained}, paid,
        "shadow" if record.kind == "shadow" else "done", str(fields.get("reason") or ""),
    )  # fmt: skip


def _spent(sums: Mapping[str, int]) -> dict[str, float]:
    """Give sums over time in resource-seconds, GPUs and cores in whole ones."""
    return {name: amount / (1e9 if name in (GPU, CPU) else 1e6) for name, amount in sums.items()}
