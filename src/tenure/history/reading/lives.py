"""The lives of workloads, as records tell of them; one that comes again under its name begins another life."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Final

from sqlalchemy import Connection

from tenure.history.query import Query
from tenure.history.reading.takers import LifeLine
from tenure.history.reading.views import Stay, stays_at
from tenure.history.record import HistoryRecord
from tenure.history.store import HistoryStore, in_batches

TURNS: Final = ("submitted", "started", "ended")
"""Kinds of records that begin a life, or change it."""


@dataclass(slots=True)
class Lives:
    """Lives by the workload's name: the newest of each, and those before."""

    newest: dict[str, LifeLine] = field(default_factory=dict)
    before: list[tuple[str, LifeLine]] = field(default_factory=list)
    asks: dict[tuple[tuple[str, int], ...], dict[str, int]] = field(default_factory=dict)
    """What is asked for, once for all that ask for the same."""

    def note(self, record: HistoryRecord) -> None:
        """Note what the next record says."""
        key = record.workload or ""
        if record.kind == "submitted" or key not in self.newest:
            asked: dict[str, int] = record.payload.get("ask") or {}
            alike = self.asks.setdefault(tuple(asked.items()), asked)
            self._begin(key, LifeLine(record.queue or "", record.at, asked=alike))
        life = self.newest[key]
        if record.kind == "started" and life.started is None and not record.payload.get("again"):
            life.started = record.at
        elif record.kind == "ended":
            life.ended = record.at

    def of_all(self) -> Iterator[tuple[str, LifeLine]]:
        """Give every life with its name, those of one name in their order."""
        return chain(self.before, self.newest.items())

    def as_of(self, at: int) -> Lives:
        """Give them as they were known at a moment (µs since the epoch)."""
        found = Lives()
        for key, life in self.of_all():
            if life.submitted <= at:
                found._begin(key, life.as_of(at))
        return found

    def _begin(self, key: str, life: LifeLine) -> None:
        """Take a life as the newest of a name."""
        if key in self.newest:
            self.before.append((key, self.newest[key]))
        self.newest[key] = life


def lives_around(
    store: HistoryStore, connection: Connection, since: int, until: int, others: Collection[str] = ()
) -> Lives:
    """Give the lives of the workloads that were there at a time or came before another, and of others."""
    lives = Lives({key: life_of(stay, since) for key, stay in stays_at(store, connection, since).items()})
    for record, _ in store.scan(connection, Query(kinds=TURNS, since=since + 1, until=until)):
        lives.note(record)
    for names in in_batches([*lives.newest, *(key for key in others if key not in lives.newest)]):
        for record, _ in store.scan(connection, Query(kinds=TURNS, workloads=names, since=until)):
            lives.note(record)
    return lives


def life_of(stay: Stay, at: int) -> LifeLine:
    """Give the life of a workload that is there; of one that runs, whose start is not known, it is taken to be now."""
    started = at if stay.started is None and stay.tasks else stay.started
    return LifeLine(stay.queue, stay.submitted, started, asked=stay.fields.get("ask") or {})
