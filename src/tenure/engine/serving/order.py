"""In which order pending workloads are served: the rules between sibling queues, and those within a leaf.

The rules are those of the specification's section on order. A heap stands at every inner queue; only the path of the
leaf that was just served is looked at again, because nothing else changes what its siblings compare.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import copy
from heapq import heapify, heappop, heapreplace
from math import inf
from typing import Protocol

from tenure.engine.memo import Memo
from tenure.engine.state.queues import Amount
from tenure.engine.state.session import Session
from tenure.engine.state.waiting import Entry
from tenure.engine.state.workloads import Demand, WorkloadState

Key = tuple[bool, bool, int, float, float, float, float, str]


class QueueShares(Protocol):
    """Shares of every queue by row of amounts."""

    rows: list[int]

    @property
    def fair(self) -> list[list[int]]:
        """Fair share by queue."""

    @property
    def allocatable(self) -> list[list[int]]:
        """Allocatable share by queue."""

    @property
    def total(self) -> list[int]:
        """What there is to share."""


Skip = Callable[[WorkloadState, Demand], bool]
"""Whether a workload need not be tried, because it is known that its step fails."""


def skip_none(_: WorkloadState, __: Demand) -> bool:
    """Try all."""
    return False


Seek = Callable[[list[Entry], int], int]
"""Position of the first entry from a position on that has to be tried, where only one leaf waits; their number if none.
"""


class LeafCursor:
    """A position in the entries of one leaf, in order.

    One that is skipped would have had its turn, and with it a place in the order between queues: ``skipped`` are the
    amounts for which that has to be made up for. Where it cannot be (not ``freely``), only those are skipped whose
    turn would come at once, because one that asks for the same was passed over just now.
    """

    __slots__ = ("alone", "entries", "freely", "position", "seek", "skip", "skipped")

    def __init__(self, entries: list[Entry], skip: Skip, *, freely: bool, alone: bool) -> None:
        self.entries = entries
        self.position = 0
        self.skip = skip
        self.freely = freely
        self.alone = alone
        self.skipped: dict[Amount, None] = {}
        self.seek: Seek | None = None

    def again(self, skip: Skip) -> LeafCursor:
        """Give another one at the same place, which skips others."""
        other = LeafCursor(self.entries, skip, freely=self.freely, alone=self.alone)
        other.position, other.skipped = self.position, self.skipped
        return other

    def head(self, passed: Amount | None = None) -> WorkloadState | None:
        """Give the first workload that still waits and has to be tried; ``passed``: what was passed over just now."""
        if self.seek is not None:
            self.position = self.seek(self.entries, self.position)
            return self.entries[self.position][-1] if self.position < len(self.entries) else None
        entries, skip, freely, position = self.entries, self.skip, self.freely, self.position
        skipped = self.skipped = {}
        while position < len(entries):
            entry = entries[position]
            workload: WorkloadState = entry[-1]
            if workload.entry is entry:
                step: Demand = workload.step  # type: ignore[assignment]
                if not (freely or step.amount == passed) or not skip(workload, step):
                    break
                if not self.alone:  # a leaf alone has nobody to be compared with
                    skipped[step.amount] = None
            position += 1
        self.position = position
        return workload if position < len(entries) else None


class QueueOrder:
    """The order in which pending workloads are served, leaf by leaf.

    ``seek`` does what ``skip`` does, for a whole leaf at once, where no other waits.
    """

    def __init__(self, session: Session, shares: QueueShares, skip: Skip, seek: Seek | None = None) -> None:
        self.session = session
        self.shares = shares
        self.queues = session.queues
        self.skip = skip
        waiting = [leaf for leaf, entries in session.waiting.entries.items() if entries]
        only = self.only = len(waiting) == 1
        self.forks = set() if only else self.queues.forks(tuple(waiting))
        self.cursors = {leaf: self._cursor(leaf, skip) for leaf in waiting}
        self._own = set(waiting)
        self.heads: dict[int, WorkloadState] = {}
        self.heaps: dict[int, list[tuple[Key | None, int]]] = {}
        self.keys = _keys(session, shares)
        if only:
            leaf = self._top = waiting[0]
            self.cursors[leaf].seek = seek
            self._advance(leaf)
        else:
            self.free = {leaf for leaf, cursor in self.cursors.items() if cursor.freely}
            self._build(-1, self.queues.top)
            self._look_for_one_alone()

    def again(self, skip: Skip, changed: Iterable[int]) -> QueueOrder | None:
        """Give the order anew, from its beginning, after something has changed in some leaves and their queues.

        This one must be at its beginning. None where only one leaf has a workload to serve: it has no order to begin
        with.
        """
        if self._top >= 0:
            return None
        leaves, entries = set(changed), self.session.waiting.entries
        added = [leaf for leaf in leaves if leaf not in self.cursors and entries[leaf]]
        order = copy(self)
        if added:
            order.forks = self.queues.forks(tuple(self.cursors), added)
        return order.taken_up(skip, leaves, added)

    def taken_up(self, skip: Skip, changed: set[int], added: Iterable[int]) -> QueueOrder:
        """Begin anew with some leaves ``changed`` and others ``added``, of what was another order until now."""
        self.skip, self.cursors, self.heads = skip, dict(self.cursors), dict(self.heads)
        self.heaps = {parent: heap.copy() for parent, heap in self.heaps.items()}
        leaves = (changed | self.free) & (self.cursors.keys() | set(added))
        self._own = set(leaves)
        for leaf in sorted(leaves):
            self.cursors[leaf] = self._cursor(leaf, skip)
            self._advance(leaf)
        self.free = {leaf for leaf in leaves if self.cursors[leaf].freely}
        return self._renewed(leaves)

    def _cursor(self, leaf: int, skip: Skip) -> LeafCursor:
        freely = self.only or self.forks.isdisjoint(self.queues.path[leaf])
        return LeafCursor(self.session.waiting.entries[leaf], skip, freely=freely, alone=self.only)

    def _renewed(self, leaves: Iterable[int]) -> QueueOrder:
        """Put the queues above some leaves into order, from the leaves upwards."""
        touched: dict[int, set[int]] = {}
        for queue in {q for leaf in leaves for q in self.queues.path[leaf]}:
            touched.setdefault(self.queues.parent[queue], set()).add(queue)
        for parent in sorted(touched, reverse=True):  # parents come before children
            mine = touched[parent]
            self._put(parent, [e for e in self.heaps[parent] if e[1] not in mine], [q for q in mine if q in self.heads])
        self._look_for_one_alone()
        return self

    def _look_for_one_alone(self) -> None:
        """Where only one leaf has a workload to serve, there is no leaf to compare it with."""
        self._top = queue = -1
        while queue < 0 or not self.queues.leaf[queue]:
            heap = self.heaps[queue]
            if len(heap) != 1:
                return
            queue = heap[0][1]
        self._top = queue

    def _build(self, parent: int, children: list[int]) -> None:
        contending = []
        for child in children:
            if self.queues.leaf[child]:
                self._advance(child)
            else:
                self._build(child, self.queues.children[child])
            if child in self.heads:
                contending.append(child)
        self._put(parent, (), contending)

    def _put(self, parent: int, known: Sequence[tuple[Key | None, int]], others: Sequence[int]) -> None:
        """Put those below a queue that have a workload to serve into order; of some their keys may be known."""
        alone = len(known) + len(others) == 1
        keys: list[tuple[Key | None, int]] = [(None if alone else key or self.key(q), q) for key, q in known]
        heap = self.heaps[parent] = keys + [(None if alone else self.key(q), q) for q in others]
        heapify(heap)  # type: ignore[arg-type, unused-ignore]
        if heap:
            self.heads[parent] = self.heads[heap[0][1]]
        else:
            self.heads.pop(parent, None)

    def _advance(self, leaf: int, passed: Amount | None = None) -> None:
        head = self._cursor_of(leaf).head(passed) if leaf in self.cursors else None
        if head is None:
            self.heads.pop(leaf, None)
        else:
            self.heads[leaf] = head

    def _cursor_of(self, leaf: int) -> LeafCursor:
        """Give a leaf's cursor, which no other order uses."""
        if leaf not in self._own:
            self._own.add(leaf)
            self.cursors[leaf] = self.cursors[leaf].again(self.skip)
        return self.cursors[leaf]

    def next(self) -> WorkloadState | None:
        """Give the workload to serve next, None when no workload waits any more."""
        return self.heads.get(self._top)

    def served(self, workload: WorkloadState) -> None:
        """The workload, which was next, has got its step; its leaf goes on with who is next there."""
        self._renew(workload.leaf)

    def pass_over(self, workload: WorkloadState) -> None:
        """The workload, which was next, got nothing in this pass."""
        assert workload.step is not None
        self._cursor_of(workload.leaf).position += 1
        self._renew(workload.leaf, workload.step.amount)

    def _renew(self, leaf: int, passed: Amount | None = None) -> None:
        self._advance(leaf, passed)
        if self._top >= 0:
            return
        heads, heaps, parents, known_keys = self.heads, self.heaps, self.queues.parent, self.keys.known
        versions = self.queues.versions
        for queue in self.queues.path[leaf]:
            parent = parents[queue]
            heap = heaps[parent]
            head = heads.get(queue)
            if head is None:
                heappop(heap)
            elif len(heap) > 1:
                step: Demand = head.step  # type: ignore[assignment]
                known = known_keys.get((queue, step.amount))  # what `key` gives, without the calls, where it is known
                if known is None or known[0] != versions[queue] or self.cursors[head.leaf].freely:
                    key = self.key(queue)
                else:
                    key = known[1]
                if key is not heap[0][0]:
                    heapreplace(heap, (key, queue))
            if heap:
                heads[parent] = heads[heap[0][1]]
            else:
                del heads[parent]

    def key(self, queue: int) -> Key:
        """Order of a queue among its siblings with its next workload; the least comes first.

        Before that had its turn, those that were skipped would have had theirs: as long as nothing is placed, a
        workload after them in their leaf comes at their turn at the earliest.
        """
        head = self.heads[queue]
        assert head.step is not None
        key = self.keys((queue, head.step.amount))
        cursor = self.cursors[head.leaf]
        if cursor.freely:
            for amount in cursor.skipped:
                key = max(key, self.keys((queue, amount)))
        return key


def _keys(session: Session, shares: QueueShares) -> Memo[tuple[int, Amount], Key]:
    """Give a memo of the keys of queues by queue and amount: they hold as long as the queue holds what it does."""
    versions = session.queues.versions
    return Memo(lambda pair: queue_key(session, shares, *pair), lambda pair: versions[pair[0]])


def queue_key(
    session: Session, shares: QueueShares, queue: int, amount: Amount, allocated: Amount | None = None
) -> Key:
    """Order of a queue among its siblings if its next step takes ``amount``: rules 1 to 8, one item each.

    ``allocated``: what it is to be counted as holding, where that is not what it holds.
    """
    queues = session.queues
    allocated = queues.allocated[queue] if allocated is None else allocated
    fair, allocatable = shares.fair[queue], shares.allocatable[queue]
    over = False
    now = then = 0.0
    size = 0.0
    for row in shares.rows:
        have, share = allocated[row], allocatable[row]
        after = have + amount[row]
        if have > fair[row]:
            over = True
        if after:
            part = after / share if share else inf
            if part > then:
                then = part
                size = share / shares.total[row] if shares.total[row] else inf
            if have:
                now = max(now, have / share if share else inf)
    model = queues.queues[queue]
    within = queues.within_guaranteed(queue, amount, allocated)
    created = inf if model.created_at is None else model.created_at
    return over, not within, -model.priority, then, now, size, created, model.name


def in_order(session: Session, shares: QueueShares) -> list[WorkloadState]:
    """Give all that wait, in the order in which they would be served."""
    order = QueueOrder(session, shares, lambda _, __: False)
    found = []
    while (workload := order.next()) is not None:
        found.append(workload)
        order.pass_over(workload)
    return found
