"""Search for a cheaper layout: the best single moves, then part after part by the product's solver.

Parts are a few nodes with all that is on them. They are drawn at random, nodes that cost much more often; they begin
with two nodes and grow where small ones find nothing any more. Draws come from one seed and parts are counted, so the
same run gives the same layout.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heapify, heappop, heappush

import numpy as np

from reassignment import Floats, Ints, Layout, Reassignment
from reassignment_check import cost_of
from reassignment_parts import Part
from tenure.rescheduler.milp.program import MixedIntegerProgram
from tenure.rescheduler.milp.solver import Solver

NODES = 50
"""How far the search tree of one part may grow."""
GUARD = 60.0
"""Seconds for one part, which none comes near."""
GAP = 1e-3
"""A part is solved to within this share of what its nodes pay."""
CHOICES = 800
"""A part has no more of them, unless two nodes have."""
PATIENCE = 25
"""So many parts in a row without a gain worth mentioning: larger ones are drawn."""
MENTIONED = 1e-5
"""Share of the cost that a gain has to be to be worth mentioning."""
HALF = 0.5
"""Costs are whole: less than this is the noise of adding them up."""


@dataclass(frozen=True, slots=True)
class Reassigned:
    """A layout: node of each task, what it costs, what the one before did, and seconds of the solver's process."""

    place: Ints
    cost: int
    before: int
    seconds: float


def descend(problem: Reassignment, away: Floats | None = None) -> Ints:
    """Make the single move that gains most, until none does: the layout that remains.

    ``away`` is what it costs besides if a task is away from its origin: ``float64[tasks]``.
    """
    layout = Layout(problem)
    price = np.zeros(problem.tasks) if away is None else away

    def best(task: int) -> tuple[float, int]:
        deltas = layout.move_deltas(task)
        if layout.place[task] == problem.origin[task]:
            deltas += price[task]
        else:
            deltas[problem.origin[task]] -= price[task]
        return float(deltas.min()), int(deltas.argmin())

    heap = [(best(task)[0], task) for task in range(problem.tasks)]
    heapify(heap)
    while heap:
        expected, task = heappop(heap)
        delta, target = best(task)
        if delta >= -HALF:
            continue
        if delta > expected + HALF and heap and delta > heap[0][0]:
            heappush(heap, (delta, task))
            continue
        layout.move(task, target)
        heappush(heap, (best(task)[0], task))
    return layout.place


class Search:
    """One search. ``parts`` of them are solved, of up to ``most`` nodes."""

    def __init__(self, problem: Reassignment, solver: Solver, parts: int, most: int, seed: int = 0) -> None:
        self.problem, self.solver, self.parts = problem, solver, parts
        self.most = min(most, problem.nodes)
        self.rng = np.random.default_rng(seed)
        self.seconds = 0.0

    def run(self) -> Reassigned:
        """Search."""
        problem = self.problem
        place = descend(problem)
        cost, size, idle = cost_of(problem, place), min(2, self.most), 0
        tried: dict[tuple[int, ...], bytes] = {}
        for _ in range(self.parts):
            pays = Layout(problem, place).pays
            part = Part.among(problem, place, self._drawn(place, pays, size))
            idle += 1
            nodes, state = tuple(part.nodes.tolist()), part.tasks.tobytes()
            if part.tasks.size and tried.get(nodes) != state:
                tried[nodes] = state
                found = self.solved(part, part.program(gap=GAP * float(pays[part.nodes].sum())))
                then = cost_of(problem, found)
                if then < cost:
                    idle = 0 if cost - then > MENTIONED * cost else idle
                    place, cost = found, then
            if idle > PATIENCE and size < self.most:
                size, idle = size + 1, 0
        return Reassigned(place, cost, cost_of(problem, problem.origin), self.seconds)

    def _drawn(self, place: Ints, pays: Floats, size: int) -> Ints:
        """Draw nodes: the first and half of the others by what they cost, as many as leave the part small enough."""
        count = self.problem.nodes
        dear = pays + 0.3 * pays.mean() + 1.0
        on = np.bincount(place, minlength=count)
        chosen: list[int] = []
        while len(chosen) < size:
            weight = dear.copy() if not chosen or self.rng.random() < HALF else np.ones(count)
            weight[chosen] = 0.0
            node = int(self.rng.choice(count, p=weight / weight.sum()))
            if len(chosen) > 1 and (on[chosen].sum() + on[node]) * (len(chosen) + 1) > CHOICES:
                break
            chosen.append(node)
        return np.sort(np.array(chosen, np.int64))

    def solved(self, part: Part, program: MixedIntegerProgram) -> Ints:
        """Give the layout that the solver makes of a part."""
        values = self.values(program)
        return part.place if values is None else part.placed(values)

    def values(self, program: MixedIntegerProgram) -> Floats | None:
        """Solve a program; None where no solution was found."""
        solution = self.solver.solve(program, node_limit=NODES, time_limit=GUARD)
        assert not solution.failure, solution.failure
        self.seconds += solution.seconds
        return solution.values
