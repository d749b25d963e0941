"""A good set, quickly: the cheapest on one node, then across nodes.

Each node says what the next task's room on it would cost; the cheapest is taken, until there is room for all. What
is chosen is checked against the rules as the queues stand at that moment. A last pass gives back, the dearest first,
what room does not need.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from heapq import heappop, heappush
from operator import add, sub

from tenure.engine.refusal import Refusal
from tenure.engine.state.queues import Amount
from tenure.victims.bounds.room_demand import RoomDemand
from tenure.victims.candidates.index import CandidateIndex, PieceStream
from tenure.victims.rules.causes import CauseRules
from tenure.victims.rules.pieces import Piece, needed_of
from tenure.victims.rules.set_order import Key, key_of
from tenure.victims.search.search_scope import SearchScope

Unwanted = Callable[[Piece], bool]


class FreedRoom:
    """The room that a growing set frees on each node, and for how many tasks that is enough."""

    def __init__(self, need: RoomDemand, others: int = 0) -> None:
        self.need = need
        self.part = need.parts[0]
        self.needed = self.part.needed + others
        self.chosen: dict[Piece, None] = {}
        self.freed: dict[int, Amount] = {}
        self.count: dict[int, int] = {}
        self.total = self.part.count

    def slots(self, node: int, more: Amount | None = None) -> int:
        """How many tasks have room on a node, with ``more`` freed there beside what is chosen."""
        if more is None:
            known = self.count.get(node)
            return int(self.part.per_node[node]) if known is None else known
        freed = self.freed.get(node)
        return self.part.slots(node, more if freed is None else tuple(map(add, freed, more)))

    def loss(self, piece: Piece) -> int:
        """For how many tasks there would be room no more without a chosen piece."""
        return sum(
            self.slots(node) - self.part.slots(node, tuple(map(sub, self.freed[node], amounts)))
            for node, amounts in piece.frees
        )

    def change(self, piece: Piece, sign: int) -> None:
        """Choose a piece, or give it back."""
        for node, amounts in piece.frees:
            before, old = self.slots(node), self.freed.get(node)
            if sign < 0:
                assert old is not None
                new = tuple(map(sub, old, amounts))
            else:
                new = amounts if old is None else tuple(map(add, old, amounts))
            self.freed[node] = new
            self.count[node] = after = self.part.slots(node, new)
            self.total += after - before
        if sign > 0:
            self.chosen[piece] = None
        else:
            del self.chosen[piece]

    @property
    def enough(self) -> bool:
        """Whether there is room for all."""
        return self.total >= self.needed


class GrowingSet:
    """A set that grows by what the rules allow as the queues stand at that moment; what they do not allow is barred."""

    def __init__(self, room: FreedRoom, pool: CandidateIndex, rules: CauseRules, scope: SearchScope) -> None:
        self.room = room
        self.pool = pool
        self.rules = rules
        self.scope = scope
        self.barred: set[Piece] = set()

    def closed(self, piece: Piece) -> bool:
        """Whether a piece, or all of its workload, was chosen already, or is barred."""
        chosen = self.room.chosen
        if piece in chosen or piece in self.barred:
            return True
        return any(p.whole and p in chosen for p in self.pool.of(piece.workload))

    def take(self, pieces: Sequence[Piece]) -> bool:
        """Choose pieces if the rules allow all of them now; the one that they do not allow is barred."""
        done: list[tuple[Piece, int]] = []
        with self.rules.session.scenario() as taken:
            if self._allow(pieces, done):
                taken.keep()
                return True
        for piece, sign in reversed(done):
            self.room.change(piece, -sign)
        return False

    def _allow(self, pieces: Sequence[Piece], done: list[tuple[Piece, int]]) -> bool:
        """Take pieces one by one, as far as the rules allow; ``done`` gets what that changes of the room."""
        for piece in pieces:
            refusal = self._ask(piece)
            if refusal is not None:
                self._refused([piece], refusal)
                return False
            for other in self.pool.of(piece.workload) if piece.whole or piece.group else ():
                if other in self.room.chosen and set(other.tasks) <= set(piece.tasks):
                    done.append((other, -1))
                    self.room.change(other, -1)
            done.append((piece, 1))
            self.room.change(piece, 1)
        refusal = self.rules.exchange(list(dict.fromkeys(p.workload for p in pieces)))
        if refusal is not None:
            self._refused([p for p in pieces if self._is_of(p, refusal)] or pieces, refusal)
        return refusal is None

    def _ask(self, piece: Piece) -> Refusal | None:
        """Ask the rules about each stage of which not all was chosen before, and take it off the queues."""
        gone = {t for p in self.pool.of(piece.workload) if p in self.room.chosen for t in p.tasks}
        stages = ((piece, [t for t in stage if t not in gone], core) for stage, core in piece.stages)
        refused = self.rules.take((stage for stage in stages if stage[1]), [])
        return None if refused is None else refused[1]

    def _is_of(self, piece: Piece, refusal: Refusal) -> bool:
        """Whether it was taken from the queue that a refusal is about."""
        queues = self.rules.session.queues
        return queues.index.get(refusal.about, -1) in queues.path[piece.workload.leaf]

    def _refused(self, pieces: Sequence[Piece], refusal: Refusal) -> None:
        """Bar the last of some pieces, unless more is known to be closed than that."""
        if not self.scope.refused(pieces, refusal):
            self.barred.add(pieces[-1])

    def cut(self) -> list[Piece]:
        """Give back what room does not need, the dearest first."""
        room = self.room
        for piece in sorted(room.chosen, key=lambda p: (p.leaf_priority, p.cost, p.rank[0]), reverse=True):
            if room.total - room.loss(piece) >= room.needed:
                room.change(piece, -1)
        return list(room.chosen)


class GreedySets:
    """The sets for a demand of one class of tasks, one after the other; for several classes see `prefix`."""

    def __init__(self, need: RoomDemand, pool: CandidateIndex, rules: CauseRules, scope: SearchScope) -> None:
        self.session = rules.session
        self.need = need
        self.pool = pool
        self.rules = rules
        self.scope = scope
        self.unwanted: list[Unwanted] = []
        self.others = scope.others
        self.most = max(self.others, need.tasks)

    def run(self) -> list[Piece] | None:
        """Give a set by which there is room for the whole step, or None."""
        self.growing = GrowingSet(FreedRoom(self.need, self.others), self.pool, self.rules, self.scope)
        self._known = set[int]()
        self._heap: list[tuple[Key, int, list[Piece]]] = []
        self._coming = PieceStream(self.pool, self.scope.closed)
        self._coming.add(self.pool.candidates.candidate_leaves)
        self.scope.begin()
        with self.session.scenario():
            return self._fill()

    def also(self, tasks: int) -> bool:
        """Make room for others as well, who are served before the contender; False where they ask for more than it."""
        self.others += tasks
        return tasks > 0 and self.others <= self.most

    def leave_out(self, unwanted: Unwanted) -> None:
        """Choose none of some pieces from now on."""
        if unwanted not in self.unwanted:
            self.unwanted.append(unwanted)

    def _fill(self) -> list[Piece] | None:
        """Take the cheapest room for one more task after the other.

        Nodes are looked at when it is the turn of the first piece there: no set on a node comes before that.
        """
        heap, growing = self._heap, self.growing
        while not growing.room.enough:
            while (following := self._coming.peek()) is not None and (not heap or following.floor <= heap[0][0]):
                self._open(following)
                self._coming.take()
            if not heap:
                return None
            _, node, pieces = heappop(heap)
            out = any(growing.closed(p) or self._left_out(p) for p in pieces)
            if not out and growing.take(pieces):
                self._reopen(pieces)
            entry = self._entry(node)
            if entry is not None:
                heappush(heap, entry)
        return growing.cut()

    def _open(self, piece: Piece) -> None:
        """Look at the nodes of a piece that have not been looked at yet."""
        if self._left_out(piece):
            return
        for node, _ in piece.frees:
            if node not in self._known:
                self._known.add(node)
                if (entry := self._entry(node)) is not None:
                    heappush(self._heap, entry)

    def _left_out(self, piece: Piece) -> bool:
        return self.scope.out(piece) or any(unwanted(piece) for unwanted in self.unwanted)

    def _entry(self, node: int) -> tuple[Key, int, list[Piece]] | None:
        """What room for one more task on a node takes."""
        closed, room = self.growing.closed, self.growing.room
        if not room.part.static_list[node]:
            return None
        target = room.slots(node) + 1
        more: Amount | None = None
        found: list[Piece] = []
        for piece in self.pool.at(node):
            if closed(piece) or self._left_out(piece):
                continue
            if (piece.whole or piece.group) and any(p.workload is piece.workload for p in found):
                found = [p for p in found if p.workload is not piece.workload]
                more = _sum(found, node)
            amounts = next(a for n, a in piece.frees if n == node)
            found.append(piece)
            more = amounts if more is None else tuple(map(add, more, amounts))
            if room.slots(node, more) >= target:
                all_but_the_last = reversed(found[:-1])
                needed = needed_of(found, lambda some: room.slots(node, _sum(some, node)) >= target, all_but_the_last)
                return key_of(self.session.settings, needed), node, needed
        return None

    def _reopen(self, pieces: Iterable[Piece]) -> None:
        """Look at what is open now that some pieces are taken."""
        if not self.growing.room.enough:
            leaves = dict.fromkeys(leaf for p in pieces for leaf in self.scope.taken(p))
            if leaves:
                self._known = {node for _, node, _ in self._heap}
                beyond = self.pool.beyond(leaves)
                again = (c for c in self.pool.candidates.candidate_leaves if c.leaf in leaves)
                self._coming.add([*again, *beyond])


def _sum(pieces: Sequence[Piece], node: int) -> Amount | None:
    found: Amount | None = None
    for piece in pieces:
        for number, amounts in piece.frees:
            if number == node:
                found = amounts if found is None else tuple(map(add, found, amounts))
    return found


def prefix(need: RoomDemand, pieces: Iterable[Piece]) -> list[Piece] | None:
    """For a step of several classes: the shortest beginning of the order that would do, cut to what room needs."""
    chosen: list[Piece] = []
    for piece in pieces:
        if any(p.workload is piece.workload and p.whole for p in chosen):
            continue
        if piece.whole or piece.group:
            chosen = [p for p in chosen if not set(p.tasks) <= set(piece.tasks)]
        chosen.append(piece)
        if need.met(chosen):
            break
    else:
        return None
    return needed_of(chosen, need.met)
