"""A source that is a history: of a simulation, of plans, or of a live cluster."""

from __future__ import annotations

from itertools import chain
from typing import Final

from tenure.history.query import Query
from tenure.history.reading.story import sentence, told_together
from tenure.history.reading.takers import Taker, causes_of, takers_among
from tenure.history.reading.views import queues_over_time
from tenure.history.record import HistoryRecord
from tenure.history.store import HistoryStore
from tenure.model.values.duration import format_time
from tenure.model.values.resources import CPU, GPU
from tenure.web.access.viewer import A_NODE, EVERYTHING, Viewer
from tenure.web.sources.passed import longest_waits
from tenure.web.sources.picture import Picture
from tenure.web.sources.recorded_evictions import recorded_evictions
from tenure.web.sources.reread import RereadHistory
from tenure.web.sources.source import EvictionLine, StoryLine, Trouble, UseSeries, WaitLine

_OF_A_TASK: Final = frozenset({"task", "others", "node", "to"})


class PastSource(RereadHistory):
    """A history, gone through once; what it says of a moment or a workload is read when it is asked for."""

    is_live = False
    kind = "history"

    @property
    def note(self) -> str:
        """Say what is shown."""
        if self._passed.begin > self._passed.span[0]:
            return f"This history is long: moments and waits are shown from {format_time(self._passed.begin)} on."
        return "What tasks ask for is recorded, constraints on nodes are not: what is played here leaves these out."

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
            if at is None and passed.newest is not None:
                return passed.newest
            made = Picture.of(passed.cluster_at(self._store, passed.span[1] if at is None else at))
            if at is None:
                passed.newest = made
            return made

    def log(self) -> list[EvictionLine]:
        """Give all evictions, of very many the newest."""
        with self._current() as passed:
            if passed.evictions is None:
                passed.evictions = recorded_evictions(self._store)
            return passed.evictions

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
                found = longest_waits(lives, passed.last(at), limit)
            return [line for line in found if viewer.sees(line.workload)][:limit]

    def series(self, points: int) -> UseSeries | None:
        """Give what queues held, as means over equal steps."""
        with self._current() as passed:
            if points not in passed.series:
                if len(passed.series) > 8:  # noqa: PLR2004  a few lengths are enough
                    passed.series.clear()
                passed.series[points] = _series(self._store, passed.span, points)
            return passed.series[points]

    def troubles(self, at: int | None = None) -> list[Trouble]:
        """Say where records are missing."""
        gaps = self._store.records(Query(kinds=("gap",), until=_after(at)), limit=3, newest=True).records
        unread = [Trouble("bad", self._trouble)] if self._trouble else []
        return unread + [
            Trouble("odd", f"records are missing from {format_time(gap.at)} on: {sentence(gap)}") for gap in gaps
        ]


def _series(store: HistoryStore, span: tuple[int, int], points: int) -> UseSeries | None:
    rows = queues_over_time(store, span[0], span[1] + 1, points)
    total = next((row for row in rows if not row.queue), None)
    if total is None or not total.at:
        return None
    main = GPU if any(total.capacity.get(GPU, ())) else CPU
    capacity = round(max(total.capacity.get(main, [0.0])))
    held = {row.queue: row.held[main] for row in rows if row.queue and any(row.held.get(main, ()))}
    step = total.at[1] - total.at[0] if len(total.at) > 1 else span[1] + 1 - total.at[0]
    return UseSeries(main, capacity, total.at, held, step=step)


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
