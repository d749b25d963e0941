"""The database of a history: its connections and transactions, and whose records are seen in it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from types import TracebackType
from typing import Self

from sqlalchemy import Connection, Engine

from tenure.history import migrations
from tenure.history.connect import translated
from tenure.history.errors import HistoryError
from tenure.history.scope import EVERYTHING_THERE, NOTHING, OPTION, Scope, names_of, origins_seen
from tenure.model.values.problems import InputProblem, InvalidInputError


class HistoryDatabase:
    """The open database of a history: its transactions, and the scope that questions see. Threads may share it.

    ``is_new``: its tables were made when it was opened. Every method raises `HistoryError` where it cannot be read or
    written, and `UnwritableError` where a server cannot take what a record holds. What is written does
    not depend on ``scope``.
    """

    def __init__(self, engine: Engine, place: str, *, write: bool) -> None:
        self.engine = engine
        self.place = place
        self.writes = write
        self.is_new = False
        self.scope = EVERYTHING_THERE

    def __enter__(self) -> Self:
        """Use it in a ``with`` statement, which closes it."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()

    def close(self) -> None:
        """Give all connections back."""
        with translated(self.place):
            self.engine.dispose()

    def settle(self) -> bool:
        """Bring what is in the log beside a file into the file itself; of a server nothing has to be brought.

        Gives whether all of it was: not, where another process reads for longer than a lock is waited for.
        """
        if self.engine.dialect.name != "sqlite":
            return True
        with translated(self.place), closing(self.engine.raw_connection()) as connection:
            is_busy, _, _ = connection.cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        return not is_busy

    def see(self, scope: Scope, *, alone: bool = False, may_begin: bool = False) -> None:
        """Let questions see only the records of a cluster, or of a node pool.

        ``alone``: of several, one has to be chosen, because what is asked makes sense of one only; as long as there is
        none, nothing is seen. ``may_begin``: there need not be records of it yet.

        Raises
        ------
        InvalidInputError
            There are no records of it, or those of several; the message says of whom there are.
        """
        with translated(self.place), self.engine.connect() as connection:
            there = [origin for _, origin in origins_seen(connection)]
        found = [origin for origin in there if scope.includes(origin)]
        if not found and not scope.is_everything and not may_begin:
            what = f"has no records of {scope}; there are those of {names_of(there) or 'no cluster yet'}"
            raise InvalidInputError([InputProblem(self.place, 0, "", what)])
        if alone and len(found) > 1:
            what = f"has records of several: {names_of(found)}; name one with --cluster-name, and its --pool"
            raise InvalidInputError([InputProblem(self.place, 0, "", what)])
        chosen = Scope(found[0].cluster, found[0].pool) if found else NOTHING
        self.scope = chosen if alone else scope

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Give a connection that sees one state of the store."""
        with translated(self.place), self.engine.connect() as raw:
            connection = raw.execution_options(**{OPTION: self.scope})
            with connection.begin():
                yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Give a connection that alone writes, all or nothing."""
        if not self.writes:
            raise HistoryError(self.place, "was opened to be read")
        with translated(self.place), self.engine.connect() as raw:
            connection = raw.execution_options(tenure_writes=True)
            with connection.begin():
                migrations.lock(connection)
                yield connection
