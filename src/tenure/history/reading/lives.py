"""The lives of the workloads around a wait, without those of all the others."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import Connection

from tenure.history.query import Query
from tenure.history.reading.takers import LifeLine
from tenure.history.reading.views import Stay, stays_at
from tenure.history.record import HistoryRecord
from tenure.history.store import HistoryStore, in_batches


def lives_around(
    store: HistoryStore, connection: Connection, since: int, until: int, others: Collection[str] = ()
) -> dict[str, LifeLine]:
    """Give the lives of the workloads that were there at a time, of those that started until another, and of others."""
    lives = {key: life_of(stay, since) for key, stay in stays_at(store, connection, since).items()}
    there = set(lives)
    for names in in_batches([key for key in others if key not in lives]):
        for record, _ in store.scan(connection, Query(kinds=("started",), workloads=names)):
            _started(lives, record)
    for record, _ in store.scan(connection, Query(kinds=("started",), since=since, until=until)):
        _started(lives, record)
    for names in in_batches([key for key in lives if key not in there]):
        for record, _ in store.scan(connection, Query(kinds=("submitted",), workloads=names)):
            lives[record.workload or ""].asked = record.payload.get("ask") or {}
    for names in in_batches(list(lives)):
        for record, _ in store.scan(connection, Query(kinds=("ended",), workloads=names, since=since)):
            _ended(lives[record.workload or ""], record)
    return lives


def life_of(stay: Stay, at: int) -> LifeLine:
    """Give the life of a workload that is there; of one that runs, whose start is not known, it is taken to be now."""
    started = at if stay.started is None and stay.tasks else stay.started
    return LifeLine(stay.queue, stay.submitted, started, asked=stay.fields.get("ask") or {})


def _started(lives: dict[str, LifeLine], record: HistoryRecord) -> None:
    """Note a first start."""
    if not record.payload.get("again"):
        life = lives.setdefault(record.workload or "", LifeLine(record.queue or "", record.at - record.value))
        life.started = record.at if life.started is None else life.started


def _ended(life: LifeLine, record: HistoryRecord) -> None:
    """Note the first end after the start."""
    if life.ended is None and record.at >= (life.submitted if life.started is None else life.started):
        life.ended = record.at
