"""No node holds more than it has, no queue more than its maximum."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import chain

import numpy as np

from tenure.model.device_resources import parts_of
from tenure.model.node import Node
from tenure.model.queue import Queue
from tenure.model.values.resources import GPU, MILLI, PODS
from tenure.simulator.checks.columns import CheckedLog, Ints, Mask, demand, resources_counted, resources_of
from tenure.simulator.checks.findings import ViolationCollector
from tenure.simulator.checks.paths import leaf_of, paths_of
from tenure.simulator.checks.sums import Timeline, timeline

OVER_CAPACITY = "node over capacity"
OVER_MAX = "queue over max"

UNLIMITED = np.iinfo(np.int64).max


def check_nodes(
    history: CheckedLog, nodes: Sequence[Node], findings: ViolationCollector, served: Collection[str] = ()
) -> None:
    """Sum each resource on each node over time and compare it with what the node has; not what claims ``served``."""
    holdings = history.holdings
    released = released_positions(history)
    times = timeline(holdings.node, holdings.since, holdings.until, holdings.bound, released)
    spec = history.tasks.spec[holdings.task]
    for resource in resources_of(history.tasks.specs):
        if resource in served:
            continue
        capacity = np.array([_capacity(node, resource) for node in nodes], dtype=np.int64)
        used = times.running(amounts_held(history, nodes, resource, spec))
        over = times.rises(used > capacity[times.group])
        findings.add(OVER_CAPACITY, over, len(over), _OverNode(nodes, resource, times, used, capacity))


class _OverNode:
    """Puts an overfull node in words."""

    def __init__(self, nodes: Sequence[Node], resource: str, times: Timeline, used: Ints, capacity: Ints) -> None:
        self.nodes, self.resource, self.times, self.used, self.capacity = nodes, resource, times, used, capacity

    def __call__(self, index: int) -> str:
        node = int(self.times.group[index])
        has = int(self.capacity[node])
        return (
            f"{self.nodes[node].name} holds {int(self.used[index])} of {self.resource} and has {has}, "
            f"at {seconds(int(self.times.at[index]))}"
        )


def released_positions(history: CheckedLog) -> Ints:
    """Position in the log at which a node's room was free again; -1 where that was later than the event."""
    holdings = history.holdings
    return np.where(holdings.until == holdings.left, holdings.freed, -1)


def _capacity(node: Node, resource: str) -> int:
    if resource == PODS:
        return node.allocatable.get(PODS, UNLIMITED)
    amount = node.allocatable.get(resource, 0)
    return amount * MILLI if resource == GPU else amount


def amounts_held(history: CheckedLog, nodes: Sequence[Node], resource: str, spec: Ints) -> Ints:
    """Amount that each holding has; only a share of GPU memory depends on the node."""
    specs = history.tasks.specs
    amounts = np.array([demand(one, resource) for one in specs], dtype=np.int64)[spec]
    if resource == GPU:
        by_memory = np.array([one.gpu_share is not None and one.gpu_share.memory > 0 for one in specs])
        for index in np.flatnonzero(by_memory[spec]).tolist():
            node = nodes[int(history.holdings.node[index])]
            amounts[index] = demand(specs[int(spec[index])], resource, node.gpu_memory)
    return amounts


def amounts_counted(history: CheckedLog, nodes: Sequence[Node], resource: str, spec: Ints) -> Ints:
    """Amount that each holding counts for its queue."""
    beside = np.array([found.get(resource, 0) for found in history.beside], dtype=np.int64)[spec]
    return amounts_held(history, nodes, resource, spec) + beside


def capacity_counted(history: CheckedLog, nodes: Sequence[Node]) -> dict[str, int]:
    """Give what all nodes have of each resource that tasks count for queues, GPUs in milli-GPU."""
    parts = parts_of(nodes, history.settings)
    return {
        name: sum(node.allocatable.get(name, 0) for node in nodes) * (MILLI if name == GPU else 1) + parts.get(name, 0)
        for name in resources_counted(history)
        if name != PODS
    }


def check_queues(
    history: CheckedLog, nodes: Sequence[Node], queues: Sequence[Queue], findings: ViolationCollector
) -> None:
    """Sum what each queue's workloads hold over time and compare it with its ``max``, at every level of the tree.

    What was evicted no longer counts, though it may still be on its node. What stood before the first plan may hold
    more, as a maximum may be lowered below what runs; a plan must not add to it then.
    """
    limited = [index for index, queue in enumerate(queues) if queue.max]
    if not limited:
        return
    holdings = history.holdings
    path_of = _paths(queues)
    paths = [path_of.get(leaf_of(workload), ()) for workload in history.workloads]
    depth = np.array([len(path) for path in paths], dtype=np.int64)
    job = history.tasks.job[holdings.task]
    entry = np.repeat(np.arange(len(job)), depth[job])
    flat = np.fromiter(chain.from_iterable(paths), dtype=np.int64, count=int(depth.sum()))
    start = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(depth)))[:-1]
    within = np.arange(len(entry)) - np.repeat(np.cumsum(depth[job]) - depth[job], depth[job])
    group = flat[start[job[entry]] + within]
    times = timeline(group, holdings.since[entry], holdings.left[entry], holdings.bound[entry], holdings.freed[entry])
    spec = history.tasks.spec[holdings.task]
    planned = _by_plans(history)
    for resource in sorted({name for queue in queues for name in queue.max}):
        bound = np.array([queue.max.get(resource, UNLIMITED) for queue in queues], dtype=np.int64)
        amounts = amounts_counted(history, nodes, resource, spec)
        used, by_plans = times.running(amounts[entry]), times.running((amounts * planned)[entry])
        over = times.rises((used > bound[times.group]) & (by_plans > 0))
        findings.add(OVER_MAX, over, len(over), _OverQueue(queues, resource, times, used, bound))


def _by_plans(history: CheckedLog) -> Mask:
    """Say of each holding whether it came of a plan, not of the cluster with which the log begins."""
    holdings = history.holdings
    stood = (history.tasks.job[holdings.task] < history.initial) & (history.columns.plan[holdings.bound] == 0)
    placed: Mask = ~stood
    return placed


class _OverQueue:
    """Puts a queue over its maximum in words."""

    def __init__(self, queues: Sequence[Queue], resource: str, times: Timeline, used: Ints, bound: Ints) -> None:
        self.queues, self.resource, self.times, self.used, self.bound = queues, resource, times, used, bound

    def __call__(self, index: int) -> str:
        queue = int(self.times.group[index])
        return (
            f"queue {self.queues[queue].name} holds {int(self.used[index])} of {self.resource}, its max is "
            f"{int(self.bound[queue])}, at {seconds(int(self.times.at[index]))}"
        )


def _paths(queues: Sequence[Queue]) -> Mapping[str, tuple[int, ...]]:
    """Each queue's own index and those of its ancestors, where they have a maximum."""
    index = {queue.name: position for position, queue in enumerate(queues)}
    return {name: tuple(index[q.name] for q in path if q.max) for name, path in paths_of(queues).items()}


def seconds(at: int) -> str:
    """Write an instant for a message."""
    return f"{at / 1_000_000:g} s"
