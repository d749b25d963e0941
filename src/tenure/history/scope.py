"""Whose records a question sees: where several clusters or node pools write one history, each can be read by itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from sqlalchemy import ColumnElement, Connection, FromClause, select

from tenure.history.record import Origin
from tenure.history.schema import SOURCES, USAGE, records_table
from tenure.model.values.problems import printable

OPTION: Final = "tenure_scope"
"""The execution option of a connection that holds its scope."""

MOST_NAMED: Final = 10
"""Clusters and node pools that a message names."""


class Scope(NamedTuple):
    """A cluster, and a node pool; None: whichever."""

    cluster: str | None = None
    pool: str | None = None

    def includes(self, origin: Origin) -> bool:
        """Whether it is the cluster and the node pool of an origin."""
        return self.cluster in {None, origin.cluster} and self.pool in {None, origin.pool}

    def __str__(self) -> str:
        """Name it for a message."""
        cluster = "any cluster" if self.cluster is None else f"the cluster {self.cluster}"
        return cluster if self.pool is None else f"{cluster} and the node pool {self.pool or 'without a name'}"

    @property
    def is_everything(self) -> bool:
        """Whether it leaves nothing out."""
        return self.cluster is None and self.pool is None


EVERYTHING_THERE: Final = Scope()
"""All clusters and node pools."""

NOTHING: Final = Scope("")
"""No cluster: none is without a name."""


def records_seen(connection: Connection, month: int) -> FromClause:
    """Give the records of a month that a connection sees, with the columns of their table."""
    table, wanted = records_table(month), _wanted(connection)
    return table if wanted is None else select(table).where(table.c.source.in_(wanted)).subquery()


def usage_seen(connection: Connection) -> FromClause:
    """Give the sums by the hour that a connection sees, with the columns of `USAGE`."""
    wanted = _wanted(connection)
    return USAGE if wanted is None else select(USAGE).where(USAGE.c.source.in_(wanted)).subquery()


def origins_seen(connection: Connection) -> list[tuple[int, Origin]]:
    """Give the clusters and node pools that a connection sees, with their numbers, in the order in which they came."""
    scope: Scope = connection.get_execution_options().get(OPTION, EVERYTHING_THERE)
    rows = connection.execute(select(SOURCES.c.id, SOURCES.c.cluster, SOURCES.c.pool).order_by(SOURCES.c.id)).all()
    found = [(number, Origin(cluster, pool)) for number, cluster, pool in rows]
    return [(number, origin) for number, origin in found if scope.includes(origin)]


def names_of(origins: Sequence[Origin]) -> str:
    """Name clusters and node pools for a message: the first of many."""
    names = [printable(f"{o.cluster} (pool {o.pool})" if o.pool else o.cluster) for o in origins[:MOST_NAMED]]
    more = len(origins) - len(names)
    return ", ".join(names) + (f" and {more:,} more" if more else "")


def _wanted(connection: Connection) -> ColumnElement[int] | None:
    """Give the question for the numbers of what a connection sees; None where that is everything."""
    scope: Scope = connection.get_execution_options().get(OPTION, EVERYTHING_THERE)
    if scope.is_everything:
        return None
    query = select(SOURCES.c.id)
    for column, value in ((SOURCES.c.cluster, scope.cluster), (SOURCES.c.pool, scope.pool)):
        query = query if value is None else query.where(column == value)
    return query.scalar_subquery()
