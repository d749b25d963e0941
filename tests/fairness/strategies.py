"""Random queue trees for the tests of fair shares."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

from hypothesis import strategies as st
from tests.made_once import integers, pick

from tenure.fairness.shares import fair_shares
from tenure.fairness.tree import TOP, ShareQueue, effective_guaranteed, queue_tree


@dataclass(frozen=True)
class Case:
    """A tree, one resource, and what its leaves ask for (0 at inner queues)."""

    queues: tuple[ShareQueue, ...]
    total: int
    request: tuple[int, ...]
    unit: int

    def shares(self, history=None):
        """Give the fair share of each queue."""
        rows = fair_shares(queue_tree(self.queues, [self.unit]), [self.total], [[r] for r in self.request], history)
        return [row[0] for row in rows]

    def sibling_sets(self):
        """Give parent and children of every sibling set."""
        children = {}
        for index, queue in enumerate(self.queues):
            children.setdefault(queue.parent, []).append(index)
        return children

    def leaves(self):
        """Give the queues without children."""
        return [index for index in range(len(self.queues)) if index not in self.sibling_sets()]

    def maximum(self, index):
        """Give the maximum of a queue as a number."""
        limit = self.queues[index].maximum[0]
        return float("inf") if limit is None else limit

    def demand(self):
        """Give min(max, request) of every queue, requests summed up the tree."""
        demand = list(self.request)
        for index in reversed(range(len(demand))):
            demand[index] = min(demand[index], self.maximum(index))
            if self.queues[index].parent != TOP:
                demand[self.queues[index].parent] += demand[index]
        return demand

    def floors(self):
        """Give what step 1 gives to every queue."""
        guaranteed = effective_guaranteed([q.parent for q in self.queues], [q.guaranteed for q in self.queues])
        return [min(row[0], wanted) for row, wanted in zip(guaranteed, self.demand(), strict=True)]

    def with_request(self, index, amount):
        """Give the same case with another request of one leaf."""
        return replace(self, request=(*self.request[:index], amount, *self.request[index + 1 :]))


WEIGHTS = (1, 1, 1, 2, 3, 0.5, 0.1, 0.3, 0, 7.25)
EQUAL = (1,)


@cache
def _amounts(most, step):
    """Give strategies for an amount: there is one, perhaps, and seldom."""
    amounts = st.integers(0, most).map(lambda n: n * step)
    return amounts, st.none() | amounts, st.none() | st.none() | amounts


@st.composite
def cases(draw, *, max_queues=12, flat=False, weights=WEIGHTS, priorities=(100, 100, 50), unit=None, whole=False):
    """Draw a small tree, often short of its resource; amounts are whole units or, without ``whole``, quarters."""
    unit = pick(draw, (1, 4)) if unit is None else unit
    step = unit if whole else max(1, unit // 4)
    amounts, perhaps, seldom = _amounts(20 * (unit // step), step)
    queues = []
    for index in range(draw(integers(1, max_queues))):
        parent = TOP if flat else pick(draw, (TOP, TOP, min(0, index - 1), min(1, index - 1), index - 1))
        queue = ShareQueue(
            name=f"q{draw(integers(0, 9))}-{index}",
            parent=parent,
            guaranteed=[draw(perhaps)],
            maximum=[draw(seldom)],
            weight=[pick(draw, weights)],
            priority=pick(draw, priorities),
            created=draw(integers(0, 3)),
        )
        queues.append(queue)
    parents = {queue.parent for queue in queues}
    request = tuple(0 if index in parents else draw(amounts) for index in range(len(queues)))
    return Case(tuple(queues), draw(integers(0, 30 * (unit // step))) * step, request, unit)
