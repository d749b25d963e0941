"""Beam search for a plan: who waits for a place is placed one after the other, and many half-made plans are kept.

What leaves a node for another task waits for a place in turn, so chains of any length come about. Half-made plans are
compared by what they have cost and what those without a place will cost at least, each on its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tenure.rescheduler.heuristic.places import PlacementOption, PlannedNodes
from tenure.rescheduler.milp.cover_bounds import NEVER
from tenure.rescheduler.problem.definition import Mask, MemberLanding, MoveProblem, TaskMove

SNUG = 3
"""How many nodes are tried among those that have room."""
CLEARED = 6
"""How many nodes are tried among those that have to be cleared."""


class UnplacedItem(NamedTuple):
    """A task without a place, with its number, or a member of an ask (``task`` -1)."""

    bulk: float
    cls: int
    task: int
    ask: int
    path: frozenset[int] = frozenset()


def _order(item: UnplacedItem) -> tuple[float, int, int, int]:
    return item[:4]


class BeamStep(NamedTuple):
    """An item got a place, after what was done before."""

    item: UnplacedItem
    node: int
    shape: int
    before: BeamStep | None


@dataclass(slots=True)
class PartialPlan:
    """A half-made plan.

    ``changed`` gives for the nodes it touched the place they have become; ``cheapest`` for each class without a place
    the least price there is, and the node; ``waiting`` is sorted, who is placed next at the end.
    """

    cost: int
    ahead: int
    waiting: tuple[UnplacedItem, ...]
    changed: dict[int, int]
    units: frozenset[int]
    used: tuple[int, ...]
    cheapest: dict[int, tuple[int, int]]
    steps: BeamStep | None

    def rank(self) -> tuple[int, float, int]:
        """Compare half-made plans: the least cost in sight, then the least that is left to be placed."""
        return self.cost + self.ahead, sum(i.bulk for i in self.waiting), len(self.changed)


Found = tuple[int, tuple[TaskMove, ...], tuple[MemberLanding, ...]]


class BeamSearch:
    """A beam search: ``members`` may land on ``where`` (by entry of ``asks``), below the cost ``limit``."""

    def __init__(self, places: PlannedNodes, where: Sequence[Mask], limit: int, width: int) -> None:
        self.problem: MoveProblem = places.problem
        self.places = places
        self.where = where
        self.limit = limit
        self.width = width
        self.bounds = [b for b in self.problem.bounds if not b.concurrent or b.limit <= 0]
        self.members: dict[int, list[int]] = {}
        for task in np.flatnonzero(self.problem.unit >= 0).tolist():
            self.members.setdefault(int(self.problem.unit[task]), []).append(task)
        self.best: PartialPlan | None = None
        self.loops = False

    def run(self, *, members_first: bool, loops: bool = False) -> Found | None:
        """Search, layer by layer, and give the cheapest plan that came up.

        ``loops``: a chain may push out one of a class that it began with. That seldom helps, and tempts with steps
        that are cheap.
        """
        self.loops = loops
        layer = [self._start(members_first=members_first)]
        while layer:
            children: dict[object, PartialPlan] = {}
            for partial in layer:
                for child in self._children(partial):
                    if not child.waiting:
                        if child.cost < self.limit:
                            self.best, self.limit = child, child.cost
                        continue
                    key = (child.waiting, frozenset(child.changed.values()))
                    known = children.get(key)
                    if known is None or child.cost < known.cost:
                        children[key] = child
            alive = [c for c in children.values() if c.cost + c.ahead < self.limit]
            alive.sort(key=PartialPlan.rank)
            layer = alive[: self.width]
        return None if self.best is None else self._found(self.best)

    def _start(self, *, members_first: bool) -> PartialPlan:
        problem = self.problem
        items = []
        for number, ask in enumerate(problem.asks):
            bulk = float(max(self.places.bulk[s] for s in problem.shapes[ask.cls]))
            items += [UnplacedItem(bulk + (1000.0 if members_first else 0.0), 2 * ask.cls + 1, -1, number)] * ask.count
        return PartialPlan(0, 0, tuple(sorted(items, key=_order)), {}, frozenset(), (0,) * len(self.bounds), {}, None)

    # -- from one half-made plan to the next ----------------------------------------------------------------------

    def _children(self, partial: PartialPlan) -> Iterator[PartialPlan]:
        item = partial.waiting[-1]
        for option in self._ways(partial, item):
            if not self.loops and any(2 * int(self.problem.cls[t]) in item.path for t in option.gone):
                continue
            child = self._placed(partial, item, option)
            if child is not None:
                yield child

    def _ways(self, partial: PartialPlan, item: UnplacedItem) -> list[PlacementOption]:
        """Options for an item: a few nodes that have room, the tightest first, and a few that have to be cleared."""
        places, changed, cls = self.places, partial.changed, item.cls
        closed = self._closed(partial, item)
        where = self.where[item.ask] if item.ask >= 0 else None
        free: list[PlacementOption] = []
        rooms = set()
        for node in places.snug(cls):
            if node in changed or node == closed or (where is not None and not where[node]):
                continue
            room = places.places[node].room
            if room not in rooms:
                rooms.add(room)
                free.append(places.options(node, cls)[0])
                if len(free) == SNUG:
                    break
        cleared: list[PlacementOption] = []
        for node, place in changed.items():
            if node == closed or (where is not None and not where[node]):
                continue
            options = places.options(place, cls)
            (free if options and not options[0].gone else cleared).extend(options)
        tried = 0
        for price, node in places.ranked(cls):
            if price == 0 or node in changed or node == closed or (where is not None and not where[node]):
                continue
            if partial.cost + price >= self.limit or tried == CLEARED:
                break
            tried += 1
            cleared.extend(places.options(node, cls))
        cleared.sort(key=lambda o: o.price)
        free.sort(key=lambda o: sum(places.places[o.place].room))
        return free[: 2 * SNUG] + cleared[: CLEARED if not free else 2]

    def _closed(self, partial: PartialPlan, item: UnplacedItem) -> int:
        """Where it may not land: its own node, unless its whole core goes and it only restarts."""
        if item.task < 0:
            return -1
        unit = int(self.problem.unit[item.task])
        if unit >= 0 and all(t in partial.units for t in self.members[unit]):
            return -1
        return int(self.problem.node[item.task])

    def _placed(self, partial: PartialPlan, item: UnplacedItem, option: PlacementOption) -> PartialPlan | None:
        problem, places = self.problem, self.places
        node = places.places[option.place].node
        changed = dict(partial.changed)
        changed[node] = option.place
        touched = [node]
        gone, units = option.gone, partial.units
        along = self._along(gone, units)
        for task in along:
            origin = int(problem.node[task])
            changed[origin] = places.without(changed.get(origin, origin), (task,))
            touched.append(origin)
        gone = (*gone, *along)
        cost = partial.cost + sum(int(problem.cost[t]) for t in gone)
        if cost >= self.limit:
            return None
        used = partial.used
        if self.bounds and gone:
            used = tuple(u + sum(b.weights.get(t, 0) for t in gone) for u, b in zip(used, self.bounds, strict=True))
            if any(u > max(0, b.limit) for u, b in zip(used, self.bounds, strict=True)):
                return None
        units |= {t for t in gone if problem.unit[t] >= 0}
        waiting = partial.waiting[:-1]
        if gone:
            path = item.path | {item.cls}
            new = [
                UnplacedItem(float(places.bulk[problem.shape[t]]), 2 * int(problem.cls[t]), t, -1, path) for t in gone
            ]
            waiting = tuple(sorted((*waiting, *new), key=_order))
        cheapest, ahead = self._ahead(partial, waiting, changed, touched)
        if cost + ahead >= self.limit:
            return None
        return PartialPlan(
            cost, ahead, waiting, changed, units, used, cheapest, BeamStep(item, node, option.shape, partial.steps)
        )

    def _along(self, gone: tuple[int, ...], units: frozenset[int]) -> list[int]:
        """Who has to go along: of a core one task goes alone, or all do."""
        found: list[int] = []
        for unit in {int(self.problem.unit[t]) for t in gone} - {-1}:
            mates = self.members[unit]
            if sum(t in gone or t in units for t in mates) > 1:
                found += [t for t in mates if t not in gone and t not in units]
        return found

    def _ahead(
        self, partial: PartialPlan, waiting: Sequence[UnplacedItem], changed: Mapping[int, int], touched: Sequence[int]
    ) -> tuple[dict[int, tuple[int, int]], int]:
        """What those without a place cost at least, each on its own, as things are."""
        cheapest: dict[int, tuple[int, int]] = {}
        ahead = 0
        for item in waiting:
            cls = item.cls
            if cls not in cheapest:
                known = partial.cheapest.get(cls)
                if known is None or known[1] in touched:
                    cheapest[cls] = self._cheapest(cls, changed)
                else:
                    options = [(self._price(changed[n], cls), n) for n in touched]
                    cheapest[cls] = min(known, *options)
            ahead += cheapest[cls][0]
        return cheapest, ahead

    def _price(self, place: int, cls: int) -> int:
        options = self.places.options(place, cls)
        return options[0].price if options else NEVER

    def _cheapest(self, cls: int, changed: Mapping[int, int]) -> tuple[int, int]:
        best = min(((self._price(place, cls), node) for node, place in changed.items()), default=(NEVER, -1))
        first = next(((price, node) for price, node in self.places.ranked(cls) if node not in changed), best)
        return min(best, first)

    # -- the plan -------------------------------------------------------------------------------------------------

    def _found(self, partial: PartialPlan) -> Found:
        moves, landings = [], []
        step = partial.steps
        while step is not None:
            item, node, shape, before = step
            if item.task >= 0:
                moves.append(TaskMove(item.task, int(self.problem.node[item.task]), node, shape))
            else:
                landings.append(MemberLanding(item.ask, node, shape))
            step = before
        moves.sort(key=lambda m: m.task)
        return partial.cost, tuple(moves), tuple(sorted(landings, key=lambda x: x.ask))
