"""The solver's linear relaxations: knapsacks, whose relaxation fills by value for weight and cuts the last."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import tries

from tenure.rescheduler.milp.program import MixedIntegerProgram


def knapsack(worth, weight, room, *, relaxed):
    """Give the program that takes what is worth most within the room."""
    count = len(worth)
    return MixedIntegerProgram(
        [], [], -np.array(worth, float), np.ones(count), np.zeros(count, np.int64), np.arange(count),
        np.array(weight, float), np.array([-np.inf]), np.array([float(room)]), start=np.zeros(count), relaxed=relaxed,
    )  # fmt: skip


def filled(worth, weight, room):
    """Give what is worth most if the last may be cut (Dantzig 1957)."""
    total = 0.0
    for w, v in sorted(zip(weight, worth, strict=True), key=lambda t: -t[1] / t[0]):
        share = min(1.0, room / w)
        total += v * share
        room -= w * share
    return total


@settings(deadline=None, max_examples=tries(30, 300))
@given(
    items=st.lists(st.tuples(st.integers(1, 20), st.integers(1, 20)), min_size=1, max_size=9), room=st.integers(0, 60)
)
def test_a_relaxation_is_answered_exactly_and_bounds_the_whole_question(solver, items, room):
    """Its bound is what its values cost; whole numbers are asked for again afterwards."""
    worth, weight = zip(*items, strict=True)
    relaxed = solver.solve(knapsack(worth, weight, room, relaxed=True), node_limit=1, time_limit=10.0)
    assert relaxed.optimal
    assert -relaxed.bound == pytest.approx(filled(worth, weight, room))
    assert relaxed.values @ np.array(worth) == pytest.approx(-relaxed.bound)
    whole = solver.solve(knapsack(worth, weight, room, relaxed=False), node_limit=1_000, time_limit=10.0)
    assert whole.values == pytest.approx(whole.values.round(), abs=1e-6)
    assert relaxed.bound <= whole.bound + 1e-6


def test_a_relaxation_that_cannot_hold_is_infeasible(solver):
    """No values then, and a bound that nothing meets."""
    found = solver.solve(knapsack([1], [1], -1, relaxed=True), node_limit=1, time_limit=10.0)
    assert found.infeasible
    assert found.values is None
    assert found.bound == np.inf
