"""Where moved tasks land: jointly with the contender for which they move (spec: consolidate)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tenure.engine.serving.placement import Mask, Placer
from tenure.engine.state.session import Session
from tenure.engine.state.workloads import GROW, Demand, TaskState, WorkloadState

MOST_TRIED = 128
"""Places that are tried for moved tasks before one set of moves is given up."""


class JointPlacement:
    """The search for places for evicted tasks, none of them where it stood, that leave the contender room.

    The contender in its best place comes first, and the others as they then fit. Where that fails, the moved ones are
    placed in all their ways, those that score best first, until the contender fits beside them; unless it is one task
    that has no room even without them, and that no affinity and no spread constraint ties to where they are.
    """

    def __init__(
        self,
        session: Session,
        placer: Placer,
        contender: WorkloadState,
        victims: Sequence[WorkloadState],
        tasks: Sequence[TaskState],
    ) -> None:
        self.session = session
        self.placer = placer
        self.contender = contender
        self.victims = victims
        self.tasks = tasks
        self._left = MOST_TRIED
        self._in_vain = False

    def find(self) -> list[TaskState] | None:
        """Nominate all moved tasks to places, and give them; None: there are no places, and nothing was done."""
        self.placer.own = "never"
        try:
            found = self._contender_first()
            return found if found is not None or self._in_vain else self._land(list(self.tasks))
        finally:
            self.placer.own = "any"

    def _contender_first(self) -> list[TaskState] | None:
        session, step = self.session, self.contender.step
        assert step is not None
        with session.scenario() as scenario:
            fits = self.placer.place(self.contender, step)
            placed = self._in_order() if fits else None
            terms = step.tasks[0].terms
            self._in_vain = not fits and len(step.tasks) == 1 and not (terms and (terms.affinity or terms.spread))
            if placed is not None:
                for task in step.tasks:
                    session.withdraw(task)
                session.refresh(self.contender)
                scenario.keep()
        return placed

    def _in_order(self) -> list[TaskState] | None:
        """Place all moved tasks, each where it is best placed; None if one finds no place."""
        waiting, placed = list(self.tasks), list[TaskState]()
        while waiting:
            victim, following = self._next(waiting)
            if following is None or not self.placer.place(victim, following):
                return None
            waiting = [t for t in waiting if t not in following.tasks]
            placed += following.tasks
            self.session.refresh(victim)
        return placed

    def _land(self, waiting: list[TaskState]) -> list[TaskState] | None:
        """Place those that wait in the first way that leaves the contender room."""
        if not waiting:
            return [] if self._fits() else None
        victim, following = self._next(waiting)
        if following is None:
            return None
        for allowed in self._ways(victim, following):
            if self._left <= 0:
                return None
            self._left -= 1
            with self.session.scenario() as scenario:
                found = self._land_beside(waiting, victim, following, allowed)
                if found is not None:
                    scenario.keep()
                    return found
        return None

    def _land_beside(
        self, waiting: list[TaskState], victim: WorkloadState, following: Demand, allowed: Mask | None
    ) -> list[TaskState] | None:
        """Place one step, and then the others."""
        if not self.placer.place(victim, following, allowed):
            return None
        placed = list(following.tasks)
        self.session.refresh(victim)
        rest = self._land([t for t in waiting if t not in placed])
        return None if rest is None else placed + rest

    def _next(self, waiting: Sequence[TaskState]) -> tuple[WorkloadState, Demand | None]:
        """Give who lands next, and what of it; None where that asks for more than what moved."""
        victim = next(v for v in self.victims if any(t.workload is v for t in waiting))
        following = victim.step
        if victim.root.satisfied() or following is None:
            following = Demand(GROW, [next(t for t in waiting if t.workload is victim)], None)
        return victim, following if set(following.tasks) <= set(waiting) else None

    def _ways(self, victim: WorkloadState, step: Demand) -> Iterator[Mask | None]:
        """Give the nodes for a step, way by way: of one task each node that fits, of several what they choose."""
        if len(step.tasks) > 1 or victim.root.topology is not None or victim.root.children:
            yield None
            return
        left = np.ones(len(self.session.nodes), bool)
        while (node := self.placer.find(step.tasks[0], left)[0]) >= 0:
            only = np.zeros(len(left), bool)
            only[node], left[node] = True, False
            yield only

    def _fits(self) -> bool:
        """Whether the contender has room beside what has landed."""
        session, step = self.session, self.contender.step
        assert step is not None
        with session.scenario():
            return self.placer.place(self.contender, step)
