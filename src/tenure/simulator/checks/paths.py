"""Which queue a workload lives in, and which are above it."""

from __future__ import annotations

from collections.abc import Sequence

from tenure.model.cluster import DEFAULT_QUEUE
from tenure.model.queue import Queue
from tenure.model.workload import Workload


def leaf_of(workload: Workload) -> str:
    """Name the leaf queue that a workload lives in."""
    return workload.queue or DEFAULT_QUEUE


def paths_of(queues: Sequence[Queue]) -> dict[str, tuple[Queue, ...]]:
    """Give each queue with those above it, from itself upward."""
    named, found = {queue.name: queue for queue in queues}, dict[str, tuple[Queue, ...]]()
    for queue in queues:
        path: list[Queue] = []
        current: Queue | None = queue
        while current is not None and len(path) <= len(queues):
            path.append(current)
            current = named.get(current.parent or "")
        found[queue.name] = tuple(path)
    return found
