"""What nodes really use, on the embedded cluster: what a task uses goes along with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tenure.model.cluster import Cluster
from tenure.model.node import Node
from tenure.model.workload import Phase, Workload


def readings(before: Cluster, workloads: Sequence[Workload], now: int) -> tuple[Node, ...]:
    """Give the nodes as they are read at ``now`` (µs since the epoch).

    Of a node that got something to run, the level is new; of any other it has lasted for as long as time has passed.

    Parameters
    ----------
    before
        The cluster as it was.
    workloads
        Its workloads at ``now``, in the same order.
    now
        The time.
    """
    if all(n.usage is None for n in before.nodes):
        return before.nodes
    change = _changes(before.workloads, workloads)
    return tuple(n if n.usage is None else _read(n, change, now - before.now) for n in before.nodes)


def _changes(before: Sequence[Workload], after: Sequence[Workload]) -> dict[tuple[str, str], int]:
    """Amounts by node and resource that came, less those that went."""
    change: dict[tuple[str, str], int] = {}
    for old, new in zip(before, after, strict=True):
        for was, task in zip(old.tasks, new.tasks, strict=True):
            for resource, amount in (was.usage or {}).items():
                if was.node is not None and was.phase is Phase.TERMINATING and task.node is None:
                    change[was.node, resource] = change.get((was.node, resource), 0) - amount
                elif task.node is not None and was.phase is Phase.BOUND and task.phase is Phase.RUNNING:
                    change[task.node, resource] = change.get((task.node, resource), 0) + amount
    return change


def _read(node: Node, change: dict[tuple[str, str], int], passed: int) -> Node:
    usage = {r: max(0, amount + change.get((node.name, r), 0)) for r, amount in (node.usage or {}).items()}
    rises = any(usage[r] > amount for r, amount in (node.usage or {}).items())
    return replace(node, usage=usage, usage_for=0 if rises else (node.usage_for or 0) + passed)
