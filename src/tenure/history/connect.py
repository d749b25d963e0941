"""Opening SQLite files and PostgreSQL servers, and what their errors mean in plain words."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import quote

from sqlalchemy import Engine, create_engine, event
from sqlalchemy.engine import URL, Connection, make_url
from sqlalchemy.exc import ArgumentError, DataError, DBAPIError, SQLAlchemyError
from sqlalchemy.pool import QueuePool

from tenure.history.address import file_of, is_server, shown, wrong_file
from tenure.history.errors import HistoryError, UnwritableError, line_of_error, meaning_of
from tenure.model.values.problems import InputProblem, InvalidInputError

LOCKED_SECONDS: Final = 5.0
"""For so long a write waits for another process that writes the same file."""

_SILENCE: Final = {
    "keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3, "tcp_user_timeout": 20_000,
}  # fmt: skip
"""A connection whose other end does not even acknowledge counts as broken after 20 to 25 seconds."""


def place_of(address: str) -> str:
    """Give an address for messages: without a password."""
    return shown(file_of(address))


def connect(address: str, *, write: bool, new: bool) -> Engine:
    """Make the engine of an address; nothing is asked of it yet. ``new``: where there is no file, it is made.

    Raises
    ------
    InvalidInputError
        The address can be none, or names a file that is not there and is not to be made.
    ModuleNotFoundError
        The address is a server's, and psycopg is not installed.
    """
    if not is_server(address):
        return _file(file_of(address), write=write, new=new)
    try:
        url = make_url(address).set(drivername="postgresql+psycopg")
    except (ArgumentError, ValueError):
        problem = "is no address; write FILE or postgresql://USER@HOST/DATABASE"
        raise InvalidInputError([InputProblem(shown(address), 0, "", problem)]) from None
    if "@" in (url.host or ""):
        problem = "is no address: a second @ stands before the host; in a password write %40 for @"
        raise InvalidInputError([InputProblem(shown(address), 0, "", problem)])
    return _server(url, write=write)


def name_of(address: str) -> str:
    """Give what a history may be called before everybody: its file, or its database alone.

    A server's address may have a user and a password before its host, and also behind a question mark.
    """
    if not is_server(address):
        return file_of(address)
    try:
        return make_url(address).database or "a database"
    except (ArgumentError, ValueError):
        return "a database"


def _server(url: URL, *, write: bool) -> Engine:
    options = {"connect_timeout": 5, "options": "-c statement_timeout=60000 -c lock_timeout=10000", **_SILENCE}
    engine = create_engine(url, connect_args=options, pool_pre_ping=True, pool_size=4, max_overflow=4)
    if not write:
        engine = engine.execution_options(postgresql_readonly=True)
    return engine


def _file(path: str, *, write: bool, new: bool) -> Engine:
    problem = wrong_file(path, new=new)
    if problem:
        raise InvalidInputError([InputProblem(shown(path), 0, "", problem)])
    if write and Path(path).exists() and not _may_write(Path(path)):
        raise HistoryError(path, "may only be read here; give the right to write it and its folder", temporary=True)
    mode = "ro" if not write else "rwc" if new else "rw"
    uri = f"file:{quote(str(Path(path).absolute()))}?mode={mode}"
    if not write and not Path(f"{path}-wal").exists() and not _may_write(Path(path).absolute().parent):
        uri += "&immutable=1"  # nobody can be writing it, and SQLite could not make the file it needs to find that out

    def open_file() -> sqlite3.Connection:
        connection = sqlite3.connect(
            uri, uri=True, timeout=LOCKED_SECONDS, isolation_level=None, check_same_thread=False
        )
        if write:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=NORMAL")
            connection.execute("PRAGMA secure_delete=ON")  # a name that is taken out, by age too, stays in no free page
        connection.execute("PRAGMA cache_size=-65536")
        return connection

    engine = create_engine("sqlite://", creator=open_file, poolclass=QueuePool)
    event.listen(engine, "begin", _begin)
    return engine


def _begin(connection: Connection) -> None:
    writes = connection.get_execution_options().get("tenure_writes")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _may_write(path: Path) -> bool:
    import os  # noqa: PLC0415  one use

    return os.access(path, os.W_OK)


@contextmanager
def translated(place: str) -> Iterator[None]:
    """Tell what goes wrong inside as a `HistoryError`; what is wrong with a record alone as an `UnwritableError`."""
    try:
        yield
    except DataError as error:
        raise UnwritableError(line_of_error(error.orig or error)) from error
    except DBAPIError as error:
        raise meaning_of(place, error.orig or error) from error
    except sqlite3.Error as error:
        raise meaning_of(place, error) from error
    except SQLAlchemyError as error:
        raise HistoryError(place, line_of_error(error)) from error
