"""The planner against everything there is, on small states; the checker on all of them."""

import functools
import os
import signal
import sys
import threading
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import tries

from tenure.rescheduler.check.plan import check
from tenure.rescheduler.fewest_spared import with_fewest
from tenure.rescheduler.memory import MoveMemory
from tenure.rescheduler.milp.solver import ProcessSolver
from tenure.rescheduler.planner import PlannerLimits, make_room
from tenure.rescheduler.problem.definition import Certificate, MoveAnswer, MoveBound, TaskMove
from tenure.rescheduler.waves import sequence

from .problems import PATIENT, cheapest_by_force, fragmented_problem, problem, random_problem

SEEDS = range(tries(80, 400))
A_LOT = 10**6
PIECES = range(tries(24, 200))


@functools.cache
def optimum(seed):
    return cheapest_by_force(random_problem(seed))


def test_the_exact_plan_costs_what_the_best_of_all_plans_costs(solver):
    """And where there is no plan, it is told that there is none: never one without the other."""
    methods = set()
    for seed in SEEDS:
        asked = random_problem(seed)
        answer = make_room(asked, solver, PATIENT)
        methods.add(answer.certificate.method)
        assert answer.certificate.cost == optimum(seed), seed
        assert (answer.certificate.method == "impossible") == (optimum(seed) is None), seed
        assert not check(asked, answer), seed
    assert methods == {"exact", "cover", "impossible"}


def test_fewest_of_what_asked_to_be_spared_move_and_then_what_costs_least(solver):
    """By force as well: of all plans, those with the fewest of every second task, and of these the cheapest."""
    several = 0
    for seed in SEEDS:
        asked = random_problem(seed)
        sparing = frozenset(range(seed % 2, asked.tasks, 2))
        dearer = asked.cost.copy()
        dearer[list(sparing)] += A_LOT
        best = cheapest_by_force(replace(asked, cost=dearer))

        def plan(bounds, asked=asked):
            bounded = replace(asked, bounds=(*asked.bounds, *bounds))
            answer = make_room(bounded, solver, PATIENT)
            assert not check(bounded, answer)
            return None, answer

        _, answer = plan((MoveBound(name="none", weights=dict.fromkeys(sparing, 1), limit=0),))
        if not answer.feasible:
            _, answer = with_fewest(plan, sparing)
        assert answer.feasible == (best is not None), seed
        if best is not None:
            moved = sum(m.task in sparing for m in answer.moves)
            assert (moved, answer.certificate.cost) == divmod(best, A_LOT), seed
            assert ("nothing makes room with fewer" in answer.certificate.reason) == (moved > 0)
            several += moved > 1
    assert several


def test_the_greedy_plan_is_right_and_its_bound_holds():
    """Without the exact planner a plan may be missed or dear, but never wrong, and the bound is below the optimum."""
    for seed in SEEDS:
        asked = random_problem(seed)
        answer = make_room(asked, None)
        assert not check(asked, answer), seed
        if optimum(seed) is None:
            assert not answer.feasible
        else:
            assert answer.certificate.lower_bound <= optimum(seed)
            assert answer.certificate.method != "impossible"


@settings(deadline=None, max_examples=tries(30, 300))
@given(seed=st.integers(1000, 10**6), mode=st.sampled_from(["evict-first", "reserve-first"]))
def test_replaying_the_waves_never_overfills_a_node(seed, mode):
    """At no instant, under either mode, with cycles and without."""
    asked = random_problem(seed)
    answer = make_room(asked, None)
    waves = sequence(asked, answer.moves, mode)
    assert waves is not None
    assert not check(asked, answer, waves)


CHAIN = {
    "kinds": [[4], [2], [1]],
    # node 0: a 2 leaves it; node 1 takes that once its 1 has left; node 2 has room for a 1 only
    "free": [[2], [1], [1]],
    "tasks": [(1, 0, 5), (2, 1, 3)],
    "asks": [(0, 0, 1)],
}


def test_a_chain_of_moves_makes_room(solver):
    """The contender takes node 0; its pod goes to node 1, whose pod goes to node 2."""
    asked = problem(**CHAIN)
    answer = make_room(asked, solver, PATIENT)
    assert answer.certificate.cost == 8
    assert [(m.task, m.origin, m.target) for m in answer.moves] == [(0, 0, 1), (1, 1, 2)]
    waves = sequence(asked, answer.moves, "reserve-first")
    assert [[leg.move.task for leg in wave] for wave in waves] == [[1], [0]]
    assert not check(asked, answer, waves)


def test_a_circle_is_broken_over_spare_room_or_by_the_cheapest():
    """Reserve-first alone would wait for ever."""
    for spare, modes in ((2, {"reserve-first"}), (0, {"evict-first"})):
        asked = problem(
            kinds=[[2]], free=[[0], [0], [spare]], tasks=[(0, 0, 2), (0, 1, 1)], asks=[], allowed=[[True] * 3]
        )
        moves = (TaskMove(0, 0, 1, 0), TaskMove(1, 1, 0, 0))
        answer = MoveAnswer(moves, (), Certificate(cost=3, lower_bound=0, method="greedy"))
        waves = sequence(asked, moves, "reserve-first")
        assert not check(asked, answer, waves)
        assert {leg.mode for wave in waves for leg in wave} == modes
        assert len(waves) == (3 if spare else 1)


def test_budgets_on_what_is_down_are_kept_wave_by_wave(solver):
    """Two of three replicas have to move, one may be down at a time: two waves."""
    bound = MoveBound(name="web", weights={0: 1, 1: 1, 2: 1}, limit=1, concurrent=True)
    asked = problem(kinds=[[2], [4]], free=[[0], [4], [0]], tasks=[(0, 0, 1), (0, 0, 1), (0, 2, 1)],
                    asks=[(0, 1, 1)], allowed=[[True] * 3, [True, False, False]], bounds=[bound])  # fmt: skip
    answer = make_room(asked, solver, PATIENT)
    waves = sequence(asked, answer.moves, "evict-first")
    assert [len(wave) for wave in waves] == [1, 1]
    assert not check(asked, answer, waves)


def test_why_no_move_can_help_says_where_the_largest_hole_is():
    """The signal for an autoscaler."""
    asked = problem(kinds=[[8], [1]], free=[[1], [4]], tasks=[(1, 0, 1), (1, 1, 1)], asks=[(0, 0, 1)])
    answer = make_room(asked, None)
    assert not answer.feasible
    assert answer.certificate.method == "impossible"
    assert answer.certificate.reason == "even if every movable pod moved, the largest hole is 5 of r0 on node-1"


def test_moving_makes_no_room_in_all():
    """Every node could be cleared, but there is not enough to be had."""
    asked = problem(kinds=[[4], [1]], free=[[1], [2]], tasks=[(1, 0, 1)] * 3 + [(1, 1, 1)] * 2, asks=[(0, 0, 1)])
    answer = make_room(asked, None)
    assert answer.certificate.reason == "all nodes together have 3 of r0 free; it takes 4 of r0"


def hard():
    """A chain: the greedy plan without hops would not find it, and the cover bound does not prove it."""
    return problem(**CHAIN)


@pytest.mark.parametrize(
    "command",
    [
        (sys.executable, "-c", "import sys; sys.exit(3)"),
        (sys.executable, "-c", "import sys; sys.stdout.buffer.write(b'garbage!' * 40)"),
        ("/nonexistent/solver",),
    ],
)
def test_a_solver_that_fails_leaves_the_greedy_plan_and_says_so(command):
    """It dies, talks nonsense, or is not there."""
    with ProcessSolver(command) as broken:
        answer = make_room(hard(), broken)
    assert answer.certificate.cost == 8
    assert answer.certificate.method == "greedy"
    assert "the solver failed" in answer.certificate.reason
    assert answer.certificate.lower_bound <= 8


def test_what_the_library_prints_is_no_answer(tmp_path, monkeypatch):
    """A release of HiGHS greets on standard output when it is loaded, from C and not through Python's streams."""
    (tmp_path / "highspy.py").write_text(
        "import os, sys\n"
        "os.write(1, b'Welcome to the library!')\n"
        "sys.path.remove(os.path.dirname(__file__))\n"
        "del sys.modules['highspy']\n"
        "import highspy\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with ProcessSolver() as greeting:
        assert make_room(hard(), greeting, PATIENT).certificate.method == "exact"


def test_a_solver_that_talks_something_else_is_not_waited_for():
    """A length that no answer has is not read to its end."""
    chat = "import sys, time; sys.stdout.buffer.write(b'garbage!'); sys.stdout.flush(); time.sleep(600)"
    command = (sys.executable, "-c", chat)
    with ProcessSolver(command) as chatting:
        answer = make_room(hard(), chatting)
    assert answer.certificate.method == "greedy"
    assert "the solver failed: what it said is no answer" in answer.certificate.reason


def test_a_solver_that_never_answers_is_stopped(monkeypatch):
    """The guard strikes, the process is killed, and the greedy plan stands."""
    monkeypatch.setattr("tenure.rescheduler.milp.solver.GRACE", 0.2)
    with ProcessSolver((sys.executable, "-c", "import time; time.sleep(600)")) as stuck:
        answer = make_room(hard(), stuck, PlannerLimits(time_limit=0.2))
        assert stuck._process is None
    assert answer.certificate.method == "greedy"
    assert "was stopped" in answer.certificate.reason


def test_a_solver_that_was_killed_is_started_anew(solver):
    """Whoever killed it: the next plan is exact again."""
    assert make_room(hard(), solver, PATIENT).certificate.method == "exact"
    os.kill(solver._process.pid, signal.SIGKILL)
    solver._process.wait()
    assert make_room(hard(), solver, PATIENT).certificate.method == "exact"


def test_a_solver_killed_in_the_middle_of_its_search_leaves_the_greedy_plan():
    """The real process, held while it has work and then killed: the plan stands, and the next one is exact again."""
    with ProcessSolver() as process:
        assert make_room(hard(), process, PATIENT).certificate.method == "exact"
        victim = process._process.pid
        os.kill(victim, signal.SIGSTOP)
        timer = threading.Timer(0.3, os.kill, (victim, signal.SIGKILL))
        timer.start()
        answer = make_room(hard(), process, PATIENT)
        timer.join()
        assert answer.certificate.method == "greedy"
        assert "the solver failed" in answer.certificate.reason
        assert not check(hard(), answer)
        assert make_room(hard(), process, PATIENT).certificate.method == "exact"


@functools.cache
def pieces(seed):
    asked = fragmented_problem(seed)
    return asked, cheapest_by_force(asked)


def test_room_in_pieces_is_put_together_at_the_least_cost(solver):
    """Exactly the optimum over all arrangements, with cores, budgets and gangs; impossible exactly where none does."""
    outcomes = set()
    for seed in PIECES:
        asked, least = pieces(seed)
        answer = make_room(asked, solver, PATIENT)
        assert answer.certificate.cost == least, seed
        assert (answer.certificate.method == "impossible") == (least is None), seed
        assert not check(asked, answer), seed
        outcomes.add(least is None)
    assert outcomes == {True, False}


def test_the_greedy_plan_is_near_the_optimum_on_small_states():
    """Where there is a plan it is found, within a tenth of the least cost on average, never more than twice it."""
    ratios = []
    cases = [(random_problem(seed), optimum(seed)) for seed in SEEDS] + [pieces(seed) for seed in PIECES]
    for asked, least in cases:
        if least:
            answer = make_room(asked, None)
            assert answer.feasible
            ratios.append(answer.certificate.cost / least)
    assert len(ratios) > 20
    assert sum(ratios) / len(ratios) <= 1.1
    assert max(ratios) <= 2


def test_the_same_problem_gives_the_same_plan(solver):
    """Step limits, no clock: byte for byte."""
    for seed in range(0, 80, 10):
        first, second = (
            make_room(random_problem(seed), solver, PATIENT),
            make_room(random_problem(seed), solver, PATIENT),
        )
        assert (first.moves, first.landings, first.certificate) == (second.moves, second.landings, second.certificate)


def large(seed, left=110):
    """200 nodes of 8 with ``left`` free in all, full of 1, 2 and 3, with a gang of 8 that wants whole nodes."""
    rng = np.random.default_rng(seed)
    kinds, tasks = [[1], [2], [3], [8]], []
    free = np.full(200, 8)
    while free.sum() > left:
        cls, node = int(rng.integers(3)), int(rng.integers(200))
        if free[node] > cls:
            free[node] -= cls + 1
            tasks.append((cls, node, int(rng.integers(1, 30))))
    return problem(kinds=kinds, free=[[int(f)] for f in free], tasks=tasks, asks=[(0, 3, 8)])


@pytest.mark.parametrize("left", [110, 70])
@pytest.mark.parametrize("seed", range(3))
def test_a_large_plan_passes_the_checker_and_its_bound_is_the_cost(solver, seed, left):
    """200 nodes, a gang of 8: proven, and replayed wave by wave; where little is free, over several hops."""
    asked = large(seed, left)
    answer = make_room(asked, solver, PATIENT)
    assert answer.certificate.method in {"exact", "cover"}
    assert answer.certificate.lower_bound == answer.certificate.cost
    waves = sequence(asked, answer.moves, "evict-first")
    assert len(waves) > 1 or left > 70
    assert not check(asked, answer, waves)


def test_cycles_that_know_nothing_of_each_other_share_a_process():
    """What the memory of one cycle leaves is taken up by that of the next; two at once have one each."""
    first = MoveMemory()
    assert make_room(hard(), first.solver, PATIENT).certificate.method == "exact"
    process = first.solver._process
    del first
    second, third = MoveMemory(), MoveMemory()
    assert make_room(hard(), second.solver, PATIENT).certificate.method == "exact"
    assert second.solver._process is process
    assert third.solver is not second.solver
    kept = second.solver
    del second, third
    assert kept._process is process


def test_a_search_that_was_interrupted_leaves_no_answer_for_the_next_program(monkeypatch):
    """The process ends with it: its answer would be read as that of another program."""

    def interrupted(*_):
        raise KeyboardInterrupt

    with ProcessSolver() as solver:
        with monkeypatch.context() as patch:
            patch.setattr("tenure.rescheduler.milp.solver._read", interrupted)
            with pytest.raises(KeyboardInterrupt):
                make_room(hard(), solver, PATIENT)
        assert solver._process is None
        assert make_room(hard(), solver, PATIENT).certificate.method == "exact"


def test_a_fork_takes_up_no_solver_of_its_parent():
    """Two processes that read from one pipe would take each other's answers."""
    memory = MoveMemory()
    memory.solver._launch()
    process = memory.solver._process
    del memory
    child = os.fork()
    if not child:
        os._exit(0 if MoveMemory().solver._process is None else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert MoveMemory().solver._process is process
