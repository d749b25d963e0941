"""Layouts of load: what a move would change, told at once, against working everything out anew; small ones by force."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenure.rescheduler.annealing import Schedule, reassign
from tenure.rescheduler.check_reassignment import cost_of, faults_of
from tenure.rescheduler.reassignment import Balance, Layout, Reassignment


def small(seed, tasks=6, nodes=3):
    """Some tasks that are valid where they are, with everything that the model knows."""
    rng = np.random.default_rng(seed)
    groups = 4
    while True:
        group, place = rng.integers(groups, size=tasks), rng.integers(nodes, size=tasks)
        pairs = list(zip(group.tolist(), place.tolist(), strict=True))
        if len(set(pairs)) == tasks:
            break
    takes = rng.integers(0, 9, (tasks, 2))
    used = np.zeros((nodes, 2), np.int64)
    np.add.at(used, place, takes)
    domain, near = rng.integers(2, size=nodes), rng.integers(2, size=nodes)
    inside = [{int(domain[n]) for g, n in pairs if g == k} for k in range(groups)]
    around = [{int(near[n]) for g, n in pairs if g == k} for k in range(groups)]
    needs = tuple(
        tuple(o for o in range(groups) if o != g and rng.random() < 0.3 and around[g] <= around[o])
        for g in range(groups)
    )
    distance = rng.integers(0, 3, (nodes, nodes))
    np.fill_diagonal(distance, 0)
    return Reassignment(
        capacity=used + rng.integers(0, 9, (nodes, 2)), limit=rng.integers(0, 9, (nodes, 2)),
        transient=np.array([True, False]), over=np.array([3, 2]), takes=takes, origin=place, group=group,
        domain=domain, least=np.array([int(rng.integers(0, len(i) + 1)) for i in inside]), near=near, needs=needs,
        balances=(Balance(0, 1, 2, 4),), cost=rng.integers(1, 5, tasks), distance=distance, most_of_group=2,
    )  # fmt: skip


@settings(deadline=None, max_examples=80)
@given(seed=st.integers(0, 10**6), steps=st.integers(0, 6))
def test_what_a_move_changes_is_what_the_layout_costs_more(seed, steps):
    """For every task and node, wherever earlier moves led; infinite exactly where the rules forbid it."""
    problem = small(seed)
    rng = np.random.default_rng(seed)
    layout = Layout(problem)
    for _ in range(steps):
        task = int(rng.integers(problem.tasks))
        may = np.flatnonzero(np.isfinite(layout.move_deltas(task)))
        if len(may):
            layout.move(task, int(rng.choice(may)))
    here = cost_of(problem, layout.place)
    assert layout.total() == here
    assert not faults_of(problem, layout.place)
    for task in range(problem.tasks):
        deltas = layout.move_deltas(task)
        for node in range(problem.nodes):
            place = layout.place.copy()
            place[task] = node
            if node == layout.place[task]:
                continue
            assert np.isfinite(deltas[node]) == (not faults_of(problem, place))
            if np.isfinite(deltas[node]):
                assert here + deltas[node] == cost_of(problem, place)


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 10**6))
def test_what_an_exchange_changes_is_what_the_layout_costs_more(seed):
    """But for the most of a group, which is left out; and none over capacity or with two of a group on a node."""
    problem = small(seed, tasks=7)
    object.__setattr__(problem, "most_of_group", 0)
    layout = Layout(problem)
    everybody = np.arange(problem.tasks)
    for task in range(problem.tasks):
        deltas = layout.swap_deltas(task, everybody)
        for other in everybody.tolist():
            place = layout.place.copy()
            place[[task, other]] = place[[other, task]]
            if place[task] == place[other]:
                assert np.isinf(deltas[other])
                continue
            faults = [f for f in faults_of(problem, place) if "over" in f or "two" in f]
            assert np.isfinite(deltas[other]) == (not faults)
            if not faults:
                assert cost_of(problem, layout.place) + deltas[other] == cost_of(problem, place)


@pytest.mark.parametrize("seed", range(12))
def test_small_layouts_are_solved_to_the_optimum(seed):
    """Against all layouts there are; the same seed gives the same one."""
    problem = small(seed)
    layouts = (np.array(p) for p in product(range(problem.nodes), repeat=problem.tasks))
    best = min(cost_of(problem, p) for p in layouts if not faults_of(problem, p))
    schedule = Schedule(steps=4000, hot=0.3, cold=1e-3)
    found = reassign(problem, schedule)
    assert not faults_of(problem, found.place)
    assert found.cost == cost_of(problem, found.place) == best
    assert np.array_equal(found.place, reassign(problem, schedule).place)
