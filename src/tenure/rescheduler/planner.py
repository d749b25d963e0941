"""Makes the plan: greedy always, exact within a limit of solver steps, and the certificate (spec: plans)."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tenure.rescheduler.heuristic.beam import Found
from tenure.rescheduler.heuristic.greedy import WIDTH, greedy
from tenure.rescheduler.milp.cover_bounds import NEVER, CoverBounds, bounds_of
from tenure.rescheduler.milp.decode import decode
from tenure.rescheduler.milp.decompose import Decomposition
from tenure.rescheduler.milp.program import MixedIntegerProgram, assemble
from tenure.rescheduler.milp.solver import Solution, Solver
from tenure.rescheduler.problem.definition import Certificate, MemberLanding, MoveAnswer, MoveProblem, TaskMove
from tenure.rescheduler.problem.infeasible import why_never

TOLERANCE = 1e-4
"""Costs are whole numbers; a bound that lies this close below one counts as that one."""


WIDENING = (0.02, 0.25, 1.5)
"""How far above the bound a plan is looked for first, as a share of it."""


LARGE = 10_000
"""Above so many tasks, a program with more than `MOST_COLUMNS` is not solved as a whole."""
MOST_COLUMNS = 20_000


ALONE = 4
"""How much more effort the greedy plan is worth where no exact one follows."""


@dataclass(frozen=True, slots=True)
class PlannerLimits:
    """The limits of the exact planner for one plan: nodes of its tree, and as a guard seconds."""

    node_limit: int = 10_000
    time_limit: float = 60.0


def make_room(problem: MoveProblem, solver: Solver | None, limits: PlannerLimits | None = None) -> MoveAnswer:
    """Find the cheapest moves after which all of ``problem.asks`` fit.

    Parameters
    ----------
    problem
        The problem.
    solver
        For the exact plan; without it the greedy plan stands with the cover bound.
    limits
        Of the solver.
    """
    covers = bounds_of(problem)
    bound = max((int(c.total[-1]) for c in covers), default=0)
    reason = why_never(problem, covers)
    if reason:
        return _none(bound, "impossible", reason)
    found = greedy(problem, covers, WIDTH if solver is not None else WIDTH * ALONE)
    if found is not None and found[0] <= bound:
        return _answer(found, bound, "cover", "at least so much has to leave, whichever nodes are chosen")
    if solver is None:
        return _greedy_only(found, bound, "the exact planner is off")
    return _exact(problem, covers, found, bound, solver, limits or PlannerLimits())


def _exact(
    problem: MoveProblem,
    covers: Sequence[CoverBounds],
    found: Found | None,
    bound: int,
    solver: Solver,
    limits: PlannerLimits,
) -> MoveAnswer:
    """Search below one cut-off after the other: the nearer it is to the bound, the fewer tasks can play a part."""
    begin = time.monotonic()
    nodes = limits.node_limit
    for cutoff in _cutoffs(bound, None if found is None else found[0]):
        left = limits.time_limit - (time.monotonic() - begin)
        program = assemble(problem, covers, cutoff)
        if problem.tasks > LARGE and len(program.cost) > MOST_COLUMNS:
            return _by_parts(problem, covers, found, bound, solver, left)
        solution = solver.solve(program, node_limit=max(1, nodes), time_limit=max(0.1, left))
        nodes -= solution.nodes
        if solution.failure and not solution.refused:
            found = _harder(problem, covers, found)
        if solution.infeasible and cutoff is not None:
            bound = max(bound, cutoff)
            continue
        return _judged(problem, program, solution, found, bound)
    if found is None:
        return _none(bound, "impossible", "no arrangement of what may be moved leaves the room: proven by search")
    return _answer(found, found[0], "exact", "proven by search: nothing cheaper makes room")


def _harder(problem: MoveProblem, covers: Sequence[CoverBounds], found: Found | None) -> Found | None:
    """Put more effort into the greedy plan, now that it has to stand."""
    wider = greedy(problem, covers, WIDTH * ALONE)
    return min((f for f in (found, wider) if f is not None), key=lambda f: f[0], default=None)


def _by_parts(
    problem: MoveProblem,
    covers: Sequence[CoverBounds],
    found: Found | None,
    bound: int,
    solver: Solver,
    time_limit: float,
) -> MoveAnswer:
    """Search part by part; the bound is what is known of the whole."""
    search = Decomposition(problem, covers, solver, time_limit)
    better = search.run(found)
    why = f": {search.failure}" if search.failure else ""
    if better is None:
        return _none(bound, "unknown", f"no plan was found part by part, and none was ruled out{why}")
    if better[0] <= bound:
        return _answer(better, better[0], "exact", "found part by part; the bound of the whole cluster proves it")
    if better is found and search.failure:
        return _greedy_only(found, bound, search.failure)
    reason = (
        "the cluster is too large to be proven at once: parts of it were solved, against the bound of the whole" + why
    )
    return _answer(better, bound, "decomposed", reason)


def _cutoffs(bound: int, cost: int | None) -> list[int | None]:
    """Give rising cut-offs, the last one that of the plan that is known, or none."""
    early = [bound + 2 + int(bound * share) for share in WIDENING]
    if cost is None:
        return [*early, None]
    return [*(c for c in early if c < cost - (cost - bound) // 4), cost]


def _judged(
    problem: MoveProblem, program: MixedIntegerProgram, solution: Solution, found: Found | None, bound: int
) -> MoveAnswer:
    """Make an answer of what the solver says below the last cut-off."""
    if solution.infeasible:
        return _none(bound, "impossible", "no arrangement of what may be moved leaves the room: proven by search")
    bound = max(bound, _rounded(solution))
    if solution.values is None:
        return _greedy_only(found, bound, solution.failure or f"the search was cut off after {solution.nodes} nodes")
    moves, landings = decode(problem, program, solution.values)
    cost = sum(int(problem.cost[m.task]) for m in moves)
    if solution.optimal or cost <= bound:
        return _answer((cost, tuple(moves), tuple(landings)), cost, "exact", "proven by search: nothing cheaper does")
    reason = f"the search was cut off after {solution.nodes} nodes"
    return _answer((cost, tuple(moves), tuple(landings)), min(bound, cost), "greedy", reason)


def _rounded(solution: Solution) -> int:
    if not math.isfinite(solution.bound):
        return 0
    return max(0, math.ceil(solution.bound - TOLERANCE))


def _greedy_only(found: Found | None, bound: int, why: str) -> MoveAnswer:
    if found is None:
        return _none(bound, "unknown", f"no plan was found, and none was ruled out: {why}")
    return _answer(found, min(bound, found[0]), "greedy", f"the greedy plan stands: {why}")


def _answer(found: Found, bound: int, method: str, reason: str) -> MoveAnswer:
    cost, moves, landings = found
    return MoveAnswer(moves, landings, Certificate(cost=cost, lower_bound=bound, method=method, reason=reason))


def _none(bound: int, method: str, reason: str) -> MoveAnswer:
    return MoveAnswer((), (), Certificate(cost=None, lower_bound=min(bound, NEVER), method=method, reason=reason))


@dataclass(frozen=True, slots=True)
class RoomImprovement:
    """The most members that ``moves`` make room for, and the proven most (``bound``)."""

    moves: tuple[TaskMove, ...]
    landings: tuple[MemberLanding, ...]
    placed: int
    bound: int
    optimal: bool
    reason: str = ""


def most_room(problem: MoveProblem, moves: int, solver: Solver, limits: PlannerLimits | None = None) -> RoomImprovement:
    """Find at most so many moves after which as many members of ``problem.asks`` as possible fit."""
    limits = limits or PlannerLimits()
    covers = bounds_of(problem)
    program = assemble(problem, covers, None, most_moves=moves)
    solution = solver.solve(program, node_limit=limits.node_limit, time_limit=limits.time_limit)
    if solution.values is None:
        return RoomImprovement((), (), 0, problem.asks[0].count, optimal=False, reason=solution.failure or "cut off")
    made, landings = decode(problem, program, solution.values)
    best = -math.ceil(solution.bound - TOLERANCE) if np.isfinite(solution.bound) else problem.asks[0].count
    return RoomImprovement(
        tuple(made), tuple(landings), len(landings), max(best, len(landings)), solution.optimal, solution.failure
    )
