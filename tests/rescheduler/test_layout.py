"""What layouts are worth: exact plans and bounds against everything there is, searches against the checker."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.builders import SECOND, cluster, node, queue, spec, workload
from tests.effort import tries

from tenure.actions.context import Context
from tenure.cycle import Scheduler
from tenure.engine.snapshot import session_of
from tenure.model.settings import BackgroundSettings, BudgetRule, DisruptionSettings, ReschedulerSettings
from tenure.rescheduler.check.layout import check_layout, worth_of
from tenure.rescheduler.heuristic.local_search import LocalSearch
from tenure.rescheduler.memory import MoveMemory
from tenure.rescheduler.milp.empty_nodes import empty_nodes
from tenure.rescheduler.planner import PlannerLimits
from tenure.rescheduler.problem.build import MovableTasks, view
from tenure.rescheduler.problem.definition import MoveBound, TaskMove
from tenure.rescheduler.problem.improvement import LayoutProblem, bound, improvement
from tenure.rescheduler.problem.layout import LEVEL, LayoutTerms, LayoutWorth, objective
from tenure.rescheduler.waves import sequence

from .problems import problem

HOUR = 3600 * SECOND
PACK = LayoutTerms(whole=1.0)


def random_improvement(seed, terms):
    """Three or four nodes, up to six tasks, some in a core, a budget now and then, tasks that stay."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(3, 5))
    kinds = [[1], [2], [3]]
    capacity = rng.integers(4, 8, size)
    room, tasks, units = capacity.copy(), [], []
    for _ in range(7 if size == 3 else 6):
        cls, place = int(rng.integers(3)), int(rng.integers(size))
        if room[place] >= cls + 1:
            room[place] -= cls + 1
            tasks.append((cls, place, int(rng.integers(1, 6))))
            units.append(int(rng.choice([-1, -1, -1, 0])))
    bounds = []
    if tasks and rng.random() < 0.4:
        bounds = [MoveBound(name="b", weights=dict.fromkeys(range(len(tasks)), 1), limit=int(rng.integers(0, 4)))]
    allowed = rng.random((3, size)) < 0.9
    p = problem([[int(r)] for r in room], tasks, [], kinds=kinds, units=units, bounds=bounds, allowed=allowed)
    return LayoutProblem(
        problem=p, terms=terms, price=np.array([1.0]), capacity=capacity[None].astype(float),
        room=room[None].astype(float), takes=np.array(kinds, float), whole=capacity.astype(float),
        fixed=(rng.random(size) < 0.2).astype(np.int64), liking=np.zeros((0, size)), targets=rng.random(size) < 0.9,
        least=float(rng.choice([0.05, 0.3, 1.0])),
    )  # fmt: skip


def best_by_force(asked):
    """The most that any moves leave: every task on every node."""
    p = asked.problem
    start = worth_of(asked, list(zip(p.node.tolist(), p.shape.tolist(), strict=True)))
    best = 0.0
    for places in product(range(p.size), repeat=p.tasks):
        moved = [t for t in range(p.tasks) if places[t] != p.node[t]]
        mates = p.unit == 0
        core = sum(t in moved for t in np.flatnonzero(mates))
        going = set(moved) | (set(np.flatnonzero(mates).tolist()) if core > 1 else set())
        if any(not p.allowed[p.cls[t], places[t]] or not asked.targets[places[t]] for t in going):
            continue
        if any(sum(b.weights.get(t, 0) for t in going) > b.limit for b in p.bounds):
            continue
        room = p.free.copy()
        for task, place in enumerate(places):
            room[:, p.node[task]] += p.ask[p.shape[task]]
            room[:, place] -= p.ask[p.shape[task]]
        if (room >= 0).all():
            worth = worth_of(asked, [(n, int(p.shape[t])) for t, n in enumerate(places)])
            best = max(best, worth - start - asked.least * sum(int(p.cost[t]) for t in going))
    return best


def test_the_exact_plan_that_empties_nodes_leaves_the_most_of_all_plans(solver):
    """Against brute force, with cores, budgets, closed nodes and tasks that stay; and its bound is that value."""
    found = 0
    for seed in range(tries(30, 300)):
        asked = random_improvement(seed, PACK)
        best = best_by_force(asked)
        solved = empty_nodes(asked, solver, PlannerLimits())
        assert bound(asked) >= best - 1e-9, seed
        if solved is None:
            assert best <= 1e-9, seed
            continue
        moves = [m for m in solved.moves if m.origin != m.target]
        start = worth_of(asked, list(zip(asked.problem.node.tolist(), asked.problem.shape.tolist(), strict=True)))
        places = list(zip(asked.problem.node.tolist(), asked.problem.shape.tolist(), strict=True))
        for m in moves:
            places[m.task] = m.target, m.shape
        gain = worth_of(asked, places) - start
        net = gain - asked.least * sum(int(asked.problem.cost[m.task]) for m in solved.moves)
        assert solved.optimal
        assert net == pytest.approx(best, abs=1e-6), seed
        assert solved.bound == pytest.approx(best, abs=1e-4), seed
        if len(moves) == len(solved.moves) and moves:
            assert not check_layout(asked, moves, gain=gain, net=net, bound=solved.bound + 1e-4), seed
            found += 1
    assert found > 10


@pytest.mark.parametrize("terms", [LayoutTerms(packed=1.0), LEVEL, LayoutTerms(packed=0.5, whole=0.5)])
def test_no_plan_leaves_more_than_the_bound(terms):
    """Packed, spread and mixed, against brute force."""
    for seed in range(100, 100 + tries(15, 150)):
        asked = random_improvement(seed, terms)
        assert bound(asked) >= best_by_force(asked) - 1e-9, seed


@st.composite
def layouts(draw):
    """A few nodes with CPU and GPUs, pods of several sizes, some in gangs; an objective that suits the placement."""
    count = draw(st.integers(2, 5))
    nodes = [node(f"n{i}", cpu=8, gpu=4) for i in range(count)]
    cpu, gpu = [8] * count, [4] * count
    made = []
    for number in range(draw(st.integers(1, 9))):
        cores, devices, tasks = draw(st.integers(1, 3)), draw(st.integers(0, 2)), draw(st.sampled_from([1, 1, 1, 2]))
        places = []
        for _ in range(tasks):
            fits = [n for n in range(count) if cpu[n] >= cores and gpu[n] >= devices]
            if fits:
                place = draw(st.sampled_from(fits))
                cpu[place] -= cores
                gpu[place] -= devices
                places.append(place)
        if len(places) == tasks:
            running = draw(st.integers(10, 4000))
            made.append(workload(f"w{number}", tasks=tasks, of=spec(cpu=cores, gpu=devices), running=running,
                                 on=[f"n{n}" for n in places], age=running + 10,
                                 preemptible=draw(st.sampled_from([True, True, True, False]))))  # fmt: skip
    placement = draw(st.sampled_from(["binpack", "spread"]))
    other = {"binpack": "pack", "spread": "spread"}[placement]
    goal = draw(st.sampled_from(["placement", other]))
    least = draw(st.sampled_from([1e-5, 1e-3, 1e-2]))
    rules = (BudgetRule(name="r", max_evictions=draw(st.integers(0, 6)), per=HOUR),)
    return cluster(
        nodes, made, [queue("default")], placement=placement, disruption=DisruptionSettings(budgets=rules),
        rescheduler=ReschedulerSettings(background=BackgroundSettings(interval=HOUR, objective=goal, min_gain=least)),
    )  # fmt: skip


@settings(deadline=None, max_examples=tries(30, 300))
@given(made=layouts(), mode=st.sampled_from(["evict-first", "reserve-first"]))
def test_what_a_search_finds_passes_the_checker(made, mode):
    """Gain, net, bound, budgets and the replay of the waves; and the session is as it was."""
    session = session_of(made)
    scheduler = Scheduler(session)
    context: Context = scheduler.context
    state = context.evicting()
    tasks = MovableTasks(state, MoveMemory()).tasks(())
    worth = LayoutWorth(session, objective(made.settings))
    anywhere = np.ones(len(session.nodes), bool)
    least = made.settings.rescheduler.background.min_gain
    room = session.nodes.room.copy()
    found = LocalSearch(state, tasks, worth, anywhere, least).run()
    assert (session.nodes.room == room).all()
    asked = improvement(worth, view(state, tasks, ()), anywhere, least)
    moves = [
        TaskMove(tasks.index(t), t.node, target, int(asked.problem.cls[tasks.index(t)])) for t, target in found.moves
    ]
    net = found.gain - least * found.cost
    assert not check_layout(asked, moves, gain=found.gain, net=net, bound=bound(asked),
                            waves=sequence(asked.problem, moves, mode) or ())  # fmt: skip
