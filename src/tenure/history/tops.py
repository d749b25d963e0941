"""Which queue at the top of the tree stands above another one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from sqlalchemy import Connection, select

from tenure.history.schema import records_table
from tenure.history.store import months_of
from tenure.model.queue import Queue


def tops(queues: Sequence[Queue]) -> Mapping[str, str]:
    """Give by queue the one at the top above it."""
    parents = {queue.name: queue.parent for queue in queues}
    found = {}
    for name in parents:
        at = name
        for _ in parents:
            above = parents.get(at)
            if above is None:
                break
            at = above
        found[name] = at
    return found


def tops_of(connection: Connection) -> Mapping[str, str]:
    """Give by queue the one at the top above it, as the last cluster that was recorded has it."""
    for month in reversed(months_of(connection)):
        c = records_table(month).c
        found = connection.execute(select(c.payload).where(c.kind == "origin").order_by(c.at.desc()).limit(1)).scalar()
        if found is not None:
            queues = json.loads(found).get("cluster", {}).get("queues", [])
            return tops([Queue(name=q["name"], parent=q.get("parent")) for q in queues])
    return {}
