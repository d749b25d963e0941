"""What is kept for how long, and what is taken out: by age, and on a person's wish."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final

from sqlalchemy import Connection, delete, func, select, update

from tenure.history.months import month_start, next_month
from tenure.history.record import KINDS, encode
from tenure.history.rollup import HOUR
from tenure.history.schema import MONTHS, USAGE, records_table
from tenure.history.store import HistoryStore, months_of
from tenure.model.duration import DAY

KEPT: Final = 396 * DAY
"""Thirteen months, in µs: for so long records are kept where nothing else is said."""

PERSONAL: Final = ("user", "forUser")
"""Fields of payloads that name a person."""

FORGOTTEN: Final = "(forgotten)"
"""What stands where a user's name stood."""


def prune(store: HistoryStore, now: int, keep: Mapping[str, int] | None = None, *, default: int = KEPT) -> int:
    """Take out what is older than it is to be kept; gives how many records went.

    Of usage whole hours go, so that the records that are left are those that the sums by the hour are made of. What the
    cluster was when the oldest of what is left happened stays as well. So every statement of a time from which
    everything is left says what it said before.

    Parameters
    ----------
    store
        What is pruned.
    now
        The time that ages count from, in µs since the epoch.
    keep
        By kind of record, for how long, in µs; of a usage record also its sums by the hour.
    default
        For how long what is not named there.

    Raises
    ------
    HistoryError
        The store cannot be written; what was taken out up to then stays out.
    """
    limits = {kind: now - (keep or {}).get(kind, default) for kind in KINDS}
    limits["usage"] -= limits["usage"] % HOUR
    with store.reading() as connection:
        months = months_of(connection)
        limits["origin"] = _last_origin(connection, months, limits["origin"])
    gone = 0
    for month in months:  # a transaction each: others may write between them
        with store.writing() as connection:
            gone += _prune_month(connection, month, limits)
    return gone


def _last_origin(connection: Connection, months: Sequence[int], limit: int) -> int:
    """Give when the cluster was recorded that was in force at a time: what is younger is read with it."""
    for month in reversed(months):
        c = records_table(month).c
        last = connection.execute(select(func.max(c.at)).where(c.kind == "origin", c.at <= limit)).scalar()
        if last is not None:
            return int(last)
    return limit


def _prune_month(connection: Connection, month: int, limits: Mapping[str, int]) -> int:
    table = records_table(month)
    end = month_start(next_month(month))
    since, until = USAGE.c.since, USAGE.c.until
    connection.execute(delete(USAGE).where(since >= month_start(month), since < end, until <= limits["usage"]))
    if end <= min(limits.values()):
        gone = connection.execute(select(func.count()).select_from(table)).scalar_one()
        table.drop(connection)
        connection.execute(delete(MONTHS).where(MONTHS.c.month == month))
        return int(gone)
    gone = 0
    for kind, limit in limits.items():
        if limit > month_start(month):
            old = table.c.at + table.c.value <= limit if kind == "usage" else table.c.at < limit
            gone += connection.execute(delete(table).where(table.c.kind == kind, old)).rowcount
    return int(gone)


def forget_user(store: HistoryStore, user: str) -> int:
    """Take a user's name out of all records; gives in how many it stood. What happened stays.

    This alone changes what is written: a person's right to it stands above the log.

    Raises
    ------
    HistoryError
        The store cannot be written.
    """
    with store.reading() as connection:
        months = months_of(connection)
    changed = 0
    for month in months:
        table = records_table(month)
        with store.writing() as connection:
            named = table.c.payload.contains(encode({"": user}).removeprefix('{"":').removesuffix("}"), autoescape=True)
            for row in connection.execute(select(table.c.id, table.c.payload).where(named)).all():
                fields = json.loads(row.payload)
                if user not in [fields.get(name) for name in PERSONAL]:
                    continue
                fields |= {name: FORGOTTEN for name in PERSONAL if fields.get(name) == user}
                connection.execute(update(table).where(table.c.id == row.id).values(payload=encode(fields)))
                changed += 1
    return changed
