"""What is kept for how long, and what is taken out: by age, and on a person's wish."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from sqlalchemy import BigInteger, Column, Connection, MetaData, Table, and_, delete, func, insert, select, update

from tenure.history.errors import HistoryError
from tenure.history.months import month_end, month_start
from tenure.history.reading.views import LIFE, present_at
from tenure.history.record import KINDS, encode
from tenure.history.rollup import HOUR
from tenure.history.schema import MONTHS, SOURCES, USAGE, records_table
from tenure.history.store import AT_ONCE, HistoryStore, begin_of, in_batches, months_of, note_changed, set_begin
from tenure.model.values.duration import DAY

KEPT: Final = 396 * DAY
"""Thirteen months, in µs: for so long records are kept where nothing else is said."""

PERSONAL: Final = ("user", "forUser")
"""Fields of payloads that name a person."""

EVICTIONS: Final = "evictions"
"""The eviction log of a cluster, with the labels of the pods; earlier versions wrote it for a plan."""

FORGOTTEN: Final = "(forgotten)"
"""What stands where a user's name stood."""

_STILL_READ: Final = "what they were is in its log while another process reads it; do this again when that has ended"

_EVER: Final = -(1 << 62)
"""A time (µs since the epoch) before every record."""


@dataclass(frozen=True, slots=True)
class Retention:
    """How long records are kept.

    ``default``: in µs, for each kind that ``kinds`` does not name. What is said of records of usage holds for their
    sums by the hour as well.
    """

    default: int = KEPT
    kinds: Mapping[str, int] = field(default_factory=dict)

    def limits(self, now: int) -> dict[str, int]:
        """Give by kind the time (µs since the epoch) before which records are too old; for usage, a whole hour."""
        limits = {kind: max(_EVER, now - self.kinds.get(kind, self.default)) for kind in KINDS}
        limits["usage"] -= limits["usage"] % HOUR
        return limits


def prune(store: HistoryStore, now: int, retention: Retention) -> int:
    """Take out what is older at ``now`` (µs since the epoch) than it is to be kept; gives how many records went.

    Raises
    ------
    HistoryError
        The store cannot be written; what was taken out up to then stays out.
    """
    return sum(pruning(store, now, retention))


def pruning(store: HistoryStore, now: int, retention: Retention) -> Iterator[int]:
    """Take out what is too old, part by part; gives after each part how many records went with it.

    A part is one short transaction, so that others may write between them.

    Of usage whole hours go, so that the records that are left are those that the sums by the hour are made of. What the
    cluster was when the oldest of what is left happened stays as well, and of workloads that are still there then, when
    they came and where they run. So every statement of a time from which everything is left says what it said before,
    and so does a replay of it.

    Raises
    ------
    HistoryError
        The store cannot be written; what was taken out up to then stays out.
    """
    limits = retention.limits(now)
    with store.reading() as connection:
        months = months_of(connection)
        sources = connection.execute(select(SOURCES.c.id)).scalars().all()
        needed = {month: list[int]() for month in months}
        for source in sources:
            _note_origin(connection, source, limits["origin"], needed)
            _note_present(connection, source, max(limits[kind] for kind in LIFE) - 1, needed)
    begin = min(limits.values())
    for month in months:
        is_whole, gone = month_end(month) <= begin and not needed[month], AT_ONCE
        while gone >= AT_ONCE:
            with store.writing() as connection:
                _prune_sums(connection, month, limits["usage"])
                gone = (
                    _drop(connection, month) if is_whole else _prune_records(connection, month, limits, needed[month])
                )
                known = begin_of(connection)
                set_begin(connection, begin if known is None else max(begin, known))
                if gone:
                    note_changed(connection)
            yield gone
            if is_whole:
                break  # its table is gone


def _note_origin(connection: Connection, source: int, limit: int, needed: Mapping[int, list[int]]) -> None:
    """Note the number of the record that says what a cluster was at a time: what follows is read with it."""
    for month in sorted(needed, reverse=True):
        c = records_table(month).c
        query = select(c.id).where(c.kind == "origin", c.source == source, c.at <= limit)
        last = connection.execute(query.order_by(c.at.desc(), c.id.desc()).limit(1)).scalar()
        if last is not None:
            needed[month].append(last)
            return


def _note_present(connection: Connection, source: int, at: int, needed: Mapping[int, list[int]]) -> None:
    """Note the numbers of the records that say where the workloads are that are there at a time (µs)."""
    present = present_at(connection, at, source)
    for month in needed:
        c = records_table(month).c
        for names in in_batches([name for name, since in present.items() if since < month_end(month)]):
            query = select(c.id, c.workload, c.at)
            query = query.where(c.workload.in_(names), c.kind.in_(LIFE), c.source == source)
            needed[month] += [row.id for row in connection.execute(query) if row.at >= present[row.workload]]


def _prune_sums(connection: Connection, month: int, limit: int) -> None:
    """Take out the sums of usage of a month that end by a time (µs)."""
    since, until = USAGE.c.since, USAGE.c.until
    own = and_(since >= month_start(month), since < month_end(month))
    connection.execute(delete(USAGE).where(own, until <= limit))


def _drop(connection: Connection, month: int) -> int:
    """Take out a month as a whole; gives how many records it had."""
    table = records_table(month)
    gone = connection.execute(select(func.count()).select_from(table)).scalar_one()
    table.drop(connection)
    connection.execute(delete(MONTHS).where(MONTHS.c.month == month))
    return int(gone)


def _prune_records(connection: Connection, month: int, limits: Mapping[str, int], needed: Sequence[int]) -> int:
    """Take out of a month what is too old, but for the records with the numbers that are ``needed``.

    At most as many records as are written at once; gives how many.
    """
    table = records_table(month)
    old_ones = [
        and_(table.c.kind == kind, table.c.at + table.c.value <= limit if kind == "usage" else table.c.at < limit)
        for kind, limit in limits.items()
        if limit > month_start(month)
    ]
    gone = 0
    with _numbers(connection, needed) as kept:
        for old in old_ones:
            found = select(table.c.id).where(old, table.c.id.not_in(select(kept.c.id))).limit(AT_ONCE - gone)
            gone += connection.execute(delete(table).where(table.c.id.in_(found))).rowcount
    return gone


@contextmanager
def _numbers(connection: Connection, numbers: Sequence[int]) -> Iterator[Table]:
    """Give a table of numbers, for as long as they are asked about: more of them than a question can name."""
    table = Table("tenure_kept", MetaData(), Column("id", BigInteger, primary_key=True), prefixes=["TEMPORARY"])
    table.create(connection, checkfirst=False)
    if numbers:
        connection.execute(insert(table), [{"id": number} for number in numbers])
    yield table
    table.drop(connection, checkfirst=False)


def forget_user(store: HistoryStore, user: str) -> int:
    """Take a user's name out of all records; gives in how many it stood. What happened stays.

    This alone changes what is written: a person's right to it stands above the log.

    Raises
    ------
    HistoryError
        The store cannot be written; or all is done, but another process reads what was there before for so long that
        the log beside the file keeps it. To do it again brings that out as well.
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
                without = _without(fields, user)
                if without != fields:
                    connection.execute(update(table).where(table.c.id == row.id).values(payload=encode(without)))
                    changed += 1
            if changed:
                note_changed(connection)
    if not store.settle():
        raise HistoryError(
            store.place, f"{changed:,} records no longer name the user, but {_STILL_READ}", temporary=True
        )
    return changed


def _without(value: Any, user: str, *, labels: bool = False) -> Any:
    """Give plain data with something in place of a user's name: in fields that name one, and in ``labels`` of pods."""
    if isinstance(value, list):
        return [_without(one, user, labels=labels) for one in value]
    if not isinstance(value, dict):
        return value
    return {
        name: FORGOTTEN
        if found == user and (labels or name in PERSONAL)
        else _without(found, user, labels=labels or name == EVICTIONS)
        for name, found in value.items()
    }
