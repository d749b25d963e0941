"""What the exact planner may spend on one cycle, shared by all who ask for room in it."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from tenure.rescheduler.milp.program import MixedIntegerProgram
from tenure.rescheduler.milp.solver import Solution, Solver

LARGE_PROGRAM = 50_000
"""Entries above which a program takes more than in proportion."""

NODES_AS_ROOT = 100
"""So many nodes of a search tree take about as long as its root."""


class BudgetedSolver:
    """A solver whose programs share an effort, which is counted in steps, and as a guard a time.

    The effort of a program is its entries, times its size in units of `LARGE_PROGRAM` where it is larger than that,
    for the root of its search tree, and a hundredth of that for each further node. It is known before a program is
    solved, but for the nodes, so that the same cluster gets the same plan on a fast machine and on a slow one.

    Parameters
    ----------
    solver
        The solver to ask.
    effort
        For all programs together.
    time_limit
        Seconds that the solver may take in all.
    clock
        Seconds that only grow.
    """

    def __init__(
        self, solver: Solver, effort: int, time_limit: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._solver = solver
        self._effort = effort
        self._left = float(effort)
        self._time_limit = time_limit
        self._time_left = time_limit
        self._clock = clock

    def solve(self, program: MixedIntegerProgram, *, node_limit: int, time_limit: float) -> Solution:
        """Solve a program with what is left; without a search where that is too little."""
        root = effort_of(program)
        if root > self._left:
            return _refused(f"the effort of {self._effort:,} that all of a cycle's plans share is spent (exact.effort)")
        if self._time_left <= 0:
            return _refused(
                f"the {self._time_limit:.0f} s that all of a cycle's plans share are over (exact.timeLimit)"
            )
        nodes = 1 + int((self._left - root) * NODES_AS_ROOT / max(1.0, root))
        begin = self._clock()
        found = self._solver.solve(
            program, node_limit=min(node_limit, nodes), time_limit=min(time_limit, self._time_left)
        )
        self._time_left -= self._clock() - begin
        self._left -= root * (1 + max(0, found.nodes - 1) / NODES_AS_ROOT)
        return found


def effort_of(program: MixedIntegerProgram) -> float:
    """Give what the root of a program's search tree takes."""
    entries = len(program.values)
    return entries * max(1.0, entries / LARGE_PROGRAM)


def _refused(why: str) -> Solution:
    return Solution(None, -np.inf, optimal=False, infeasible=False, failure=why, refused=True)
