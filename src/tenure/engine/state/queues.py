"""The queue tree as the engine keeps it: flat lists, parents before children."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from operator import add, sub
from typing import TypeVar

from tenure.engine.journal import Journal
from tenure.engine.room.nodes import UNLIMITED
from tenure.model.cluster import DEFAULT_QUEUE
from tenure.model.queue import Queue

Amount = tuple[int, ...]
"""An amount by row of the node table, devices counted in milli-GPU."""

Place = TypeVar("Place", bound=Hashable)
Setting = TypeVar("Setting")

MOST_PAIRS = 1 << 15
"""Pairs of leaves of which it is remembered where they meet."""


class QueueTree:
    """Queues by number, parents before children, siblings by name; -1 is the implied root.

    For every queue: ``guaranteed`` (-1 where it guarantees none), ``maximum`` (`UNLIMITED` where it sets none),
    ``allocated`` (bound, running and nominated, without what terminates), ``fixed`` (the part of it that is not
    preemptible) and ``pending``, each an `Amount` that includes everything below. ``path`` leads from a queue up to
    its top-level queue; ``leaves`` are those below a queue, of a leaf itself. ``under_notice`` is, by queue, what tasks
    with an eviction notice still hold. ``versions`` has for each queue a number that is a new one after every change of
    what it holds, and the old one again once that is undone. ``reclaim_min_runtime``,
    ``preempt_min_runtime`` and ``min_runtime_mode`` have for each queue what it sets, or the first on its way up that
    does, None where none does; ``own_minimum`` and ``own_modes`` say whether any queue sets a minimum, or a mode.
    ``patient_causes`` are those for which some queue has a rule of patience.
    """

    def __init__(self, queues: list[Queue], resources: list[str], journal: Journal) -> None:
        self.resources = resources
        self.journal = journal
        self.queues: list[Queue] = []
        self.parent: list[int] = []
        self.children: list[list[int]] = []
        self.top: list[int] = []
        self._order(queues or [Queue(name=DEFAULT_QUEUE)])
        count, zero = len(self.queues), (0,) * len(resources)
        self.index = {q.name: i for i, q in enumerate(self.queues)}
        self.leaf = [not c for c in self.children]
        self.path = [self._path(q) for q in range(count)]
        self.leaves = self._leaves()
        self.maximum = [tuple(q.max.get(r, UNLIMITED) for r in resources) for q in self.queues]
        self.guaranteed = self._guaranteed()
        self.reclaim_min_runtime = _inherited(self.parent, [q.reclaim_min_runtime for q in self.queues])
        self.preempt_min_runtime = _inherited(self.parent, [q.preempt_min_runtime for q in self.queues])
        self.min_runtime_mode = _inherited(self.parent, [q.min_runtime_mode for q in self.queues])
        self.own_minimum = any(self.reclaim_min_runtime) or any(self.preempt_min_runtime)
        self.own_modes = any(self.min_runtime_mode)
        self.patient_causes = frozenset(cause for q in self.queues for cause in q.patience)
        self.limited = [any(m < UNLIMITED for p in self.path[q] for m in self.maximum[p]) for q in range(count)]
        self.allocated: list[Amount] = [zero] * count
        self.fixed: list[Amount] = [zero] * count
        self.pending: list[Amount] = [zero] * count
        named = {r for q in self.queues for r in (*q.guaranteed, *q.max)}
        self.named = [i for i, r in enumerate(resources) if r in named]
        self.versions = [0] * count
        self._version = 0
        self.under_notice: dict[int, Amount] = {}
        self._down = [path[::-1] for path in self.path]
        self._meeting: dict[tuple[int, int], tuple[int, int]] = {}
        self._forks: tuple[tuple[int, ...], dict[int, set[int]], set[int]] = ((), {}, set())

    def _order(self, queues: list[Queue]) -> None:
        below: dict[str | None, list[Queue]] = {}
        for queue in sorted(queues, key=lambda q: q.name):
            below.setdefault(queue.parent, []).append(queue)

        def visit(queue: Queue, parent: int) -> None:
            number = len(self.queues)
            self.queues.append(queue)
            self.parent.append(parent)
            self.children.append([])
            (self.children[parent] if parent >= 0 else self.top).append(number)
            for child in below.get(queue.name, ()):
                visit(child, number)

        for queue in below.get(None, ()):
            visit(queue, -1)

    def _path(self, queue: int) -> list[int]:
        path = []
        while queue >= 0:
            path.append(queue)
            queue = self.parent[queue]
        return path

    def _leaves(self) -> list[list[int]]:
        """Leaves below every queue, a leaf's being itself."""
        found: list[list[int]] = [[] for _ in self.queues]
        for queue, is_leaf in enumerate(self.leaf):
            for above in self.path[queue] if is_leaf else ():
                found[above].append(queue)
        return found

    def _guaranteed(self) -> list[Amount]:
        """A queue that sets none for a resource is guaranteed the sum of its children's, if any of them sets it."""
        found: list[Amount] = [()] * len(self.queues)
        for number in reversed(range(len(self.queues))):
            own = self.queues[number].guaranteed
            below = [found[c] for c in self.children[number]]
            found[number] = tuple(
                own[r] if r in own else sum(max(0, g[i]) for g in below) if any(g[i] >= 0 for g in below) else -1
                for i, r in enumerate(self.resources)
            )
        return found

    def siblings(self, queue: int) -> list[int]:
        """All children of the parent of ``queue``, itself included."""
        parent = self.parent[queue]
        return self.children[parent] if parent >= 0 else self.top

    def meeting(self, one: int, other: int) -> tuple[int, int]:
        """Give the children, towards one leaf and another, of the lowest common ancestor of two different leaves."""
        found = self._meeting.get((one, other))
        if found is None:
            if len(self._meeting) >= MOST_PAIRS:
                self._meeting.clear()
            pairs = zip(self._down[one], self._down[other], strict=False)
            found = self._meeting[one, other] = next(pair for pair in pairs if pair[0] != pair[1])
        return found

    def forks(self, leaves: tuple[int, ...], added: Iterable[int] = ()) -> set[int]:
        """Give the inner queues below which several of some leaves contend, and others ``added`` to them."""
        if self._forks[0] != leaves:
            below: dict[int, set[int]] = {}
            self._count_below(leaves, below)
            self._forks = leaves, below, {queue for queue, children in below.items() if len(children) > 1}
        _, known, forks = self._forks
        more = {self.parent[q]: set(known.get(self.parent[q], ())) for leaf in added for q in self.path[leaf][:-1]}
        self._count_below(added, more)
        return forks.union(queue for queue, children in more.items() if len(children) > 1)

    def _count_below(self, leaves: Iterable[int], below: dict[int, set[int]]) -> None:
        for leaf in leaves:
            for queue in self.path[leaf][:-1]:
                below.setdefault(self.parent[queue], set()).add(queue)

    def allocate(self, leaf: int, amount: Amount, *, fixed: bool) -> None:
        """Count ``amount`` as allocated from ``leaf`` up."""
        self._count(self.allocated, leaf, amount, add)
        if fixed:
            self._count(self.fixed, leaf, amount, add)
        self._changes(leaf)

    def release(self, leaf: int, amount: Amount, *, fixed: bool) -> None:
        """Count ``amount`` as no longer allocated, from ``leaf`` up."""
        self._count(self.allocated, leaf, amount, sub)
        if fixed:
            self._count(self.fixed, leaf, amount, sub)
        self._changes(leaf)

    def ask(self, leaf: int, amount: Amount) -> None:
        """Count ``amount`` as pending from ``leaf`` up."""
        self._count(self.pending, leaf, amount, add)

    def unask(self, leaf: int, amount: Amount) -> None:
        """Count ``amount`` as no longer pending, from ``leaf`` up."""
        self._count(self.pending, leaf, amount, sub)

    def _count(self, what: list[Amount], leaf: int, amount: Amount, how: Callable[[int, int], int]) -> None:
        path = self.path[leaf]
        self.journal.save_items(what, path)
        for queue in path:
            what[queue] = tuple(map(how, what[queue], amount))

    def _changes(self, leaf: int) -> None:
        path, versions = self.path[leaf], self.versions
        self.journal.save_items(versions, path)
        self._version = version = self._version + 1
        for queue in path:
            versions[queue] = version

    def over_max(self, leaf: int, amount: Amount) -> tuple[int, int] | None:
        """Give queue and row of the first maximum, from the leaf up, that ``amount`` more would break."""
        if not self.limited[leaf]:
            return None
        for queue in self.path[leaf]:
            for row, (have, more, most) in enumerate(
                zip(self.allocated[queue], amount, self.maximum[queue], strict=True)
            ):
                if more and have + more > most:
                    return queue, row
        return None

    def admits(self, leaf: int, amount: Amount, *, fixed: bool) -> bool:
        """Whether neither a maximum nor, for what is not preemptible, a guarantee forbids ``amount`` more."""
        if self.limited[leaf] and self.over_max(leaf, amount) is not None:
            return False
        return not fixed or self.beyond_guaranteed(leaf, amount) is None

    def crowded(self, leaf: int, amount: Amount) -> bool:
        """Whether ``amount``, which is allocated, breaks a maximum while those run on that were told to go."""
        for queue in self.path[leaf] if self.limited[leaf] else ():
            told = self.under_notice.get(queue)
            if told is None:
                continue
            rows = zip(self.allocated[queue], told, amount, self.maximum[queue], strict=True)
            if any(more and have + stays > most for have, stays, more, most in rows):
                return True
        return False

    def beyond_guaranteed(self, leaf: int, amount: Amount) -> tuple[int, int] | None:
        """Give queue and row of the first guarantee that ``amount`` more of work that is not preemptible would exceed.

        Where no queue on the path guarantees anything, nothing binds (spec: fair share).
        """
        return next(self.guarantees_exceeded(leaf, amount), None)

    def guarantees_exceeded(self, leaf: int, amount: Amount) -> Iterator[tuple[int, int]]:
        """Go through queue and row of all of these guarantees, from the leaf up."""
        for queue in self.path[leaf]:
            for row, (have, more, floor) in enumerate(
                zip(self.fixed[queue], amount, self.guaranteed[queue], strict=True)
            ):
                if more and floor >= 0 and have + more > floor:
                    yield queue, row

    def carried_below_guaranteed(self, leaf: int, amount: Amount) -> bool:
        """Whether ``amount`` less carries some queue, from the leaf up, from at least its guaranteed to less."""
        return any(
            have - goes < floor <= have
            for queue in self.path[leaf]
            for have, goes, floor in zip(self.allocated[queue], amount, self.guaranteed[queue], strict=True)
        )

    def within_guaranteed(self, queue: int, amount: Amount, allocated: Amount | None = None) -> bool:
        """Whether with ``amount`` more the queue stays within guaranteed in all that it asks for and guarantees.

        ``allocated``: what it is to be counted as holding, where that is not what it holds.
        """
        held = False
        if allocated is None:
            allocated = self.allocated[queue]
        for have, more, floor in zip(allocated, amount, self.guaranteed[queue], strict=True):
            if more and floor >= 0:
                if have + more > floor:
                    return False
                held = True
        return held


def add_at(found: dict[Place, Amount], place: Place, amount: Amount) -> Amount:
    """Add an amount to what is found at a place, if anything is; gives the sum."""
    before = found.get(place)
    total = found[place] = amount if before is None else tuple(map(add, before, amount))
    return total


def added_up(amounts: Iterable[Amount]) -> Amount:
    """Add up some amounts, at least one."""
    return tuple(map(sum, zip(*amounts, strict=True)))


def _inherited(parents: Sequence[int], own: Sequence[Setting]) -> list[Setting]:
    """Give by queue the first value that is set on its way up; parents come before children."""
    found: list[Setting] = []
    for parent, value in zip(parents, own, strict=True):
        found.append(found[parent] if value is None and parent >= 0 else value)
    return found
