"""How a node pool was configured at a time, as its scheduler told it: its cluster without workloads."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, select

from tenure.history.schema import records_table
from tenure.history.store import months_between


def configured(connection: Connection, source: int, until: int | None = None) -> Mapping[str, Any] | None:
    """Give a cluster as its file would say it, as last told before a time (µs since the epoch), else as first told.

    ``source`` is the number of the cluster and node pool in the store. None: it was never told.
    """
    for newest, begin, end in ((True, None, until), (False, until, None)):
        for month in months_between(connection, begin, end, newest=newest):
            c = records_table(month).c
            query = select(c.payload).where(c.kind == "origin", c.source == source)
            if until is not None:
                query = query.where(c.at < until) if newest else query.where(c.at >= until)
            order = (c.at.desc(), c.id.desc()) if newest else (c.at, c.id)
            found = connection.execute(query.order_by(*order).limit(1)).scalar()
            if found is not None:
                plain = json.loads(found).get("cluster")
                return plain if isinstance(plain, Mapping) else None
    return None
