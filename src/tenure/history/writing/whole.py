"""A new SQLite file with a whole history in it, made at once by `sqlite3` alone: what a simulation writes.

The file is made under a name of its own, without a journal and indexed when all is in it, and takes its place when
it is complete; a process that is killed on the way leaves no history rather than a part of one. What is in it is what
`tenure.history.store` would have written, table by table.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from tenure.history.errors import HistoryError, meaning_of
from tenure.history.months import by_month
from tenure.history.record import SCHEMA, DraftRow, Origin, insertion
from tenure.history.rollup import Rollup, UsageRow

TABLES: Final = """
CREATE TABLE tenure_history ("key" TEXT NOT NULL, value TEXT, PRIMARY KEY ("key"));
CREATE TABLE tenure_sources (id INTEGER NOT NULL, cluster TEXT NOT NULL, pool TEXT NOT NULL, PRIMARY KEY (id));
CREATE UNIQUE INDEX tenure_sources_names ON tenure_sources (cluster, pool);
CREATE TABLE tenure_months (month INTEGER NOT NULL, PRIMARY KEY (month));
CREATE TABLE tenure_usage (source INTEGER NOT NULL, since BIGINT NOT NULL, queue TEXT NOT NULL, until BIGINT NOT NULL,
  payload TEXT NOT NULL, PRIMARY KEY (source, since, queue))
"""
"""What every SQLite history has; a test holds them to the schema."""

MONTH: Final = """
CREATE TABLE {0} (id INTEGER NOT NULL, "key" BLOB NOT NULL, at BIGINT NOT NULL, source INTEGER NOT NULL,
  "plan" TEXT NOT NULL, sequence BIGINT NOT NULL, version SMALLINT NOT NULL, kind TEXT NOT NULL, workload TEXT,
  queue TEXT, cause TEXT, beneficiary TEXT, value BIGINT NOT NULL, payload TEXT NOT NULL, PRIMARY KEY (id))
"""
INDEXES: Final = """
CREATE INDEX {0}_kind ON {0} (kind, at);
CREATE UNIQUE INDEX {0}_key ON {0} ("key");
CREATE INDEX {0}_beneficiary ON {0} (beneficiary, at) WHERE beneficiary IS NOT NULL;
CREATE INDEX {0}_workload ON {0} (workload, at) WHERE workload IS NOT NULL
"""
"""What a month has, and what it is indexed by once all is in it."""

SOURCE: Final = 1


def may_be_made(path: str) -> None:
    """Find out before a long simulation whether a file can be made there.

    Raises
    ------
    HistoryError
        It cannot.
    """
    part = _part(path)
    with _told(path):
        try:
            os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644))
        finally:
            part.unlink(missing_ok=True)


def write_whole(path: str, origin: Origin, drafts: Iterable[DraftRow], sums: Iterable[UsageRow] | None = None) -> bool:
    """Make a history of records none of which is there twice; False where a file has appeared at its place meanwhile.

    ``sums`` are those by the hour, where they are known already.

    Raises
    ------
    HistoryError
        It cannot be written; nothing is left of it.
    """
    part = _part(path)
    with _told(path):
        try:
            with closing(sqlite3.connect(part, isolation_level=None)) as connection:
                _fill(connection, origin, drafts, sums)
            with part.open("rb") as file:
                os.fsync(file.fileno())
            return _take_place(part, Path(path))
        finally:
            part.unlink(missing_ok=True)


def _part(path: str) -> Path:
    """Name the file under which it is made: of this process, beside its place."""
    return Path(f"{path}.{os.getpid()}.part")


@contextmanager
def _told(path: str) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise meaning_of(path, error) from error
    except HistoryError:
        raise
    except OSError as error:
        raise HistoryError(path, f"cannot be written: {error.strerror}", temporary=True) from error


def _fill(
    connection: sqlite3.Connection, origin: Origin, drafts: Iterable[DraftRow], sums: Iterable[UsageRow] | None
) -> None:
    for pragma in (
        "page_size=16384",  # a tenth less to do than with pages of 4096 bytes, for rows are long and all are written
        "journal_mode=OFF", "synchronous=OFF", "locking_mode=EXCLUSIVE", "cache_size=-65536",
    ):  # fmt: skip
        connection.execute(f"PRAGMA {pragma}")
    connection.execute("BEGIN")
    _execute(connection, TABLES)
    connection.execute("INSERT INTO tenure_history VALUES ('schema', ?)", (str(SCHEMA),))
    connection.execute("INSERT INTO tenure_sources VALUES (?, ?, ?)", (SOURCE, origin.cluster, origin.pool))
    rollup = Rollup()
    months = set()
    for month, group in by_month(drafts):
        table = f"tenure_records_{month}"
        if month not in months:
            months.add(month)
            _execute(connection, MONTH.format(table))
        connection.executemany(insertion(table, SOURCE, "?", unique=True), group)
        if sums is None:
            for draft in group:
                if draft[1] == "usage":
                    rollup.add(SOURCE, draft[0], draft[3] or "", draft[6], draft[7])
    for month in sorted(months):
        _execute(connection, INDEXES.format(f"tenure_records_{month}"))
    connection.executemany("INSERT INTO tenure_months VALUES (?)", [(month,) for month in sorted(months)])
    connection.executemany("INSERT INTO tenure_usage VALUES (?, ?, ?, ?, ?)", rollup.told() if sums is None else sums)
    connection.execute("COMMIT")
    connection.execute("PRAGMA locking_mode=NORMAL")
    connection.execute("PRAGMA journal_mode=WAL")


def _execute(connection: sqlite3.Connection, statements: str) -> None:
    for statement in statements.split(";\n"):
        connection.execute(statement)


def _take_place(part: Path, path: Path) -> bool:
    """Give a file its name, if nothing has that name."""
    try:
        os.link(part, path)
    except FileExistsError:
        return False
    except OSError:  # a file system without links
        if path.exists():
            return False
        part.rename(path)
    folder = os.open(path.absolute().parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
    return True
