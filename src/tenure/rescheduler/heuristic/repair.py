"""Plans that hold under the scheduler's own fit rules: parts of devices, and constraints between tasks.

The program leaves those out, which keeps its bound valid. Where a landing is refused on the session, that class is
kept off that node and the plan is made anew, a bounded number of times.
"""

from __future__ import annotations

from dataclasses import replace

from tenure.engine.state.evictions import evict
from tenure.rescheduler.enact import WantedLanding, land
from tenure.rescheduler.milp.solver import Solver
from tenure.rescheduler.planner import PlannerLimits, make_room
from tenure.rescheduler.problem.build import ProblemView
from tenure.rescheduler.problem.definition import Certificate, MoveAnswer, MoveProblem
from tenure.victims.recording.state import EvictionState

ROUNDS = 12
"""How often a plan is made anew."""


def suitable(state: EvictionState, made: ProblemView, solver: Solver | None, limits: PlannerLimits) -> MoveAnswer:
    """Give the cheapest plan that was found to hold on the session, with the bound of the problem as it stands.

    Without a plan the method is ``impossible`` only if even the problem without those rules has none.
    """
    first = make_room(made.problem, solver, limits)
    if not made.relaxed or not first.feasible:
        return first
    found = _repaired(state, made, first, solver, limits)
    if found is None and solver is not None:
        found = _repaired(state, made, make_room(made.problem, None), None, limits)
    bound = first.certificate.lower_bound
    if found is None:
        why = "no plan was found that suits parts of GPUs and constraints between tasks, and none was ruled out"
        return MoveAnswer((), (), Certificate(cost=None, lower_bound=bound, method="unknown", reason=why))
    cost = found.certificate.cost
    assert cost is not None
    if cost == bound:
        proven = replace(first.certificate, cost=cost, lower_bound=bound, method="exact", reason=_PROVEN)
        return replace(found, certificate=found.certificate if found is first else proven)
    if found is first:
        return first
    certificate = Certificate(cost=cost, lower_bound=bound, method="greedy", reason=_OPEN)
    return replace(found, certificate=certificate)


_PROVEN = "proven by search: nothing cheaper does, even without constraints between tasks"
_OPEN = "places that the scheduler's rules refuse were closed one by one; the bound is that without those rules"


def _repaired(
    state: EvictionState, made: ProblemView, answer: MoveAnswer, solver: Solver | None, limits: PlannerLimits
) -> MoveAnswer | None:
    """Close what is refused until a plan holds."""
    problem = made.problem
    for _ in range(ROUNDS):
        if not answer.feasible:
            return None
        refused = misfits(state, made, answer)
        if not refused:
            return answer
        problem = _closed(problem, refused)
        answer = make_room(problem, solver, limits)
    return None


def _closed(problem: MoveProblem, refused: set[tuple[int, int]]) -> MoveProblem:
    allowed = problem.allowed.copy()
    for shape, node in refused:
        allowed[shape, node] = False
    return replace(problem, allowed=allowed)


def misfits(state: EvictionState, made: ProblemView, answer: MoveAnswer) -> set[tuple[int, int]]:
    """Play a plan through on the session, and give what is refused: shapes and nodes. The session stays as it was."""
    session = state.session
    moved = [made.tasks[m.task] for m in answer.moves]
    members = [list(tasks) for tasks in made.asks]
    landings = [x for x in answer.landings if x.ask < len(members)]
    tasks = [members[x.ask].pop(0) for x in landings] + moved
    shapes = [x.shape for x in landings] + [m.shape for m in answer.moves]
    nodes = [x.node for x in landings] + [m.target for m in answer.moves]
    devices = [made.devices[s] if made.devices else () for s in shapes]
    with session.scenario():
        for task in moved:
            evict(session, task)
        for workload in dict.fromkeys(t.workload for t in moved):
            session.refresh(workload)
        left = land(state, list(map(WantedLanding, tasks, nodes, devices)))
    return {(shapes[n], nodes[n]) for n in left}
