"""Search for a cheaper layout by simulated annealing, in steps: the same seed gives the same layout.

Each step looks at all nodes for one task, or at exchanges of it with several others, at once, and draws among them
and staying by their costs and the temperature (the heat bath, or Gibbs sampler: Geman and Geman 1984). So a step that
leads nowhere is rare, and its evaluation is one product of matrices.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from tenure.rescheduler.reassignment import Floats, Ints, Layout, Reassignment

BATCH = 512
"""So many steps share one call of the random generator."""
PARTNERS = 64
"""With how many others, drawn anew each time, a task may be exchanged in one step."""
HALF = 0.5
"""Costs are whole: less than this is the noise of adding them up."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """How long and how hot.

    ``hot`` and ``cold`` are the temperatures at the beginning and at the end, as shares of the cost of the layout at
    the beginning; ``exchanges`` is the share of steps that exchange tasks.
    """

    steps: int = 200_000
    hot: float = 2e-4
    cold: float = 2e-7
    exchanges: float = 0.5
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Reassigned:
    """A layout: node of each task, what it costs, and what the one before did."""

    place: Ints
    cost: int
    before: int


def reassign(problem: Reassignment, schedule: Schedule | None = None) -> Reassigned:
    """Find a cheaper layout, in the end one that no single move makes cheaper."""
    search = _Search(problem, schedule or Schedule())
    before = search.layout.total()
    if problem.tasks and problem.nodes > 1:
        search.anneal(before)
        search.descend()
    return Reassigned(search.layout.place.copy(), search.layout.total(), before)


class _Search:
    def __init__(self, problem: Reassignment, schedule: Schedule) -> None:
        self.problem = problem
        self.schedule = schedule
        self.layout = Layout(problem)

    def anneal(self, before: int) -> None:
        """Cool down step by step, and give the best layout that was met."""
        problem, schedule, layout = self.problem, self.schedule, self.layout
        rng = np.random.default_rng(schedule.seed)
        best, place = float(before), layout.place.copy()
        now, heat = best, schedule.hot * max(1, before)
        cooling = (schedule.cold / schedule.hot) ** (1 / max(1, schedule.steps))
        for first in range(0, schedule.steps, BATCH):
            tasks = rng.integers(problem.tasks, size=BATCH).tolist()
            exchange = (rng.random(BATCH) < schedule.exchanges).tolist()
            noise = rng.gumbel(size=(BATCH, max(problem.nodes, PARTNERS) + 1))
            partners = rng.integers(problem.tasks, size=(BATCH, PARTNERS))
            for step in range(min(BATCH, schedule.steps - first)):
                heat *= cooling
                if exchange[step]:
                    now += self._exchange(tasks[step], partners[step], heat * noise[step])
                else:
                    now += self._move(tasks[step], heat * noise[step])
                if now < best - HALF:
                    best, place = now, layout.place.copy()
        layout.set(place)

    def _move(self, task: int, noise: Floats) -> float:
        layout = self.layout
        deltas = layout.move_deltas(task)
        drawn = deltas - noise[: len(deltas)]
        target = int(drawn.argmin())
        if drawn[target] >= -noise[-1]:
            return 0.0
        layout.move(task, target)
        return float(deltas[target])

    def _exchange(self, task: int, partners: Ints, noise: Floats) -> float:
        layout = self.layout
        deltas = layout.swap_deltas(task, partners)
        drawn = deltas - noise[: len(deltas)]
        chosen = int(drawn.argmin())
        if drawn[chosen] >= -noise[-1]:
            return 0.0
        most = layout.most
        if not self._both(task, int(partners[chosen])):
            return 0.0
        return float(deltas[chosen]) + self.problem.most_of_group * (layout.most - most)

    def _both(self, task: int, other: int) -> bool:
        """Exchange two tasks if spread and nearness allow it; they do not share a node."""
        layout = self.layout
        source, target = int(layout.place[task]), int(layout.place[other])
        if not layout.allowed(task, target):
            return False
        layout.move(task, target)
        if not layout.allowed(other, source):
            layout.move(task, source)
            return False
        layout.move(other, source)
        return True

    def descend(self) -> None:
        """Make the best move of each task in turn until none makes the layout cheaper."""
        layout, last = self.layout, 0
        for step, task in product(range(self.problem.tasks), range(self.problem.tasks)):
            deltas = layout.move_deltas(task)
            target = int(deltas.argmin())
            if deltas[target] < -HALF:
                layout.move(task, target)
                last = 0
                continue
            last += 1
            if last > self.problem.tasks or step == self.problem.tasks:
                return
