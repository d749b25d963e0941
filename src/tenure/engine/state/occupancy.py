"""What tasks occupy: room of nodes, amounts of queues, and the counts of terms.

Room is known in two views: *now*, with what terminates and without what is promised, and *then*, the other way round.
"""

from __future__ import annotations

from tenure.engine.journal import Journal
from tenure.engine.room.nodes import UNLIMITED, NodeTable
from tenure.engine.state.queues import Amount, QueueTree
from tenure.engine.state.workloads import TERMINATING, TaskState
from tenure.engine.terms.table import TermTable


class Occupancy:
    """What the tasks of a session occupy, counted where it is asked about; each change can be undone.

    ``foreign`` is what pods of other schedulers use, by row of amounts. ``supply`` is what the devices of claims count
    for queues, by resource.
    """

    def __init__(self, nodes: NodeTable, queues: QueueTree, terms: TermTable, journal: Journal) -> None:
        self.nodes = nodes
        self.queues = queues
        self.terms = terms
        self.journal = journal
        self.foreign = [0] * nodes.amounts
        self.supply: dict[str, int] = {}
        self._capacity: list[int] | None = None

    def occupy(self, task: TaskState, node: int, devices: tuple[int, ...], sign: int, *, now: bool, then: bool) -> None:
        """Take (``sign`` 1) or give back (-1) what a task holds on a node, in the room of now, of then, or both."""
        cls, nodes = task.cls, self.nodes
        milli = 1000 if cls.milli is None else int(cls.milli[node])
        nodes.occupy(node, cls.takes(node, nodes), devices, milli, now=now, then=then, sign=sign)
        if task.terms is not None and (now or then):
            self.terms.counts.count(task.terms, node, now=now, then=then, sign=sign)

    def count_terms(self, task: TaskState, sign: int, *, now: bool, then: bool, node: int = -2) -> None:
        """Count what a task's terms match, on ``node`` or where it is or is promised to be."""
        if task.terms is not None and (now or then):
            where = node if node >= 0 else task.node if task.node >= 0 else task.nominated
            self.terms.counts.count(task.terms, where, now=now, then=then, sign=sign)

    def count_allocated(self, task: TaskState, node: int) -> None:
        """Count what a task holds on a node as allocated to its queue, and no longer as asked for."""
        leaf, cls = task.workload.leaf, task.cls
        if leaf >= 0:
            if task.asks:
                self.queues.unask(leaf, cls.amount)
            self.queues.allocate(leaf, cls.amount_at(node, self.nodes), fixed=task.workload.fixed)

    def count_released(self, task: TaskState) -> None:
        """Count what a placed task holds as no longer allocated, and as asked for again."""
        leaf = task.workload.leaf
        if leaf >= 0:
            node = task.node if task.node >= 0 and task.phase is not TERMINATING else task.nominated
            amount = task.cls.amount_at(node, self.nodes) if node >= 0 else task.cls.amount
            self.queues.release(leaf, amount, fixed=task.workload.fixed)
            if task.asks:
                self.queues.ask(leaf, task.cls.amount)

    def count_differing(self, change: int) -> None:
        """Count tasks for which the room of now and of then differ."""
        self.journal.set(self.nodes, "waiting", self.nodes.waiting + change)

    def count_foreign(self, node: int, amount: Amount, sign: int) -> None:
        """Count what a pod of another scheduler holds; on a node that is not ready it takes nothing from other pods."""
        if self.nodes.ready[node]:
            held = [f + sign * a for f, a in zip(self.foreign, amount, strict=True)]
            self.journal.set(self, "foreign", held)

    def count_leaving(self, task: TaskState, sign: int, *, now: bool, then: bool) -> None:
        """Count a task that terminates among those that are there, but do not stay."""
        if task.terms is not None:
            where = task.leaving if task.leaving >= 0 else task.node
            self.terms.counts.count_leaving(task.terms, where, now=now, then=then, sign=sign)

    def total(self) -> list[int]:
        """What nodes have that are there and ready, less what pods of other schedulers use: amounts by row."""
        nodes = self.nodes
        if self._capacity is None:
            own = nodes.capacity if nodes.served is None else nodes.capacity - nodes.served  # those are in the supply
            has = own[: nodes.amounts, nodes.ready & ~nodes.awaited]
            sums = [int(c.sum()) if c.size else 0 for c in has]
            for name, amount in self.supply.items():
                sums[nodes.row[name]] += amount
            for resource, counted in nodes.counts.items():
                many = int(has[nodes.row[resource]].sum())
                for name, each in counted.items():
                    sums[nodes.row[name]] += many * each
            self._capacity = [min(found, UNLIMITED) for found in sums]
        return [max(0, c - f) for c, f in zip(self._capacity, self.foreign, strict=True)]
