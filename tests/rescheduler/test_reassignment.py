"""B11's search: what a move would change, told at once, against working everything out anew; small layouts by force."""

import sys
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import tries

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

from reassignment import Balance, Layout, Reassignment
from reassignment_check import cost_of, faults_of
from reassignment_guided import Guided
from reassignment_parts import Part
from reassignment_search import Search, descend


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


@settings(deadline=None, max_examples=tries(40, 400))
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


def layouts(problem):
    """Give all layouts that break no rule."""
    every = (np.array(p) for p in product(range(problem.nodes), repeat=problem.tasks))
    return [p for p in every if not faults_of(problem, p)]


@pytest.mark.parametrize("seed", range(12))
def test_a_part_of_all_nodes_is_the_whole_question(solver, seed):
    """Its optimum is that of all layouts there are, but for the most of a group, which parts leave out."""
    problem = small(seed)
    object.__setattr__(problem, "most_of_group", 0)
    best = min(cost_of(problem, p) for p in layouts(problem))
    part = Part.among(problem, problem.origin, np.arange(problem.nodes))
    solution = solver.solve(part.program(), node_limit=10_000, time_limit=60.0)
    found = part.placed(solution.values)
    assert not faults_of(problem, found)
    assert best <= cost_of(problem, found) <= best * (1 + 1e-3)
    layout = Layout(problem)
    alike = (layout.forms[:, 2:] @ layout.weights[2:]).sum()  # what all layouts pay for balances is left out
    assert solution.bound + alike <= best + 1e-6


@pytest.mark.parametrize("seed", range(12, 30))
def test_what_a_part_leaves_out_stays_and_what_it_moves_breaks_no_rule(solver, seed):
    """Two nodes of four, from a layout in which others have moved: no layout of those two is cheaper."""
    problem = small(seed, tasks=7, nodes=4)
    object.__setattr__(problem, "most_of_group", 0)
    place = descend(problem)
    part = Part.among(problem, place, np.sort(np.random.default_rng(seed).choice(4, 2, replace=False)))
    if not len(part.tasks):
        return
    found = part.placed(solver.solve(part.program(), node_limit=10_000, time_limit=60.0).values)
    assert not faults_of(problem, found)
    assert (found[part.others] == place[part.others]).all()
    best = cost_of(problem, place)
    for choice in product(part.nodes.tolist(), repeat=len(part.tasks)):
        other = place.copy()
        other[part.tasks] = choice
        if not faults_of(problem, other):
            best = min(best, cost_of(problem, other))
    assert best <= cost_of(problem, found) <= best * (1 + 1e-3)


@pytest.mark.parametrize("seed", range(6))
def test_a_search_is_never_worse_than_single_moves_and_the_same_each_time(solver, seed):
    """And within a thousandth of the optimum of small layouts, but for the most of a group."""
    problem = small(seed)
    found = Search(problem, solver, parts=60, most=3).run()
    assert not faults_of(problem, found.place)
    assert found.cost == cost_of(problem, found.place) <= cost_of(problem, descend(problem))
    best = min(cost_of(problem, p) for p in layouts(problem))
    assert found.cost <= best * (1 + 1e-3) + problem.most_of_group * problem.tasks
    assert np.array_equal(found.place, Search(problem, solver, parts=60, most=3).run().place)


@settings(deadline=None, max_examples=tries(30, 300))
@given(seed=st.integers(0, 10**6))
def test_some_tasks_for_some_nodes_each_are_answered_as_by_force(solver, seed):
    """With prices for being away and for leaving; the relaxation costs no more than the optimum."""
    problem = small(seed)
    object.__setattr__(problem, "most_of_group", 0)
    rng = np.random.default_rng(seed)
    place = descend(problem)
    tasks = np.sort(rng.choice(problem.tasks, 4, replace=False))
    may = rng.random((len(tasks), problem.nodes)) < 0.7
    may[np.arange(len(tasks)), place[tasks]] = True
    away, leave = rng.integers(0, 9, (2, problem.tasks)).astype(float)

    def total(layout):
        besides = away[layout != problem.origin].sum() + leave[tasks][layout[tasks] != place[tasks]].sum()
        return cost_of(problem, layout) + besides

    part = Part(problem, place, tasks, may)
    program = part.program(away=away, leave=leave)
    solution = solver.solve(program, node_limit=10_000, time_limit=60.0)
    found = part.placed(solution.values)
    assert not faults_of(problem, found)
    assert may[np.arange(len(tasks)), found[tasks]].all()
    choices = product(*(np.flatnonzero(m).tolist() for m in may))
    every = []
    for choice in choices:
        layout = place.copy()
        layout[tasks] = choice
        every.append(layout)
    best = min(total(layout) for layout in every if not faults_of(problem, layout))
    assert total(found) == pytest.approx(best, abs=1e-3)
    relaxed = solver.solve(replace(program, relaxed=True), node_limit=1, time_limit=60.0)
    assert relaxed.bound <= solution.bound + 1e-6


@pytest.mark.parametrize("seed", range(tries(3, 20)))
def test_a_guided_search_ends_as_well_and_the_same_each_time(solver, seed):
    """Within a thousandth of the optimum of small layouts, but for the most of a group."""
    problem = small(seed, nodes=4)
    found = Guided(problem, solver, parts=60, most=4).run()
    assert not faults_of(problem, found.place)
    assert found.cost == cost_of(problem, found.place)
    best = min(cost_of(problem, p) for p in layouts(problem))
    assert found.cost <= best * (1 + 1e-3) + problem.most_of_group * problem.tasks
    assert np.array_equal(found.place, Guided(problem, solver, parts=60, most=4).run().place)


def test_parts_are_drawn_where_the_relaxation_exchanges_load(solver):
    """One node is dear and only the last has room: they make the first part, whatever the draws."""
    nodes, size = 6, 10
    takes = np.full((nodes * 4, 1), size)
    place = np.repeat(np.arange(nodes), 4)
    limit = np.full((nodes, 1), 4 * size)
    limit[0], limit[-1] = 2 * size, 8 * size
    problem = Reassignment(
        capacity=np.full((nodes, 1), 100 * size), limit=limit, transient=np.array([False]), over=np.array([10]),
        takes=takes, origin=place, group=np.arange(nodes * 4), domain=np.arange(nodes), least=np.zeros(nodes * 4, int),
        near=np.zeros(nodes, int), needs=((),) * (nodes * 4), cost=np.ones(nodes * 4, int),
        distance=np.zeros((nodes, nodes), int),
    )  # fmt: skip
    for seed in range(5):
        search = Guided(problem, solver, parts=1, most=2, seed=seed)
        first = search.drawn(place, size=2)[0]
        assert first.tolist() == [0, nodes - 1]
