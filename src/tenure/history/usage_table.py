"""The sums by the hour, as they are kept in a store."""

from __future__ import annotations

import json

from sqlalchemy import Connection, and_, bindparam, delete, insert, select

from tenure.history.rollup import Rollup
from tenure.history.schema import USAGE


def write_sums(connection: Connection, rollup: Rollup) -> None:
    """Add sums to those that are there, and forget them; the caller holds the lock."""
    if not rollup.rows:
        return
    columns = USAGE.c
    mine = set(rollup.rows)
    first = min(since for _, since, _ in mine)
    last = max(since for _, since, _ in mine)
    query = select(columns.source, columns.since, columns.queue, columns.until, columns.payload)
    there = connection.execute(query.where(and_(columns.since >= first, columns.since <= last))).all()
    stale = []
    for source, since, queue, until, payload in there:
        if (source, since, queue) in mine:
            rollup.sum((source, since, queue), until, json.loads(payload))
            stale.append({"s": source, "t": since, "q": queue})
    if stale:
        gone = and_(columns.source == bindparam("s"), columns.since == bindparam("t"), columns.queue == bindparam("q"))
        connection.execute(delete(USAGE).where(gone), stale)
    names = ("source", "since", "queue", "until", "payload")
    connection.execute(insert(USAGE), [dict(zip(names, row, strict=True)) for row in rollup.told()])
    rollup.rows.clear()
