"""The product's solver, whose process works beside the one that measures: its time belongs to a figure."""

from __future__ import annotations

from tenure.rescheduler.memory import MoveMemory
from tenure.rescheduler.milp.program import MixedIntegerProgram
from tenure.rescheduler.milp.solver import ProcessSolver, Solution


class TimedSolver(ProcessSolver):
    """Adds up what the solver's process takes of the processor."""

    seconds = 0.0

    def solve(self, program: MixedIntegerProgram, *, node_limit: int, time_limit: float) -> Solution:
        """Solve a program."""
        solution = super().solve(program, node_limit=node_limit, time_limit=time_limit)
        self.seconds += solution.seconds
        return solution


class TimedMemory(MoveMemory):
    """A scheduler's memory whose solver is timed."""

    def __init__(self, solver: TimedSolver) -> None:
        super().__init__()
        self.timed = solver

    @property
    def solver(self) -> TimedSolver:
        """The solver that is timed."""
        return self.timed
