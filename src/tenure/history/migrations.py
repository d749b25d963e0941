"""From every earlier version of the schema to the present one, step by step, in one transaction with their number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from sqlalchemy import Connection, insert, inspect, select, update

from tenure.history.errors import HistoryError
from tenure.history.record import SCHEMA
from tenure.history.rollup import Rollup
from tenure.history.schema import META, METADATA, MONTHS, USAGE, records_table
from tenure.history.usage_table import write_sums

LOCK: Final = 7_365_883_671
"""Number of the lock that a writer holds on a PostgreSQL server while it writes: one at a time."""


def lock(connection: Connection) -> None:
    """Let nobody else write until this transaction ends; a file is locked by its transaction already."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({LOCK})")


def version_of(connection: Connection) -> int | None:
    """Give the version of the schema that is there; None where there is none."""
    if not inspect(connection).has_table(META.name):
        return None
    found = connection.execute(select(META.c.value).where(META.c.key == "schema")).scalar()
    return int(found) if found is not None and str(found).isdecimal() else None


def prepare(connection: Connection, place: str, *, new: bool = True) -> bool:
    """Make the tables, or bring those that are there to the present version; gives whether there were none.

    Locked by the caller's transaction. Where they may not be ``new``, none are made.

    Raises
    ------
    HistoryError
        They are of a later version, or of something else, or there are none and none may be made.
    """
    version = version_of(connection)
    if version is None and new:
        if inspect(connection).has_table(META.name):
            raise HistoryError(place, "does not say which version of a history it is; name another store")
        METADATA.create_all(connection)
        connection.execute(insert(META).values(key="schema", value=str(SCHEMA)))
        return True
    for number in range(check_version(version, place), SCHEMA):
        STEPS[number](connection)
        connection.execute(update(META).where(META.c.key == "schema").values(value=str(number + 1)))
    return False


def check_unchanged(connection: Connection, place: str) -> None:
    """Refuse to write where another Tenure has changed the schema since the store was opened."""
    found = connection.execute(select(META.c.value).where(META.c.key == "schema")).scalar()
    if found != str(SCHEMA):
        what = f"its schema was changed to {found} while it was open; this Tenure writes {SCHEMA}"
        raise HistoryError(place, what, temporary=True)


def check_version(version: int | None, place: str) -> int:
    """Give the version of a history; what is none, or was written by a later Tenure, is refused."""
    if version is None:
        raise HistoryError(place, "holds no history; write one with --history, as in tenure simulate TRACE --history")
    if version > SCHEMA:
        what = f"was written by a later Tenure (schema {version}; this one knows {SCHEMA}); use that one"
        raise HistoryError(place, what)
    if version < 1:
        raise HistoryError(place, f"says it is of schema {version}, which there never was")
    return version


def _sum_usage(connection: Connection) -> None:
    """Version 1 kept usage by the minute alone, and found nobody by whom an eviction was for."""
    USAGE.create(connection, checkfirst=True)
    for month in connection.execute(select(MONTHS.c.month).order_by(MONTHS.c.month)).scalars().all():
        table = records_table(month)
        for index in sorted(table.indexes, key=lambda index: str(index.name)):
            index.create(connection, checkfirst=True)
        rollup = Rollup()
        columns = table.c
        query = select(columns.source, columns.at, columns.queue, columns.value, columns.payload)
        rows = connection.execute(query.where(columns.kind == "usage").order_by(columns.id))
        for source, at, queue, value, payload in rows:
            rollup.add(source, at, queue or "", value, payload)
        write_sums(connection, rollup)


STEPS: Final[dict[int, Callable[[Connection], None]]] = {1: _sum_usage}
"""By version: what leads from it to the next one."""
