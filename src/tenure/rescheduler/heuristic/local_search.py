"""A search for moves that improve the layout: single tasks, and whole nodes that become empty (spec 7, triggers).

It moves on the session itself, with the scheduler's own fit rules, inside a checkpoint that is undone in the end. Every
move that it keeps pays for itself, more than ``least`` for each unit of disruption, and no task moves twice; it goes on
until nothing more pays, so that a second search on what it leaves finds nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from typing import NamedTuple

import numpy as np

from tenure.engine.state.cost import MICRO, cost
from tenure.engine.state.evictions import evict
from tenure.engine.state.workloads import TaskState
from tenure.model.workload import NODE_OWNERS
from tenure.rescheduler.memory import CAUSE
from tenure.rescheduler.problem.build import own_domain, units_of
from tenure.rescheduler.problem.layout import Floats, LayoutWorth, Mask
from tenure.rescheduler.problem.utilization import NodeUtilization
from tenure.rescheduler.problem.waiting import fitting
from tenure.victims.recording.state import EvictionState

STEPS = 20_000
"""How often a search looks where one task could go: a bound in steps, so that the same cluster gives the same plan."""
NOTHING = 1e-9
"""A gain below this is the noise of floating point."""


class ImprovingMove(NamedTuple):
    """A task that moves, and its target."""

    task: TaskState
    target: int


class LocalSearchResult(NamedTuple):
    """The moves that a local search found, their gain in weighted resources, their cost, and whether it was cut off."""

    moves: tuple[ImprovingMove, ...]
    gain: float
    cost: int
    cut_off: bool


class LocalSearch:
    """A local search for moves that improve a layout. ``targets``: ``bool[nodes]``, where anything may land at all."""

    def __init__(
        self, state: EvictionState, tasks: Sequence[TaskState], worth: LayoutWorth, targets: Mask, least: float
    ) -> None:
        self.state = state
        self.session = state.session
        self.worth = worth
        self.least = least
        self.tasks = list(tasks)
        self.number = {task: n for n, task in enumerate(self.tasks)}
        self.unit = units_of(self.tasks).tolist()
        self.cost = {t: max(1, -(-cost(self.session, t) // MICRO)) for t in self.tasks}
        self.rows = state.plugins.budgets.rows(self.session, CAUSE, None, self.tasks)
        self.used = [0] * len(self.rows)
        nodes = self.session.nodes
        draining = np.fromiter((n.drain for n in nodes.nodes), bool, len(nodes))
        closed = (nodes.room[nodes.rows :] < 0).any(axis=0)
        self.targets = targets & nodes.ready & ~draining & ~closed
        utilization = NodeUtilization(self.session) if self.session.settings.rescheduler.hot_nodes.enabled else None
        self.utilization = utilization if utilization is not None and utilization.known else None
        self.steps = STEPS
        self.moves: list[ImprovingMove] = []
        self.moved: set[TaskState] = set()
        self.units: set[int] = set()

    def run(self) -> LocalSearchResult:
        """Search, and leave the session as it was."""
        with self.session.scenario():
            fits = fitting(self.state)
            before = self._total()
            while self._singles() | self._empties():
                pass
            gain = self._total() - before + self._liked()
            blocks = [w for w in fits if w not in fitting(self.state, fits)]
        total = sum(self.cost[m.task] for m in self.moves)
        if blocks or not self._pays(gain, total):
            return LocalSearchResult((), 0.0, 0, self.steps <= 0)
        return LocalSearchResult(tuple(self.moves), gain, total, self.steps <= 0)

    def trial(self, moves: Sequence[ImprovingMove]) -> LocalSearchResult | None:
        """Try moves that were found elsewhere, all together; None if they do not hold here."""
        with self.session.scenario():
            fits = fitting(self.state)
            before = self._total()
            holds = self._all_together(moves)
            gain = self._total() - before + self._liked()
            holds = holds and len(fitting(self.state, fits)) == len(fits)
        total = sum(self.cost[m.task] for m in moves)
        return (
            LocalSearchResult(tuple(moves), gain, total, cut_off=False) if holds and self._pays(gain, total) else None
        )

    def _total(self) -> float:
        worth = self.worth
        return sum(map(worth.of, range(len(self.session.nodes)))) - worth.scattered()

    def _liked(self) -> float:
        """What the moves so far gain in preferences."""
        found = 0.0
        for task, target in self.moves:
            liking = self.worth.liking(task)
            if liking is not None:
                found += float(liking[target] - liking[task.leaving])
        return found

    def _pays(self, gain: float, total: int) -> bool:
        return gain > NOTHING and gain > self.least * total

    # -- what a task may do -----------------------------------------------------------------------------------------

    def _open(self, task: TaskState) -> bool:
        """Whether a task may still move: it has not, no mate of its core has, and budgets leave one more."""
        unit = self.unit[self.number[task]]
        if task in self.moved or (unit >= 0 and unit in self.units):
            return False
        return self._within([task])

    def _within(self, tasks: Sequence[TaskState]) -> bool:
        numbers = [self.number[t] for t in tasks]
        for row, used in zip(self.rows, self.used, strict=True):
            weight = sum(row.weights.get(n, 0) for n in numbers)
            if weight and (used + weight > row.bound if not row.concurrent else row.bound <= 0):
                return False
        return True

    def _best(self, task: TaskState, avoid: Mask | None = None, prefer: Floats | None = None) -> tuple[int, float]:
        """Where a task that has just been evicted lands best, and what the layout gains by its landing; -1: nowhere.

        Of equal places that with the most of ``prefer`` (``float64[nodes]``) is taken, else the first.
        """
        self.steps -= 1
        scorer, cls = self.session.scorer, task.cls
        _, then = scorer.fits(cls, slice(None))
        then = then & self.targets
        then[task.leaving] = False
        if avoid is not None:
            then &= ~avoid
        domain = own_domain(self.session, task, task.leaving)
        if domain is not None:
            then &= domain
        if self.utilization is not None:
            then &= self.utilization.spares(task)
        preference = cls.preference if cls.preference is not None else None
        if task.terms is not None:
            terms = self.session.terms.admission
            then &= terms.masks(task.terms)[1]
            among = terms.preference(task.terms)
            if among is not None:
                preference = among if preference is None else preference + among
        if preference is not None:
            then &= preference >= preference[task.leaving]
        if not then.any():
            return -1, 0.0
        worth = self.worth.arrival(cls)
        liking = self.worth.liking(task)
        if liking is not None:
            worth = worth + liking - liking[task.leaving]
        worth = np.where(then, worth, -np.inf)
        best = int(worth.argmax())
        if prefer is not None:
            best = int(np.where(worth >= worth[best] - NOTHING, prefer, -np.inf).argmax())
        return best, float(worth[best])

    def _put(self, task: TaskState, target: int) -> None:
        self.state.placer.put(task, target, bindable=False)

    def _keep(self, task: TaskState, target: int) -> None:
        """Note a move that was made."""
        number = self.number[task]
        self.moves.append(ImprovingMove(task, target))
        self.moved.add(task)
        if self.unit[number] >= 0:
            self.units.add(self.unit[number])
        for n, row in enumerate(self.rows):
            self.used[n] += row.weights.get(number, 0)
        if self.utilization is not None:
            self.utilization.move(task, target)

    # -- single tasks -----------------------------------------------------------------------------------------------

    def _singles(self) -> bool:
        """Make the moves of single tasks that pay best, until none does; what changes meanwhile is looked at again."""
        groups = self._alike()
        heap = []
        for key, group in groups.items():
            ratio, _ = self._ratio(group)
            if ratio > 0.0:
                heap.append((-ratio, key))
        heapify(heap)
        any_moved = False
        while heap and self.steps > 0:
            expected, key = heappop(heap)
            ratio, target = self._ratio(groups[key])
            if ratio <= 0.0:
                continue
            if heap and -ratio > heap[0][0] + NOTHING and -ratio > expected + NOTHING:
                heappush(heap, (-ratio, key))
                continue
            task = self._first(groups[key])
            assert task is not None
            evict(self.session, task)
            self._put(task, target)
            self._keep(task, target)
            any_moved = True
            ratio, _ = self._ratio(groups[key])
            if ratio > 0.0:
                heappush(heap, (-ratio, key))
        return any_moved

    def _alike(self) -> dict[tuple[str, str], list[TaskState]]:
        """Tasks that would gain the same anywhere, the cheapest first, by the name of the first."""
        found: dict[tuple[object, ...], list[TaskState]] = {}
        for task in self.tasks:
            if task not in self.moved:
                warm = 0 if self.utilization is None else self.utilization.spares(task).tobytes()
                found.setdefault((task.node, task.cls.id, id(task.terms), warm), []).append(task)
        groups = [sorted(g, key=lambda t: (self.cost[t], t.workload.key, t.index)) for g in found.values()]
        return {(g[0].workload.key, g[0].name): g for g in groups}

    def _first(self, group: Sequence[TaskState]) -> TaskState | None:
        return next((t for t in group if self._open(t)), None)

    def _ratio(self, group: Sequence[TaskState]) -> tuple[float, int]:
        """Gain for each unit of disruption of a group's first task, 0 if it does not pay, and the target."""
        task = self._first(group)
        if task is None or self.steps <= 0:
            return 0.0, -1
        session, worth, origin = self.session, self.worth, task.node
        with session.scenario():
            before = worth.of(origin) - worth.scattered()
            evict(session, task)
            left = worth.of(origin) - worth.scattered() - before
            target, arrived = self._best(task)
            gain = left + arrived
            if target >= 0 and (worth.terms.whole or worth.terms.scattered) and self._pays(gain, self.cost[task]):
                gain += self._correction(task, target, arrived)  # what devices it takes is known once it is there
        if target < 0 or not self._pays(gain, self.cost[task]):
            return 0.0, -1
        return gain / self.cost[task], target

    def _correction(self, task: TaskState, target: int, expected: float) -> float:
        worth = self.worth
        before = worth.of(target) - worth.scattered()
        self._put(task, target)
        liking = worth.liking(task)
        liked = 0.0 if liking is None else float(liking[target] - liking[task.leaving])
        return worth.of(target) - worth.scattered() - before + liked - expected

    # -- whole nodes ------------------------------------------------------------------------------------------------

    def _empties(self) -> bool:
        """Empty the nodes that pay best for what has to move off them, where all of that finds a place."""
        if not self.worth.terms.whole:
            return False
        ranked = []
        settles: Floats = np.full(len(self.session.nodes), np.inf)  # how dear it is to empty each node
        for node in range(len(self.session.nodes)):
            tasks = self._occupants(node)
            price = self.worth.terms.whole * float(self.worth.price[node])
            total = sum(self.cost[t] for t in tasks or ())
            if tasks and self._pays(price, total):
                ranked.append((-price / total, node, tasks))
                settles[node] = total / price
        done = [self._empty(node, tasks, settles) for _, node, tasks in sorted(ranked, key=lambda r: r[:2])]
        return any(done)

    def _occupants(self, node: int) -> list[TaskState] | None:
        """Give the tasks that have to leave a node so that it is empty; None where one must not."""
        if self.worth.idle()[node]:
            return None
        there = [
            t for t in self.session.on_node[node]
            if t.leaving != node and t.workload.model.owner_kind not in NODE_OWNERS
        ]  # fmt: skip
        if any(t not in self.number or t.node != node or t in self.moved for t in there):
            return None
        units = [self.unit[self.number[t]] for t in there]
        for unit in {u for u in units if u >= 0}:
            if unit in self.units or 1 < units.count(unit) < self.unit.count(unit):
                return None
        return sorted(there, key=lambda t: (-self.worth.weight(t.cls), t.workload.key, t.index))

    def _empty(self, node: int, tasks: list[TaskState], settles: Floats) -> bool:
        if tasks != self._occupants(node) or not self._within(tasks) or self.steps <= 0:
            return False
        with self.session.scenario() as emptied:
            gain, places = self._empty_out(node, tasks, settles)
            if len(places) < len(tasks) or not self._pays(gain, sum(self.cost[t] for t in tasks)):
                return False
            emptied.keep()
        for task, target in zip(tasks, places, strict=True):
            self._keep(task, target)
        return True

    def _empty_out(self, node: int, tasks: list[TaskState], settles: Floats) -> tuple[float, list[int]]:
        """Move tasks off a node one by one; gives the gain, and where they went as far as there was a place."""
        worth = self.worth
        idle = worth.idle().copy()
        idle[node] = True
        before = {node: worth.of(node)}
        scattered = worth.scattered()
        for task in tasks:
            evict(self.session, task)
        places: list[int] = []
        for task in tasks:
            target, _ = self._best(task, idle, settles)
            if target < 0:
                break
            before.setdefault(target, worth.of(target))
            self._put(task, target)
            places.append(target)
            if self.utilization is not None:
                self.utilization.move(task, target)
        gain = sum(worth.of(n) - b for n, b in before.items()) + scattered - worth.scattered()
        if self.utilization is not None:
            for task, target in zip(tasks, places, strict=False):
                self.utilization.move_back(task, target)
        return gain, places

    def _all_together(self, moves: Sequence[ImprovingMove]) -> bool:
        if not self._within([m.task for m in moves]):
            return False
        for task, _ in moves:
            evict(self.session, task)
        for task, target in moves:
            if self.utilization is not None and not self.utilization.spares(task)[target]:
                return False
            if not self.state.placer.fits_later(task, target):
                return False
            self._put(task, target)
            self._keep(task, target)
        return True
