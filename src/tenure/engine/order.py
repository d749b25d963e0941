"""In which order pending workloads are served: the rules between sibling queues, and those within a leaf.

The rules are those of the specification's section on order. A heap stands at every inner queue; only the path of the
leaf that was just served is looked at again, because nothing else changes what its siblings compare.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from heapq import heapify, heappop, heapreplace
from math import inf
from typing import Protocol

from tenure.engine.queues import Amount
from tenure.engine.session import Session
from tenure.engine.waiting import Entry
from tenure.engine.workloads import NextStep, WorkloadState

Key = tuple[bool, bool, int, float, float, float, float, str]


Keys = dict[tuple[int, Amount], tuple[Amount, Key]]
"""By queue and amount: what the queue had when its key was worked out, and the key. It holds while that is so."""


class Shares(Protocol):
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


Skip = Callable[[WorkloadState, NextStep], bool]
"""Whether a workload need not be tried, because it is known that its step fails."""

Seek = Callable[[list[Entry], int], int]
"""Position of the first entry from a position on that has to be tried, where only one leaf waits; their number if none.
"""


class LeafCursor:
    """Goes through the entries of one leaf in order, once.

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
                step: NextStep = workload.step  # type: ignore[assignment]
                if not (freely or step.amount == passed) or not skip(workload, step):
                    break
                if not self.alone:  # a leaf alone has nobody to be compared with
                    skipped[step.amount] = None
            position += 1
        self.position = position
        return workload if position < len(entries) else None


class QueueOrder:
    """Serves pending workloads in order, leaf by leaf as the queue order says.

    ``seek`` does what ``skip`` does, for a whole leaf at once, where no other waits. Orders by the same shares may
    hand ``keys`` on to each other.
    """

    def __init__(
        self, session: Session, shares: Shares, skip: Skip, seek: Seek | None = None, keys: Keys | None = None
    ) -> None:
        self.session = session
        self.shares = shares
        self.queues = session.queues
        waiting = {q: e for q, e in session.waiting.entries.items() if e}
        only = len(waiting) == 1
        forks = set() if only else self._forks(waiting)
        self.cursors = {
            leaf: LeafCursor(e, skip, freely=only or forks.isdisjoint(self.queues.path[leaf]), alone=only)
            for leaf, e in waiting.items()
        }
        self.heads: dict[int, WorkloadState] = {}
        self._keys = {} if keys is None else keys
        self.heaps: dict[int, list[tuple[Key | None, int]]] = {-1: []}
        if only:
            for leaf, cursor in self.cursors.items():
                cursor.seek = seek
                self._advance(leaf)
        else:
            self._build(-1, self.queues.top)
        self.alone = len(self.heads) == 1

    def _forks(self, leaves: Iterable[int]) -> set[int]:
        """Give the inner queues below which several leaves contend."""
        below: dict[int, set[int]] = {}
        for leaf in leaves:
            for queue in self.queues.path[leaf][:-1]:
                below.setdefault(self.queues.parent[queue], set()).add(queue)
        return {queue for queue, children in below.items() if len(children) > 1}

    def _build(self, parent: int, children: list[int]) -> None:
        contending = []
        for child in children:
            if self.queues.leaf[child]:
                self._advance(child)
            else:
                self._build(child, self.queues.children[child])
            if self._head_of(child) is not None:
                contending.append(child)
        alone = len(contending) == 1
        heap = [(None if alone else self.key(c), c) for c in contending]
        heapify(heap)  # type: ignore[arg-type, unused-ignore]
        self.heaps[parent] = heap

    def _advance(self, leaf: int, passed: Amount | None = None) -> None:
        cursor = self.cursors.get(leaf)
        head = cursor.head(passed) if cursor else None
        if head is None:
            self.heads.pop(leaf, None)
        else:
            self.heads[leaf] = head

    def _head_of(self, queue: int) -> WorkloadState | None:
        while queue < 0 or not self.queues.leaf[queue]:
            heap = self.heaps[queue]
            if not heap:
                return None
            queue = heap[0][1]
        return self.heads.get(queue)

    def next(self) -> WorkloadState | None:
        """Give the workload to serve next, None when nobody waits any more."""
        if self.alone:
            return next(iter(self.heads.values()), None)
        return self._head_of(-1) if self.heaps[-1] else None

    def served(self, workload: WorkloadState) -> None:
        """The workload, which was next, has got its step; its leaf goes on with who is next there."""
        self._renew(workload.leaf)

    def pass_over(self, workload: WorkloadState) -> None:
        """The workload, which was next, got nothing in this pass."""
        assert workload.step is not None
        self.cursors[workload.leaf].position += 1
        self._renew(workload.leaf, workload.step.amount)

    def _renew(self, leaf: int, passed: Amount | None = None) -> None:
        self._advance(leaf, passed)
        if self.alone:  # one leaf alone has nobody to be compared with
            return
        for queue in self.queues.path[leaf]:
            heap = self.heaps[self.queues.parent[queue]]
            if self._head_of(queue) is None:
                heappop(heap)
            elif len(heap) > 1:
                heapreplace(heap, (self.key(queue), queue))

    def key(self, queue: int) -> Key:
        """Order of a queue among its siblings with its next workload; the least comes first.

        Before that had its turn, those that were skipped would have had theirs: as long as nothing is placed, whoever
        comes after them in their leaf comes at their turn at the earliest.
        """
        head = self._head_of(queue)
        assert head is not None
        assert head.step is not None
        key = self._key_with(queue, head.step.amount)
        cursor = self.cursors[head.leaf]
        if cursor.freely:
            for amount in cursor.skipped:
                key = max(key, self._key_with(queue, amount))
        return key

    def _key_with(self, queue: int, amount: Amount) -> Key:
        allocated = self.queues.allocated[queue]
        known = self._keys.get((queue, amount))
        if known is None or known[0] is not allocated:
            known = self._keys[queue, amount] = allocated, queue_key(self.session, self.shares, queue, amount)
        return known[1]


def queue_key(session: Session, shares: Shares, queue: int, amount: tuple[int, ...]) -> Key:
    """Order of a queue among its siblings if its next step takes ``amount``: rules 1 to 8, one item each."""
    queues = session.queues
    allocated, fair, allocatable = queues.allocated[queue], shares.fair[queue], shares.allocatable[queue]
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
    within = queues.within_guaranteed(queue, amount)
    created = inf if model.created_at is None else model.created_at
    return over, not within, -model.priority, then, now, size, created, model.name
