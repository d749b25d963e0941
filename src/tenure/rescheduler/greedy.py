"""The greedy plan: member by member onto the node that is cheapest to clear, what leaves it landing elsewhere.

What leaves may push others away in turn, a few hops deep. Nothing moves twice. Large loose clusters are solved well
this way; in tight ones it misses plans that the exact one finds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tenure.rescheduler.cover import ENUMERATED, NEVER, Cover, subsets
from tenure.rescheduler.problem import Ask, Ints, Landing, Move, Problem

HOPS = 3
"""How deep a chain of moves may go."""
SETS = 6
"""How many sets of tasks are tried on one node."""
NODES = (0, 3, 6, 16)
"""How many nodes are tried for one landing that needs others to move, by the hops that are left."""
STEPS = 800
"""How often an attempt tries to clear a node: a bound in steps, so that the same problem gives the same plan."""


State = tuple[Ints, dict[int, tuple[int, int]], set[int], int, int]
Nodes = NDArray[np.bool_]


class Prices:
    """What one task of a class needs to have moved off each node at least, as things stand before any move."""

    def __init__(self, problem: Problem) -> None:
        self._anywhere = replace(problem, domain=np.zeros((1, problem.size), np.int64))
        self._known: dict[int, Ints] = {}

    def of(self, cls: int) -> Ints:
        """Give the prices of a class: ``int64[nodes]``."""
        if cls not in self._known:
            least = Cover(self._anywhere, Ask(group=0, cls=cls, count=1)).least
            never = np.full(self._anywhere.size, NEVER, np.int64)
            self._known[cls] = least[:, 1] if least.shape[1] > 1 else never
        return self._known[cls]


class Greedy:
    """One attempt: room as it is so far, who moved where, and what that cost."""

    def __init__(self, problem: Problem, prices: Prices, hops: int, effort: int = 1) -> None:
        self.problem = problem
        self.hops = hops
        self.prices = prices
        self.steps = STEPS * effort
        self.takes = problem.takes()
        self.scale = np.maximum(1, problem.ask.max(axis=0, initial=1))
        self.room = problem.free.copy()
        self.target: dict[int, tuple[int, int]] = {}
        self.leaving: set[int] = set()
        self.landings: list[Landing] = []
        self.cost = 0
        order = np.argsort(problem.node, kind="stable")
        places = np.searchsorted(problem.node[order], np.arange(problem.size + 1))
        self.on = [order[places[n] : places[n + 1]].tolist() for n in range(problem.size)]
        self.members: dict[int, list[int]] = {}
        for task in np.flatnonzero(problem.unit >= 0).tolist():
            self.members.setdefault(int(problem.unit[task]), []).append(task)

    # -- changes that can be taken back ---------------------------------------------------------------------------

    def _state(self) -> State:
        return self.room.copy(), dict(self.target), set(self.leaving), len(self.landings), self.cost

    def _restore(self, state: State) -> None:
        self.room, self.target, self.leaving = state[0].copy(), dict(state[1]), set(state[2])
        del self.landings[state[3] :]
        self.cost = state[4]

    # -- one plan -------------------------------------------------------------------------------------------------

    def place(self, ask: int, nodes: Sequence[int]) -> bool:
        """Place one member of an ask after the other on the cheapest of ``nodes``."""
        wanted = self.problem.asks[ask]
        allowed = np.zeros(self.problem.size, bool)
        allowed[list(nodes)] = True
        return all(self._member(ask, wanted.cls, allowed) for _ in range(wanted.count))

    def place_at(self, ask: int, nodes: Sequence[int]) -> bool:
        """Place members on the nodes that are named, as often as they are named."""
        cls = self.problem.asks[ask].cls
        for node in nodes:
            found = self._clear(cls, node, self.hops, frozenset((node,)))
            if found < 0:
                return False
            self._take(node, found)
            self.landings.append(Landing(ask, node, found))
        return True

    def _member(self, ask: int, cls: int, allowed: Nodes) -> bool:
        found = self._best(cls, allowed, self.hops, frozenset())
        if found is None:
            return False
        node, shape = found
        self._take(node, shape)
        self.landings.append(Landing(ask, node, shape))
        return True

    def _take(self, node: int, shape: int) -> None:
        self.room[:, node] -= self.problem.ask[shape]

    def _fits(self, cls: int, allowed: Nodes) -> tuple[int, int] | None:
        """The fullest node on which one of the class fits as it is."""
        problem, best = self.problem, None
        for shape in problem.shapes[cls]:
            ask = problem.ask[shape]
            mask = allowed & problem.allowed[shape] & (self.room >= ask[:, None]).all(axis=0)
            index = np.flatnonzero(mask)
        if len(index):
            left = ((self.room[:, index] - ask[:, None]) / self.scale[:, None]).sum(axis=0)
            at = int(left.argmin())
            if best is None or left[at] < best[0]:
                best = (float(left[at]), int(index[at]), shape)
        return None if best is None else (best[1], best[2])

    def _best(self, cls: int, allowed: Nodes, hops: int, path: frozenset[int]) -> tuple[int, int] | None:
        """Find the node where one of the class lands at least cost, and clear it."""
        free = self._fits(cls, allowed)
        if free is not None:
            return free
        if hops == 0:
            return None
        before, base = self._state(), self.cost
        best: tuple[int, int, int, State] | None = None
        for bound, node in self._ranked(cls, allowed, path)[: NODES[hops]]:
            if self.steps <= 0 or (best is not None and bound >= best[0]):
                break
            shape = self._clear(cls, node, hops, path | {node})
            if shape >= 0 and (best is None or self.cost - base < best[0]):
                best = (self.cost - base, node, shape, self._state())
            self._restore(before)
        if best is None:
            return None
        self._restore(best[3])
        return best[1], best[2]

    def _ranked(self, cls: int, allowed: Nodes, path: frozenset[int]) -> list[tuple[int, int]]:
        """Nodes by what clearing them costs at least, the cheapest first."""
        problem = self.problem
        price = np.where(allowed, self.prices.of(cls), NEVER)
        touched = {int(problem.node[t]) for t in self.leaving} | {n for n, _ in self.target.values()}
        touched |= {x.node for x in self.landings}
        for node in touched:
            if allowed[node]:
                found = [next((p for p, _ in self._sets(node, s)), NEVER) for s in problem.shapes[cls]]
                price[node] = min(found)
        price[list(path)] = NEVER
        order = np.argsort(price, kind="stable")[: max(NODES)]
        return [(int(price[n]), int(n)) for n in order.tolist() if price[n] < NEVER]

    def _sets(self, node: int, shape: int) -> Iterator[tuple[int, list[int]]]:
        """Sets of tasks whose leaving makes room for one shape, the cheapest first."""
        problem = self.problem
        if not problem.allowed[shape, node]:
            return
        missing = problem.ask[shape] - self.room[:, node]
        rows = np.flatnonzero(missing > 0)
        there = [t for t in self.on[node] if t not in self.target and t not in self.leaving]
        useful = [t for t in there if (self.takes[t, rows] > 0).any()]
        useful.sort(key=lambda t: (int(problem.cost[t]), t))
        useful = useful[:ENUMERATED]
        if not useful:
            return
        chosen = subsets(len(useful))
        enough = (chosen @ self.takes[useful][:, rows] >= missing[rows]).all(axis=1)
        prices = np.where(enough, chosen @ problem.cost[useful], NEVER)
        for index in np.argsort(prices, kind="stable")[:SETS].tolist():
            if prices[index] >= NEVER:
                return
            yield int(prices[index]), [t for t, is_in in zip(useful, chosen[index].tolist(), strict=True) if is_in]

    def _clear(self, cls: int, node: int, hops: int, path: frozenset[int]) -> int:
        """Make room for one of the class on a node; gives its shape, or -1 with nothing changed."""
        problem = self.problem
        for shape in problem.shapes[cls]:
            if not problem.allowed[shape, node]:
                continue
            if (self.room[:, node] >= problem.ask[shape]).all():
                return shape
            state = self._state()
            for _, tasks in self._sets(node, shape):
                self.steps -= 1
                if self.steps < 0:
                    return -1
                if self._send_away(tasks, node, shape, hops, path):
                    return shape
                self._restore(state)
        return -1

    def _send_away(self, tasks: list[int], node: int, shape: int, hops: int, path: frozenset[int]) -> bool:
        """Evict tasks, keep the hole, and land them all elsewhere."""
        problem = self.problem
        going = self._with_units(tasks)
        if going is None:
            return False
        for task in going:
            self.room[:, problem.node[task]] += self.takes[task]
            self.leaving.add(task)
            self.cost += int(problem.cost[task])
        if not self._within_budgets():
            return False
        self._take(node, shape)
        size = self.takes / self.scale
        for task in sorted(going, key=lambda t: (-float(size[t].sum()), t)):
            allowed = np.ones(problem.size, bool)
            allowed[list(path)] = False
            if len(going) == 1 or problem.unit[task] < 0:
                allowed[problem.node[task]] = False
            found = self._best(int(problem.cls[task]), allowed, hops - 1, path)
            if found is None:
                return False
            self._take(*found)
            self.target[task] = found
        self.room[:, node] += problem.ask[shape]  # who asked takes it
        return True

    def _with_units(self, tasks: list[int]) -> list[int] | None:
        """Add what has to go along; None if a part of that has gone already."""
        going = dict.fromkeys(tasks)
        for task in tasks:
            unit = int(self.problem.unit[task])
            if unit < 0:
                continue
            mates = self.members[unit]
            gone = [t for t in mates if t in self.target or t in self.leaving]
            if gone:
                return None
            if sum(t in going for t in mates) > 1:
                going.update(dict.fromkeys(mates))
        return list(going)

    def _within_budgets(self) -> bool:
        return all(
            sum(b.weights.get(t, 0) for t in self.leaving) <= b.limit
            for b in self.problem.bounds
            if not b.concurrent or b.limit <= 0
        )

    def moves(self) -> tuple[Move, ...]:
        """Give what moves, by number of the task."""
        problem = self.problem
        return tuple(
            Move(task, int(problem.node[task]), node, shape) for task, (node, shape) in sorted(self.target.items())
        )


Found = tuple[int, tuple[Move, ...], tuple[Landing, ...]]


def greedy(problem: Problem, covers: Sequence[Cover], effort: int = 1) -> Found | None:
    """Give cost, moves and landings of the best of several attempts; None if all of them fail.

    ``effort``: how many times the usual number of steps each may take.
    """
    best: Found | None = None
    prices = Prices(problem)
    bound = max((int(c.total[-1]) for c in covers), default=0)
    attempts = [(hops, attempt) for hops in range(1, HOPS + 1) for attempt in (_by_bound, _one_by_one)]
    for mask in _domain_choices(problem):
        for hops, attempt in attempts:
            trial = Greedy(problem, prices, hops, effort)
            if attempt(trial, covers, mask) and (best is None or trial.cost < best[0]):
                best = (trial.cost, trial.moves(), tuple(trial.landings))
            if best is not None and best[0] <= bound:
                return best
    return best


def _domain_choices(problem: Problem) -> list[Ints]:
    """For each group the domain to try: all of one number at a time, or all nodes where there is no choice."""
    groups = sorted({a.group for a in problem.asks})
    numbers = [np.unique(problem.domain[g][problem.domain[g] >= 0]).tolist() for g in groups]
    most = max((len(n) for n in numbers), default=0)
    if most <= 1:
        return [np.array([n[0] if n else 0 for n in numbers], np.int64)]
    return [np.array([n[i % len(n)] if n else 0 for n in numbers], np.int64) for i in range(most)]


def _nodes_of(problem: Problem, covers: Sequence[Cover], ask: int, mask: Ints) -> list[int]:
    groups = sorted({a.group for a in problem.asks})
    group = problem.asks[ask].group
    inside = problem.domain[group] == mask[groups.index(group)]
    possible = covers[ask].most > 0
    found: list[int] = np.flatnonzero(inside & possible).tolist()
    return found


def _one_by_one(trial: Greedy, covers: Sequence[Cover], mask: Ints) -> bool:
    problem = trial.problem
    order = sorted(range(len(covers)), key=lambda a: (-int(covers[a].total[-1]), a))
    return all(trial.place(ask, _nodes_of(problem, covers, ask, mask)) for ask in order)


def _by_bound(trial: Greedy, covers: Sequence[Cover], mask: Ints) -> bool:
    """Clear the very nodes that the cover bound names: if all lands, the plan is the cheapest there is."""
    problem = trial.problem
    for ask, cover in enumerate(covers):
        nodes = _nodes_of(problem, covers, ask, mask)
        left = cover.ask.count
        choice: list[int] = []
        ranked = sorted((int(cover.least[n, 1]), n) for n in nodes) if cover.least.shape[1] > 1 else []
        used = dict.fromkeys(nodes, 0)
        while left:
            options = [
                (int(cover.least[n, used[n] + 1] - cover.least[n, used[n]]), n)
                for n in [n for _, n in ranked[: 4 * cover.ask.count]]
                if used[n] + 1 < cover.least.shape[1] and cover.least[n, used[n] + 1] < NEVER
            ]
            if not options:
                return False
            _, node = min(options)
            used[node] += 1
            choice.append(node)
            left -= 1
        if not trial.place_at(ask, choice):
            return False
    return True
