"""A store of history: records are appended, each once, and read by what they are about."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from secrets import token_hex
from typing import Any, Final

from sqlalchemy import Connection, FromClause, Select, Table, delete, func, insert, select, union_all

from tenure.history import migrations
from tenure.history.connect import connect, place_of
from tenure.history.database import HistoryDatabase
from tenure.history.errors import HistoryError
from tenure.history.months import by_month, month_of, month_start
from tenure.history.query import EVERYTHING, Page, Query, conditions, position, token
from tenure.history.record import KINDS, SCHEMA, Draft, HistoryRecord, Origin, insertion
from tenure.history.rollup import Rollup
from tenure.history.schema import META, MONTHS, SOURCES, records_table
from tenure.history.scope import origins_seen, records_seen
from tenure.history.usage_table import write_sums

AT_ONCE: Final = 20_000
"""Records that are written in one transaction."""

IN_PARTS: Final = {"yield_per": 64}
"""Option of a question with a long answer: so many rows are in memory at a time, however many there are.

Few, because a record may be large: that of a cluster of 10,000 nodes has megabytes.
"""

BEGIN: Final = "begin"
"""Key of the time from which on a pruned store has what happened."""

CHANGED: Final = "changed"
"""Key of a mark that is another one whenever something was taken out or written over."""

ASKED: Final = 500
"""Keys, or names of workloads, that are looked up in one question."""


@dataclass(frozen=True, slots=True)
class HistoryInfo:
    """What a store holds: the version of its schema, its first and last time (µs), how many records, whose."""

    schema: int
    since: int | None
    until: int | None
    records: int
    origins: tuple[Origin, ...]


class HistoryStore(HistoryDatabase):
    """An open store: records are appended and read. Each question takes a connection of its own."""

    # -- writing ----------------------------------------------------------------------------------------------------

    def append(self, origin: Origin, drafts: Sequence[Draft]) -> int:
        """Append records; those whose key is there already are left out. Gives how many were new.

        Parameters
        ----------
        origin
            Whose history it is.
        drafts
            The records, in the order of time where that is possible.
        """
        written = 0
        for begin in range(0, len(drafts), AT_ONCE):
            with self.writing() as connection:
                written += _append(connection, self.place, origin, drafts[begin : begin + AT_ONCE])
        return written

    def append_alone(self, origin: Origin, drafts: Sequence[Draft]) -> int | None:
        """Append records as `append` does, unless the store has others, and not the first of these: None then.

        Of two writers with different records one writes all of its own, and the other nothing.
        """
        with self.writing() as connection:
            if not _is_empty(connection) and not _has(connection, drafts[0]):
                return None
            written = _append(connection, self.place, origin, drafts[:AT_ONCE])
        return written + self.append(origin, drafts[AT_ONCE:])

    # -- reading ----------------------------------------------------------------------------------------------------

    def info(self) -> HistoryInfo:
        """Say what the store holds."""
        with self.reading() as connection:
            schema = migrations.version_of(connection) or 0
            count = _count(connection, EVERYTHING)
        since, until = self.span() or (None, None)
        return HistoryInfo(schema, since, until, count, tuple(self.origins()))

    def origins(self, workload: str | None = None) -> list[Origin]:
        """Give of whom there are records, in the order in which they came; ``workload``: records of that workload."""
        with self.reading() as connection:
            found = origins_seen(connection)
            if workload is not None:
                sources = set[int]()
                for month in months_of(connection):
                    c = records_seen(connection, month).c
                    sources.update(
                        connection.execute(select(c.source).where(c.workload == workload).distinct()).scalars()
                    )
                found = [(number, origin) for number, origin in found if number in sources]
        return [origin for _, origin in found]

    def count(self, query: Query = EVERYTHING) -> int:
        """Count records; where they are chosen by kind and time alone, only an index is read."""
        with self.reading() as connection:
            return _count(connection, query)

    def span(self) -> tuple[int, int] | None:
        """Give the first and the last time of the store in µs; None where it is empty.

        Of a pruned one the first is that from which things were kept: what is older is only left because it is needed.
        """
        with self.reading() as connection:
            months = months_of(connection)
            first, last = None, None
            for month in months:
                first = connection.execute(_edge(records_seen(connection, month), newest=False)).scalar()
                if first is not None:
                    break
            for month in reversed(months):
                table = records_seen(connection, month)
                last = connection.execute(_edge(table, newest=True)).scalar()
                if last is not None:
                    usage = select(table.c.at + table.c.value).where(table.c.kind == "usage")
                    ends = connection.execute(usage.order_by(table.c.at.desc()).limit(1000)).scalars().all()
                    last = max([last, *ends])
                    break
            begin = begin_of(connection)
        if first is None or last is None:
            return None
        return (max(first, begin) if begin is not None and begin <= last else first), last

    def records(
        self,
        query: Query = EVERYTHING,
        *,
        limit: int = 100,
        after: str | None = None,
        newest: bool = False,
    ) -> Page:
        """Give records in the order of time, at most ``limit``, from where the page before ended."""
        with self.reading() as connection:
            found = list(self.scan(connection, query, limit=limit + 1, after=after, newest=newest))
        more = token(found[limit - 1]) if len(found) > limit else None
        return Page([record for record, _ in found[:limit]], more)

    def story(
        self, workload: str, *, limit: int = 10_000, newest: bool = False, until: int | None = None
    ) -> list[HistoryRecord]:
        """Give what happened to a workload and what was done for it, in order; at most ``limit``, first or newest.

        ``until`` (µs since the epoch): only what was before.
        """
        with self.reading() as connection:
            own = self.scan(connection, Query(workload=workload, until=until), limit=limit, newest=newest)
            caused = self.scan(connection, Query(beneficiary=workload, until=until), limit=limit, newest=newest)
            found = {number: record for record, number in (*own, *caused)}
        numbers = sorted(found)
        return [found[number] for number in (numbers[-limit:] if newest else numbers[:limit])]

    def scan(
        self,
        connection: Connection,
        query: Query,
        *,
        limit: int | None = None,
        after: str | None = None,
        newest: bool = False,
    ) -> Iterator[tuple[HistoryRecord, tuple[int, int]]]:
        """Go through records, each with its place (time and number), in the order of time or from the newest on."""
        origins = dict(origins_seen(connection))
        begin = None if after is None else position(after)
        left = limit
        for month in months_between(connection, query.since, query.until, newest=newest):
            if begin is not None and (month > month_of(begin[0]) if newest else month < month_of(begin[0])):
                continue
            table = records_seen(connection, month)
            statement = _ordered(select(table), table, newest=newest)
            for condition in conditions(table, query, begin, newest=newest):
                statement = statement.where(condition)
            if left is not None:
                statement = statement.limit(left)
            options = IN_PARTS if left is None or left > AT_ONCE else {}
            for row in connection.execute(statement, execution_options=options):
                yield _record(row, origins), (row.at, row.id)
                left = None if left is None else left - 1
            if left == 0:
                return


def in_batches(names: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Give names in as many parts as it takes to ask for them."""
    for begin in range(0, len(names), ASKED):
        yield tuple(names[begin : begin + ASKED])


def open_history(address: str, *, write: bool = False, new: bool = True) -> HistoryStore:
    """Open a store: ``FILE``, ``sqlite:///FILE`` or ``postgresql://USER@HOST/DATABASE``.

    Where it is to be written, its tables are brought to the present version, or made, unless it may not be ``new``.

    Raises
    ------
    InvalidInputError
        There is no such file, or the address can be none.
    HistoryError
        It cannot be reached, read or written, is no history, or was written by a later Tenure.
    """
    store = HistoryStore(connect(address, write=write, new=write and new), place_of(address), write=write)
    try:
        if write:
            with store.writing() as connection:
                store.is_new = migrations.prepare(connection, store.place, new=new)
        else:
            with store.reading() as connection:
                _check_current(migrations.version_of(connection), store.place)
    except BaseException:
        store.engine.dispose()
        raise
    return store


def _check_current(version: int | None, place: str) -> None:
    found = migrations.check_version(version, place)
    if found < SCHEMA:
        what = f"is of an earlier Tenure (schema {found}); bring it to the present one with: tenure history migrate"
        raise HistoryError(place, what)


def begin_of(connection: Connection) -> int | None:
    """Give from when on (µs since the epoch) a store has what happened; None where nothing older was taken out."""
    found = connection.execute(select(META.c.value).where(META.c.key == BEGIN)).scalar()
    return None if found is None else int(found)


def set_begin(connection: Connection, at: int) -> None:
    """Note from when on (µs since the epoch) a store has what happened; what is older is left from what was before."""
    connection.execute(delete(META).where(META.c.key == BEGIN))
    connection.execute(insert(META).values(key=BEGIN, value=str(at)))


def changed_of(connection: Connection) -> str:
    """Give the mark of what was taken out of a store or written over last; empty where nothing was."""
    return connection.execute(select(META.c.value).where(META.c.key == CHANGED)).scalar() or ""


def note_changed(connection: Connection) -> None:
    """Note that something is taken out or written over: whoever has read it before has to read it again."""
    connection.execute(delete(META).where(META.c.key == CHANGED))
    connection.execute(insert(META).values(key=CHANGED, value=token_hex(8)))


def months_of(connection: Connection) -> list[int]:
    """Give the months of which there are records, in order."""
    return list(connection.execute(select(MONTHS.c.month).order_by(MONTHS.c.month)).scalars())


def months_between(connection: Connection, since: int | None, until: int | None, *, newest: bool = False) -> list[int]:
    """Give the months that a window (µs, the end left out) touches."""
    first = None if since is None else month_of(since)
    found = [
        m for m in months_of(connection) if (first is None or m >= first) and (until is None or month_start(m) < until)
    ]
    return found[::-1] if newest else found


def _append(connection: Connection, place: str, origin: Origin, batch: Sequence[Draft]) -> int:
    migrations.check_unchanged(connection, place)
    source = _source(connection, origin)
    rollup, written = Rollup(), 0
    for month, group in by_month(batch):
        table = _month(connection, month)
        drafts = _new(connection, table, group)
        if drafts:
            mark = "%s" if connection.dialect.name == "postgresql" else "?"
            connection.exec_driver_sql(insertion(table.name, source, mark), drafts)
        for draft in drafts:
            if draft.kind == "usage":
                rollup.add(source, draft.at, draft.queue or "", draft.value, draft.payload)
        written += len(drafts)
    write_sums(connection, rollup)
    return written


def _source(connection: Connection, origin: Origin) -> int:
    columns = SOURCES.c
    query = select(columns.id).where(columns.cluster == origin.cluster, columns.pool == origin.pool)
    found = connection.execute(query).scalar()
    if found is None:
        connection.execute(insert(SOURCES).values(cluster=origin.cluster, pool=origin.pool))
        found = connection.execute(query).scalar_one()
    return int(found)


def _month(connection: Connection, month: int) -> Table:
    table = records_table(month)
    if connection.execute(select(MONTHS.c.month).where(MONTHS.c.month == month)).scalar() is None:
        table.create(connection)
        connection.execute(insert(MONTHS).values(month=month))
    return table


def _count(connection: Connection, query: Query) -> int:
    count = 0
    for month in months_between(connection, query.since, query.until):
        table = records_seen(connection, month)
        statement = select(func.count()).select_from(table).where(*conditions(table, query, None, newest=False))
        count += connection.execute(statement).scalar_one()
    return count


def _is_empty(connection: Connection) -> bool:
    """Whether there are no records at all."""
    numbers = (records_table(month).c.id for month in months_of(connection))
    return all(connection.execute(select(number).limit(1)).first() is None for number in numbers)


def _has(connection: Connection, draft: Draft) -> bool:
    """Whether a record is there."""
    month = month_of(draft.at)
    if month not in months_of(connection):
        return False
    key = records_table(month).c.key
    return connection.execute(select(key).where(key == draft.key)).first() is not None


@lru_cache(maxsize=256)
def _edge(table: FromClause, *, newest: bool) -> Select[Any]:
    """Ask for the first or last time of a month, kind by kind: so the index says it.

    Each table is asked again and again, and to make the question takes longer than to answer it.
    """
    c = table.c
    edges = [select((func.max(c.at) if newest else func.min(c.at)).label("at")).where(c.kind == kind) for kind in KINDS]
    found = union_all(*edges).subquery().c.at
    return select(func.max(found) if newest else func.min(found))


def _ordered(statement: Select[Any], table: FromClause, *, newest: bool) -> Select[Any]:
    if newest:
        return statement.order_by(table.c.at.desc(), table.c.id.desc())
    return statement.order_by(table.c.at, table.c.id)


def _record(row: Any, origins: dict[int, Origin]) -> HistoryRecord:
    origin = origins.get(row.source, Origin(""))
    return HistoryRecord(
        row.at, row.kind, row.workload, row.queue, row.cause, row.beneficiary, row.value, json.loads(row.payload),
        origin.cluster, origin.pool, row.plan, row.sequence, row.version, bytes(row.key),
    )  # fmt: skip


def _new(connection: Connection, table: Table, drafts: list[Draft]) -> list[Draft]:
    """Leave out what is there already, and what is there twice among themselves."""
    known: set[bytes] = set()
    keys = [d.key for d in drafts]
    for begin in range(0, len(keys), ASKED):
        query = select(table.c.key).where(table.c.key.in_(keys[begin : begin + ASKED]))
        known.update(bytes(key) for key in connection.execute(query).scalars())
    found = []
    for draft in drafts:
        if draft.key not in known:
            known.add(draft.key)
            found.append(draft)
    return found


def drafts_sorted(drafts: Iterable[Draft]) -> list[Draft]:
    """Give records in the order of time; those of one time stay in theirs."""
    return sorted(drafts, key=lambda draft: draft.at)
