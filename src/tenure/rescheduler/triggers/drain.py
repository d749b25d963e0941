"""Empty nodes that are named, as gently as possible."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from tenure.engine.state.workloads import TaskState
from tenure.rescheduler.execution import TriggerExecution, prices_of
from tenure.rescheduler.fewest_spared import Planned, spared_last
from tenure.rescheduler.problem.build import why_still
from tenure.rescheduler.problem.definition import MoveBound
from tenure.rescheduler.problem.external import HOLDING

MOST_NAMED = 3
"""Tasks that are named for one reason why they stay."""

NO_PLACE = "no other node takes it as things stand"


def act(action: TriggerExecution, node: int) -> None:
    """Move everything off a node that may be moved and finds a place."""
    movable = action.movable.tasks((), node)
    there = [t for t in movable if t.node == node]
    _tell_of_the_rest(action, node, there)
    if there:
        made, answer = _plan(action, node, movable)
        if made is not None and answer.feasible:
            if not action.carry_out(made, answer, (), "drain", nodes=(node,)):
                _tell(action, node, ((task, action.state.plan.moves[-1].reason) for task in there))
        else:
            action.report((), "drain", answer, nodes=(node,))
            _tell(action, node, list(_singly(action, node, there)))
    if any(t.node == node and t.active for t in action.session.on_node[node]):
        action.look_again(action.session.now)


def _plan(action: TriggerExecution, node: int, movable: Sequence[TaskState]) -> Planned:
    """Plan the moves: what asked to be spared elsewhere makes way only where nothing else does."""

    def plan(tasks: Sequence[TaskState], bounds: Sequence[MoveBound]) -> Planned:
        return action.plan(tasks, (), (node,), bounds=bounds)

    everybody = partial(action.movable.tasks, (), node, everybody=True)
    return spared_last(action.session, plan, movable, everybody, node)


def _tell_of_the_rest(action: TriggerExecution, node: int, there: Sequence[TaskState]) -> None:
    """Warn of what stays although the node is to be emptied, and say why."""
    session, moving = action.session, set(there)
    elsewhere = (HOLDING, *session.settings.rescheduler.schedulers)  # of these, another plan speaks
    staying = [
        t
        for t in session.on_node[node]
        if t.active and t.node == node and t not in moving and t.workload.model.scheduler_name not in elsewhere
    ]
    _tell(action, node, ((task, why_still(action.movable, task, node)) for task in staying))


def _tell(action: TriggerExecution, node: int, staying: Iterable[tuple[TaskState, str]]) -> None:
    """Warn of tasks that stay, each with the reason."""
    reasons: dict[str, list[str]] = {}
    for task, why in sorted(staying, key=lambda pair: (pair[0].workload.key, pair[0].index)):
        reasons.setdefault(why, []).append(f"{task.workload.key} {task.name}")
    for why, names in reasons.items():
        more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
        text = f"drain of {action.session.nodes.names[node]} leaves {', '.join(names[:MOST_NAMED])}{more} there: {why}"
        action.state.plan.warnings.append(text)


def _singly(action: TriggerExecution, node: int, there: Sequence[TaskState]) -> Iterator[tuple[TaskState, str]]:
    """Not all can land: move those that can, the cheapest first, without moving anything else; say why others stay."""
    price = prices_of(action.state, there)
    for task in sorted(there, key=lambda t: (price[t][0], t.workload.key, t.index)):
        alone = [t for t in action.movable.tasks((), node) if t is task]
        if not alone:
            yield task, why_still(action.movable, task, node)
            continue
        made, answer = action.plan(alone, (), (node,), exact=False)
        if not answer.feasible:
            yield task, NO_PLACE
        elif not action.carry_out(made, answer, (), "drain", nodes=(node,)):
            yield task, action.state.plan.moves[-1].reason
