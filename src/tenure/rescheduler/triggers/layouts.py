"""What the triggers share that improve the layout: search, exact plan where it fits, certificate."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tenure.engine.state.workloads import TaskState
from tenure.rescheduler.execution import LayoutGain, TriggerExecution
from tenure.rescheduler.heuristic.layout_moves import NOTHING, ImprovingMove
from tenure.rescheduler.heuristic.local_search import LocalSearch, LocalSearchResult
from tenure.rescheduler.milp.empty_nodes import empty_nodes
from tenure.rescheduler.problem.build import ProblemView, view
from tenure.rescheduler.problem.definition import Certificate, MoveAnswer, TaskMove
from tenure.rescheduler.problem.improvement import LayoutProblem, bound, improvement
from tenure.rescheduler.problem.layout import LayoutTerms, LayoutWorth, Mask

NO_BOUND = 1 << 50
"""No plan is known to cost less for the same gain: the certificate bounds the gain instead."""


def improve(
    action: TriggerExecution, trigger: str, terms: LayoutTerms, origins: Mask, targets: Mask, least: float,
    about: Sequence[int] = (),
) -> bool:  # fmt: skip
    """Make moves from ``origins`` to ``targets`` (``bool[nodes]``) that improve the layout; whether there are any.

    What others were evicted for is not evicted itself for that (spec: causes add up): it rests for `settle`.
    ``about``: nodes for whose sake it is done, for who reads the plan.
    """
    state = action.state
    helped = action.memory.helped_lately(action.session, action.settings.settle)
    there = [t for t in action.movable.tasks(()) if origins[t.node]]
    for until in {helped[t.workload.key] for t in there if t.workload.key in helped}:
        action.movable.note_end(until)
    tasks = [t for t in there if t.workload.key not in helped]
    if not tasks or not targets.any():
        return False
    worth = LayoutWorth(action.session, terms)
    found = LocalSearch(state, tasks, worth, targets, least).run()
    asked = improvement(worth, view(state, tasks, ()), targets, least)
    found, most, method, reason = _exact(action, tasks, worth, asked, found)
    if not found.moves:
        return False
    net = found.gain - least * found.cost
    most = max(most, net)
    if method != "exact" and most - net <= NOTHING:
        method, reason = "exact", "no plan can leave more: its gain is the bound"
    made, answer = _answer(action, found, method, reason)
    return action.carry_out(made, answer, (), trigger, LayoutGain(found.gain, net, most), about)


def _exact(
    action: TriggerExecution,
    tasks: Sequence[TaskState],
    worth: LayoutWorth,
    asked: LayoutProblem,
    found: LocalSearchResult,
) -> tuple[LocalSearchResult, float, str, str]:
    """Prove a plan that empties nodes, or find a better one, where the program says all there is to say."""
    terms, most = asked.terms, bound(asked)
    cut = "the search was cut off" if found.cut_off else "nothing further that pays was found"
    simple = terms.whole and not terms.packed and not terms.scattered and not asked.hidden and not len(asked.liking)
    if action.solver is None or not simple:
        return found, most, "greedy", f"{cut}, with one task or one node at a time"
    solved = empty_nodes(asked, action.solver, action.limits)
    if solved is None:
        return found, most, "greedy", f"{cut}, with one task or one node at a time"
    most = min(most, max(0.0, solved.bound))
    better = _tried(action, tasks, worth, asked, solved.moves)
    if better is not None and better.gain - asked.least * better.cost > found.gain - asked.least * found.cost + NOTHING:
        found = better
    if solved.optimal and abs(most - (found.gain - asked.least * found.cost)) <= NOTHING * max(1.0, most):
        return found, most, "exact", "proven by search: no moves leave more"
    return found, most, "greedy", solved.reason or "the exact plan does not hold once all constraints are looked at"


def _tried(
    action: TriggerExecution,
    tasks: Sequence[TaskState],
    worth: LayoutWorth,
    asked: LayoutProblem,
    moves: Sequence[TaskMove],
) -> LocalSearchResult | None:
    if not moves or any(m.origin == m.target for m in moves):
        return None
    search = LocalSearch(action.state, tasks, worth, asked.targets, asked.least)
    return search.trial([ImprovingMove(tasks[m.task], m.target) for m in moves])


def _answer(
    action: TriggerExecution, found: LocalSearchResult, method: str, reason: str
) -> tuple[ProblemView, MoveAnswer]:
    """Write what was found as a plan over the tasks that move; they take the devices that suit best."""
    made = view(action.state, [m.task for m in found.moves], (), apart=False)
    problem = made.problem
    shapes = [problem.shapes[cls][0] for cls in problem.cls.tolist()]
    moves = tuple(TaskMove(n, int(problem.node[n]), m.target, shapes[n]) for n, m in enumerate(found.moves))
    certificate = Certificate(cost=found.cost, lower_bound=NO_BOUND, method=method, reason=reason)
    return made, MoveAnswer(moves, (), certificate)


def everywhere(action: TriggerExecution) -> Mask:
    """All nodes."""
    return np.ones(len(action.session.nodes), bool)
