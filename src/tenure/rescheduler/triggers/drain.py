"""Empty nodes that are named, as gently as possible."""

from __future__ import annotations

from collections.abc import Sequence

from tenure.engine.workloads import TaskState
from tenure.rescheduler.carrying import Rescheduling, prices_of


def act(action: Rescheduling, node: int) -> None:
    """Move everything off a node that may be moved and finds a place."""
    there = [t for t in action.movable.tasks(()) if t.node == node]
    stays = sum(t.active and t.node == node for t in action.session.on_node[node]) - len(there)
    if there:
        made, answer = action.plan(action.movable.tasks(()), (), (node,))
        if answer.feasible:
            action.carry_out(made, answer, (), "drain")
        else:
            action.report((), "drain", answer)
            _singly(action, there)
    if stays:
        name = action.session.nodes.names[node]
        action.state.plan.warnings.append(f"drain of {name}: {stays} tasks stay that must not be moved")


def _singly(action: Rescheduling, there: Sequence[TaskState]) -> None:
    """Not all can land: move those that can, the cheapest first, without moving anything else."""
    price = prices_of(action.state, there)
    for task in sorted(there, key=lambda t: (price[t][0], t.workload.key, t.index)):
        alone = [t for t in action.movable.tasks(()) if t is task]
        if not alone:
            continue
        made, answer = action.plan(alone, (), (task.node,), exact=False)
        if answer.feasible:
            action.carry_out(made, answer, (), "drain")
