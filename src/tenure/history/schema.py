"""The tables of a history, one schema for SQLite and PostgreSQL.

``tenure_records_YYYYMM`` hold the records of one month (UTC), append-only; a month past its retention is dropped whole.
``tenure_usage`` is made from the records of usage and can be made again from them: what each queue held by the
hour, so that a statement over months reads hundreds of rows and not a million. ``tenure_sources`` numbers the clusters
and node pools, ``tenure_months`` names the tables of records, and ``tenure_history`` has the version of the schema.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from sqlalchemy import BigInteger, Column, Index, Integer, LargeBinary, MetaData, SmallInteger, Table, Text

METADATA: Final = MetaData()

META: Final = Table("tenure_history", METADATA, Column("key", Text, primary_key=True), Column("value", Text))
SOURCES: Final = Table(
    "tenure_sources", METADATA,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("cluster", Text, nullable=False), Column("pool", Text, nullable=False),
    Index("tenure_sources_names", "cluster", "pool", unique=True),
)  # fmt: skip
MONTHS: Final = Table(
    "tenure_months", METADATA,
    Column("month", Integer, primary_key=True, autoincrement=False),
)  # fmt: skip
USAGE: Final = Table(
    "tenure_usage", METADATA,
    Column("source", Integer, primary_key=True, autoincrement=False),
    Column("since", BigInteger, primary_key=True, autoincrement=False),
    Column("queue", Text, primary_key=True),
    Column("until", BigInteger, nullable=False),
    Column("payload", Text, nullable=False),
)  # fmt: skip


@cache
def records_table(month: int) -> Table:
    """Give the table of a month, a number such as 202611."""
    name = f"tenure_records_{month}"
    table = Table(
        name, MetaData(),
        Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
        Column("key", LargeBinary(16), nullable=False),
        Column("at", BigInteger, nullable=False),
        Column("source", Integer, nullable=False),
        Column("plan", Text, nullable=False),
        Column("sequence", BigInteger, nullable=False),
        Column("version", SmallInteger, nullable=False),
        Column("kind", Text, nullable=False),
        Column("workload", Text),
        Column("queue", Text),
        Column("cause", Text),
        Column("beneficiary", Text),
        Column("value", BigInteger, nullable=False),
        Column("payload", Text, nullable=False),
    )  # fmt: skip
    return _index(table)


def _index(table: Table) -> Table:
    """Index a month: by key, by kind and time, by workload, and by whom it was done for."""
    name, c = table.name, table.c
    Index(f"{name}_key", c.key, unique=True)
    Index(f"{name}_kind", c.kind, c.at)
    for column in (c.workload, c.beneficiary):
        there = column.is_not(None)
        Index(f"{name}_{column.name}", column, c.at, sqlite_where=there, postgresql_where=there)
    return table
