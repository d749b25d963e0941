"""Rules that a queue tree obeys (spec: queue fields)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import dropwhile

from tenure.model.accelerators import gpu_part
from tenure.model.checks.findings import ClusterFinding, Findings
from tenure.model.cluster import Cluster
from tenure.model.device_resources import as_set
from tenure.model.queue import Queue
from tenure.model.values.problems import NearestNames
from tenure.model.values.quantity import format_queue_quantity
from tenure.model.values.resources import CPU, GPU, MEMORY, PODS

MAX_LEVELS = 64
"""Levels of a tree of queues. Kubernetes knows no limit; organisations have fewer than ten levels."""

MOST_OF_A_CYCLE = 8
"""Queues of a cycle that a message names."""

SHORT_DELAY = 60_000_000
"""µs; a shorter delay of quota preemption is odd (spec: quota preemption, settings)."""


def check_queues(queues: Sequence[Queue], capacity: Mapping[str, int] | None = None) -> Findings:
    """Check names, parents and amounts of a queue tree.

    ``capacity`` is what nodes have as it counts for queues: not less of it than the queues are guaranteed in all.
    """
    tree = _Tree(queues)
    yield from tree.check_names()
    yield from tree.check_parents()
    if tree.cyclic:
        return
    too_deep = list(tree.check_depth())
    yield from too_deep
    if too_deep:
        return
    for index, queue in enumerate(queues):
        yield from tree.check_amounts(index, queue)
    if capacity is not None:
        yield from tree.check_total(capacity)


def check_max_names(cluster: Cluster, capacity: Mapping[str, int]) -> Findings:
    """Warn where a max is one of a resource that is neither known nor there, nor asked for: perhaps a typing error."""
    known = {CPU, GPU, MEMORY, PODS, *capacity}
    odd = [
        (index, resource)
        for index, queue in enumerate(cluster.queues)
        for resource in queue.max
        if resource not in known and not gpu_part(resource) and as_set(resource, cluster.settings) is None
    ]
    if not odd:
        return
    asked = {name for w in cluster.workloads for task in w.tasks for name, _ in task.spec.requests}
    names = NearestNames(known)
    for index, resource in odd:
        if resource not in asked:
            message = (
                f"no node has any {resource}, and nothing asks for it, so this bounds nothing"
                f"{names.hint(resource) or '; leave it out, or name a resource that nodes have'}"
            )
            yield ClusterFinding(("queues", index, "max", resource), message, is_warning=True)


class _Tree:
    """A queue tree, perhaps a broken one. Of queues of one name the first counts."""

    def __init__(self, queues: Sequence[Queue]) -> None:
        self._queues = queues
        self._places: dict[str, int] = {}
        for index, queue in enumerate(queues):
            self._places.setdefault(queue.name, index)
        self._children: dict[str, list[Queue]] = {}
        for index, queue in enumerate(queues):
            if queue.parent is not None and self._places[queue.name] == index:
                self._children.setdefault(queue.parent, []).append(queue)
        self.cyclic = self._find_cyclic()
        self._effective: dict[str, dict[str, int]] = {}

    def _find_cyclic(self) -> set[str]:
        """Give the queues that are their own ancestors."""
        settled: set[str] = set()
        cyclic: set[str] = set()
        for queue in self._queues:
            trail: dict[str, None] = {}
            name: str | None = queue.name
            while name is not None and name in self._places and name not in settled and name not in trail:
                trail[name] = None
                name = self._queues[self._places[name]].parent
            if name in trail:
                cyclic.update(dropwhile(lambda passed, first=name: passed != first, trail))  # type: ignore[misc]
            settled.update(trail)
        return cyclic

    def check_names(self) -> Findings:
        for index, queue in enumerate(self._queues):
            first = self._places[queue.name]
            if first != index:
                message = f"queue {queue.name} is there twice, first as queues[{first}]; give each its own name"
                yield ClusterFinding(("queues", index, "name"), message)

    def check_parents(self) -> Findings:
        names = NearestNames(self._places)
        for index, queue in enumerate(self._queues):
            if queue.parent is None:
                continue
            if queue.name in self.cyclic:
                message = (
                    f"queue {queue.name} is its own ancestor: {self._cycle(queue.name)}; let one of them have no parent"
                )
                yield ClusterFinding(("queues", index, "parent"), message)
            elif queue.parent not in self._places:
                hint = names.hint(queue.parent) or "; add it, or leave the parent out"
                yield ClusterFinding(("queues", index, "parent"), f"there is no queue {queue.parent}{hint}")

    def _cycle(self, start: str) -> str:
        """Name the queues of a cycle from one of them on, the first few of a long one."""
        names = [start]
        while (name := self._queues[self._places[names[-1]]].parent) != start and name is not None:
            names.append(name)
            if len(names) > MOST_OF_A_CYCLE:
                return " < ".join([*names[:-1], "…", start])
        return " < ".join([*names, start])

    def check_depth(self) -> Findings:
        """Find the first queue of each branch that lies deeper than `MAX_LEVELS`; the tree must have no cycle."""
        levels: dict[str, int] = {}
        for queue in self._queues:
            above: list[str] = []
            name: str | None = queue.name
            while name is not None and name in self._places and name not in levels:
                above.append(name)
                name = self._queues[self._places[name]].parent
            level = levels.get(name or "", 0)
            for found in reversed(above):
                level += 1
                levels[found] = level
        for index, queue in enumerate(self._queues):
            if levels[queue.name] == MAX_LEVELS + 1:
                message = (
                    f"queue {queue.name} lies more than {MAX_LEVELS} levels deep, which is as deep as a tree of queues "
                    f"may be; give it a parent further up"
                )
                yield ClusterFinding(("queues", index, "parent"), message)

    def check_amounts(self, index: int, queue: Queue) -> Findings:
        for resource, amount in queue.guaranteed.items():
            limit = queue.max.get(resource)
            if limit is not None and amount > limit:
                asked, allowed = _show(amount, resource), _show(limit, resource)
                message = f"{asked} is more than the queue's max of {allowed}; lower it or raise max"
                yield ClusterFinding(("queues", index, "guaranteed", resource), message)
        for resource, amount in queue.max.items():
            above = self._limit_above(queue, resource)
            if above is not None and amount > above[1]:
                message = (
                    f"{_show(amount, resource)} is more than {_show(above[1], resource)}, the max of queue {above[0]} "
                    f"above it; lower it or raise that"
                )
                yield ClusterFinding(("queues", index, "max", resource), message)
        if 0 < (queue.quota_preemption_delay or 0) < SHORT_DELAY:
            message = "is under 60s, which leaves running work hardly any time to end by itself"
            yield ClusterFinding(("queues", index, "quotaPreemptionDelay"), message, is_warning=True)
        if self._places[queue.name] == index:
            yield from self._check_sums(index, queue)

    def _limit_above(self, queue: Queue, resource: str) -> tuple[str, int] | None:
        """Give the nearest queue above that has a max of the resource, and that max."""
        name = queue.parent
        while name is not None and name in self._places:
            parent = self._queues[self._places[name]]
            if resource in parent.max:
                return parent.name, parent.max[resource]
            name = parent.parent
        return None

    def _check_sums(self, index: int, queue: Queue) -> Findings:
        for resource, total in sum_amounts(
            [self.guaranteed(child) for child in self._children.get(queue.name, ())]
        ).items():
            limit = queue.max.get(resource)
            own = queue.guaranteed.get(resource)
            if limit is not None and total > limit:
                message = (
                    f"the queues below it are guaranteed {_show(total, resource)} together, more than its max of "
                    f"{_show(limit, resource)}; lower theirs or raise this"
                )
                yield ClusterFinding(("queues", index, "max", resource), message)
            elif own is not None and total > own:
                message = (
                    f"the queues below it are guaranteed {_show(total, resource)} together, more than the "
                    f"{_show(own, resource)} of this one, which bind"
                )
                yield ClusterFinding(("queues", index, "guaranteed", resource), message, is_warning=True)

    def guaranteed(self, queue: Queue) -> dict[str, int]:
        """Give what a queue is guaranteed: its own amount, else the sum of its children's."""
        known = self._effective.get(queue.name)
        if known is None:
            below = sum_amounts([self.guaranteed(child) for child in self._children.get(queue.name, ())])
            known = self._effective[queue.name] = {**below, **queue.guaranteed}
        return known

    def check_total(self, capacity: Mapping[str, int]) -> Findings:
        """Warn where all queues together are guaranteed more than the nodes have."""
        tops = [queue for i, queue in enumerate(self._queues) if queue.parent is None and self._places[queue.name] == i]
        names = NearestNames(capacity)
        for resource, total in sum_amounts([self.guaranteed(queue) for queue in tops]).items():
            there = capacity.get(resource, 0)
            if total > there:
                hint = "" if resource in capacity else names.hint(resource)
                message = (
                    f"the queues are guaranteed {_show(total, resource)} of {resource} together, more than the "
                    f"{_show(there, resource)} that all nodes have{hint}"
                )
                yield ClusterFinding(("queues",), message, is_warning=True)


def sum_amounts(all_amounts: Sequence[dict[str, int]]) -> dict[str, int]:
    """Add amounts up by resource."""
    total: dict[str, int] = {}
    for amounts in all_amounts:
        for resource, amount in amounts.items():
            total[resource] = total.get(resource, 0) + amount
    return total


def _show(amount: int, resource: str) -> str:
    return format_queue_quantity(amount, resource)
