"""What the exact planner may spend on a cycle is shared, and counted in steps."""

from types import SimpleNamespace

import numpy as np

from tenure.rescheduler.milp.budget import LARGE_PROGRAM, BudgetedSolver, effort_of
from tenure.rescheduler.milp.solver import Solution


def program(entries):
    return SimpleNamespace(values=np.zeros(entries))


class Counting:
    def __init__(self, nodes=1):
        self.asked, self.nodes = [], nodes

    def solve(self, program, *, node_limit, time_limit):
        self.asked.append((len(program.values), node_limit, time_limit))
        return Solution(None, -np.inf, optimal=False, infeasible=True, nodes=self.nodes)


def test_effort_grows_more_than_in_proportion_above_a_size():
    assert effort_of(program(1000)) == 1000
    assert effort_of(program(2 * LARGE_PROGRAM)) == 4 * LARGE_PROGRAM


def test_programs_share_the_effort_and_the_last_ones_are_refused():
    inner = Counting()
    solver = BudgetedSolver(inner, 2500, 60.0, clock=lambda: 0.0)
    found = [solver.solve(program(1000), node_limit=100, time_limit=60.0) for _ in range(4)]
    assert [f.refused for f in found] == [False, False, True, True]
    assert "exact.effort" in found[2].failure
    assert len(inner.asked) == 2


def test_nodes_count_as_parts_of_a_root_and_are_limited_by_what_is_left():
    inner = Counting(nodes=101)
    solver = BudgetedSolver(inner, 3000, 60.0, clock=lambda: 0.0)
    solver.solve(program(1000), node_limit=10_000, time_limit=60.0)
    solver.solve(program(1000), node_limit=10_000, time_limit=60.0)
    assert [nodes for _, nodes, _ in inner.asked] == [201, 1]


def test_the_time_is_shared_too():
    ticks = iter(range(0, 1000, 40))
    inner = Counting()
    solver = BudgetedSolver(inner, 10**9, 60.0, clock=lambda: float(next(ticks)))
    found = [solver.solve(program(10), node_limit=5, time_limit=60.0) for _ in range(3)]
    assert [limit for _, _, limit in inner.asked] == [60.0, 20.0]
    assert found[2].refused
    assert "exact.timeLimit" in found[2].failure
