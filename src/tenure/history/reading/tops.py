"""Which queue at the top of the tree stands above another one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlalchemy import Connection

from tenure.history.configured import configured
from tenure.history.scope import origins_seen
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


def tops_of(connection: Connection) -> Mapping[int, Mapping[str, str]]:
    """Give by node pool (its number) and queue the one at the top above it, as it was last recorded."""
    found = {}
    for source, _ in origins_seen(connection):
        queues = (configured(connection, source) or {}).get("queues", [])
        found[source] = tops([Queue(name=q["name"], parent=q.get("parent")) for q in queues])
    return found
