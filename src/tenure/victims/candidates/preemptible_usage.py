"""What preemptible work holds on each node, by leaf queue and priority; kept from cycle to cycle.

It is what could be given up at the very most, shields aside: the material of the necessary bounds. Only nodes that
changed are looked at again.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from copy import copy
from functools import cache, partial
from operator import add, attrgetter, sub
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tenure.engine.room.nodes import Ints, NodeTable
from tenure.engine.state.queues import Amount, QueueTree
from tenure.engine.state.session import Session
from tenure.engine.state.workloads import TaskState, WorkloadState
from tenure.shields.policy import DISABLED, FENCE, disabled, fence

Place = tuple[int, int]
"""Node and priority."""


class UsageEntries(NamedTuple):
    """The entries of a usage table by node and priority: ``frees`` is ``float64[rows, entries]``, whole numbers."""

    node: Ints
    priority: Ints
    frees: NDArray[np.float64]


class UsageTable:
    """The sums of usage by node and priority."""

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._sums: dict[Place, Amount] = {}
        self._entries: UsageEntries | None = None

    def copy(self) -> UsageTable:
        """Give another one that knows the same, and goes on by itself."""
        other = UsageTable(self._rows)
        other._sums, other._entries = self._sums.copy(), self._entries
        return other

    def add(self, place: Place, frees: Amount, sign: int) -> None:
        """Count what is held at a place, or count it no more."""
        known = self._sums.get(place)
        after = frees if known is None else tuple(map(add if sign > 0 else sub, known, frees))
        if any(after):
            self._sums[place] = after
        else:
            self._sums.pop(place, None)
        self._entries = None

    def entries(self) -> UsageEntries:
        """Everything, as arrays."""
        if self._entries is None:
            node, priority = np.array(list(self._sums), np.int64).reshape(-1, 2).T
            frees = np.array(list(self._sums.values()), np.float64).reshape(-1, self._rows).T
            self._entries = UsageEntries(node, priority, frees)
        return self._entries


class TaskUsage(NamedTuple):
    """The usage of one task on a node: amounts as queues count them, and what the node would have again."""

    workload: WorkloadState
    amount: Amount
    frees: Amount


class PreemptibleUsage:
    """The holdings of one session. ``version`` grows whenever they or the room of a node may have changed.

    ``movable``: what all preemptible work holds on each node, ``float64[rows, nodes]``. ``sizes`` are by leaf what its
    preemptible workloads hold, each amount with how many hold it.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self.version = 0
        count = len(session.nodes)
        self._seen = -1
        self._stamps = [-1] * count
        self._shares: list[dict[TaskState, TaskUsage]] = [{} for _ in range(count)]
        self._totals: dict[int, dict[WorkloadState, Amount]] = {}
        self.sizes: dict[int, Counter[Amount]] = defaultdict(Counter)
        self._sums: dict[int, Amount] = {}
        self._largest: dict[int, Amount] = {}
        self._tables = defaultdict[int, UsageTable](partial(UsageTable, session.nodes.rows))
        self.movable = np.zeros((session.nodes.rows, count))
        self.open_to = cache(partial(_open_to, session.queues))
        self._none: Amount = (0,) * len(session.queues.resources)

    def copy(self) -> PreemptibleUsage:
        """Give another one that knows the same, and goes on by itself."""
        other = copy(self)
        vars(other).update(
            _stamps=self._stamps.copy(),
            _shares=self._shares.copy(),
            _totals={leaf: totals.copy() for leaf, totals in self._totals.items()},
            sizes=defaultdict(Counter, {leaf: sizes.copy() for leaf, sizes in self.sizes.items()}),
            _sums=self._sums.copy(),
            _largest=self._largest.copy(),
            _tables=defaultdict(self._tables.default_factory, {n: table.copy() for n, table in self._tables.items()}),
            movable=self.movable.copy(),
        )
        return other

    def catch_up(self) -> None:
        """Look again at the nodes that changed since the last time."""
        changed, stamps = self.session.nodes.changed, self.session.nodes.stamps
        if self._seen == len(changed):
            return
        fresh = 0 <= self._seen <= len(changed)
        recent = sorted(set(changed[self._seen :])) if fresh else range(len(self._shares))
        self._seen = len(changed)
        nodes = [n for n in recent if stamps[n] != self._stamps[n]]  # what was tried and undone differs in nothing
        for node in nodes:
            self._stamps[node] = stamps[node]
            self._look(node)
        self.version += bool(nodes)

    def _look(self, node: int) -> None:
        """Look at a node."""
        on_node = self.session.on_node[node]
        here = [t for t in on_node if node in (t.node, t.nominated) or (t.stuck and t.leaving == node)]
        before = self._shares[node]
        found = {
            t: before[t] if t in before and t.cls.milli is None else _usage(t, node, self.session.nodes)
            for t in here
            if t.node == node and t.active and t.workload.leaf >= 0 and not t.workload.fixed
        }
        if found == before:
            return
        self._shares[node] = found
        frees = zip(*(share.frees for share in found.values()), strict=True)
        self.movable[:, node] = [sum(row) for row in frees] if found else 0
        for shares, others, sign in ((before, found, -1), (found, before, 1)):
            for task, share in shares.items():
                if others.get(task) != share:
                    self._count(node, share, sign)

    def _count(self, node: int, share: TaskUsage, sign: int) -> None:
        workload = share.workload
        self._tables[workload.leaf].add((node, workload.priority), share.frees, sign)
        if not any(share.amount):
            return
        leaf, reckon = workload.leaf, add if sign > 0 else sub
        totals, sizes = self._totals.setdefault(leaf, {}), self.sizes[leaf]
        self._largest.pop(leaf, None)
        before = totals.get(workload, self._none)
        after = tuple(map(reckon, before, share.amount))
        self._sums[leaf] = tuple(map(reckon, self._sums.get(leaf, self._none), share.amount))
        if any(before):
            sizes[before] -= 1
            if not sizes[before]:
                del sizes[before]
        if any(after):
            sizes[after] += 1
            totals[workload] = after
        else:
            del totals[workload]

    def largest(self, leaves: Collection[int], row: int) -> int:
        """Give the most that one workload of some leaves holds of a resource."""
        known = self._largest
        for leaf in leaves:
            if leaf not in known:
                known[leaf] = tuple(map(max, zip(self._none, *self.sizes.get(leaf, ()), strict=True)))
        return max((known[leaf][row] for leaf in leaves), default=0)

    def held(self, leaf: int) -> Amount:
        """Give what all preemptible workloads of a leaf hold."""
        return self._sums.get(leaf, self._none)

    def at_most(self, count: int, leaves: Iterable[int]) -> bool:
        """Whether no more than ``count`` preemptible workloads of some leaves hold something."""
        return sum(len(self._totals.get(leaf, ())) for leaf in leaves) <= count

    def workloads(self, leaf: int) -> list[WorkloadState]:
        """Give the preemptible workloads of a leaf that hold something, by name."""
        return sorted(self._totals.get(leaf, ()), key=attrgetter("key"))

    @property
    def leaves(self) -> list[int]:
        """Leaves in which something is held."""
        return [leaf for leaf, totals in self._totals.items() if totals]

    def entries(self, leaf: int) -> UsageEntries:
        """Give what is held below a leaf, node by node."""
        return self._tables[leaf].entries()


def _usage(task: TaskState, node: int, nodes: NodeTable) -> TaskUsage:
    return TaskUsage(task.workload, task.cls.amount_at(node, nodes), task.cls.frees(node, task.devices, nodes))


def _open_to(queues: QueueTree, contender: int) -> frozenset[int]:
    """Give the leaves from which neither a fence nor their policy keeps a contender of this leaf."""
    guarded = any(q.preemption_policy in (FENCE, DISABLED) for q in queues.queues)
    leaves = (q for q, leaf in enumerate(queues.leaf) if leaf)
    return frozenset(q for q in leaves if not (guarded and (fence(queues, contender, q) or disabled(queues, q))))
