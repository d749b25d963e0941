"""The moves that a search for a better layout has made, and what it still may: places, budgets, what a move brings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tenure.engine.state.cost import MICRO, cost
from tenure.engine.state.workloads import TaskState
from tenure.rescheduler.memory import CAUSE
from tenure.rescheduler.problem.build import own_domain, units_of
from tenure.rescheduler.problem.layout import Floats, LayoutWorth, Mask
from tenure.rescheduler.problem.utilization import NodeUtilization
from tenure.victims.recording.state import EvictionState

STEPS = 20_000
"""How often a search looks where one task could go: a bound in steps, so that the same cluster gives the same plan."""
NOTHING = 1e-9
"""A gain below this is the noise of floating point."""


class ImprovingMove(NamedTuple):
    """A task that moves, and its target."""

    task: TaskState
    target: int


class LayoutMoves:
    """The moves of a search, on the session itself, that are ``made`` so far; ``steps`` are left for more.

    ``targets``: ``bool[nodes]``, where anything may land at all. What pays gains more than ``least`` for each unit of
    disruption.
    """

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
        self.made: list[ImprovingMove] = []
        self.moved: set[TaskState] = set()
        self.units: set[int] = set()

    def total(self) -> float:
        """Give what the layout is worth, in weighted resources, but for preferences."""
        worth = self.worth
        return sum(map(worth.of, range(len(self.session.nodes)))) - worth.scattered()

    def liked(self) -> float:
        """What the moves so far gain in preferences."""
        found = 0.0
        for task, target in self.made:
            liking = self.worth.liking(task)
            if liking is not None:
                found += float(liking[target] - liking[task.leaving])
        return found

    def pays(self, gain: float, total: int) -> bool:
        """Whether a gain is more than moves that cost so much have to bring."""
        return gain > NOTHING and gain > self.least * total

    def is_open(self, task: TaskState) -> bool:
        """Whether a task may still move: it has not, no mate of its core has, and budgets leave one more."""
        unit = self.unit[self.number[task]]
        if task in self.moved or (unit >= 0 and unit in self.units):
            return False
        return self.within([task])

    def within(self, tasks: Sequence[TaskState]) -> bool:
        """Whether budgets leave it to move some tasks as well."""
        numbers = [self.number[t] for t in tasks]
        for row, used in zip(self.rows, self.used, strict=True):
            weight = sum(row.weights.get(n, 0) for n in numbers)
            if weight and (used + weight > row.bound if not row.concurrent else row.bound <= 0):
                return False
        return True

    def best(self, task: TaskState, avoid: Mask | None = None, prefer: Floats | None = None) -> tuple[int, float]:
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

    def put(self, task: TaskState, target: int) -> None:
        """Let a task that was evicted land."""
        self.state.placer.put(task, target, bindable=False)

    def keep(self, task: TaskState, target: int) -> None:
        """Note a move that was made."""
        number = self.number[task]
        self.made.append(ImprovingMove(task, target))
        self.moved.add(task)
        if self.unit[number] >= 0:
            self.units.add(self.unit[number])
        for n, row in enumerate(self.rows):
            self.used[n] += row.weights.get(number, 0)
        if self.utilization is not None:
            self.utilization.move(task, target)
