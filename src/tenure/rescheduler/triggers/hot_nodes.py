"""Relieve nodes whose CPU is really in use beyond `hot`, each by the cheapest moves that cool it below.

What leaves lands where it makes no other node hot, and may push others on so that there is such a place: heat is one
more resource of the planner's problem. Where no moves cool a node enough, the single moves that cool it most for their
disruption are made.
"""

from __future__ import annotations

from collections.abc import Sequence

from tenure.engine.state.session import Session
from tenure.engine.state.workloads import TaskState
from tenure.model.values.resources import CPU
from tenure.rescheduler.execution import SECOND, TriggerExecution, prices_of
from tenure.rescheduler.memory import MoveMemory, moves_of
from tenure.rescheduler.problem.utilization import share_of, used

PAUSE = 60 * SECOND
NAME = "hot-node"


def hot(session: Session, memory: MoveMemory, nodes: Sequence[int]) -> list[int]:
    """Which of the nodes are hot, and have been for long enough, because of what runs there.

    A pod on it has to use as much as it asked for, or more. A reading may be older than the last move off a node, so
    that a node is left alone for as long as it would have to be hot.
    """
    found = [n for n in nodes if _excess(session, n) > 0 and _for_long(session, n) and _driven(session, n)]
    if not found:
        return []
    since = session.now - session.settings.rescheduler.hot_nodes.for_
    left = {m.origin for m in moves_of(session, memory) if m.at >= since and m.origin is not None}
    return [n for n in found if session.nodes.names[n] not in left]


def _excess(session: Session, node: int) -> int:
    """Millicores in use beyond what makes a node hot."""
    model = session.nodes.nodes[node]
    usage = (model.usage or {}).get(CPU, 0)
    return usage - share_of(session.settings.rescheduler.hot_nodes.hot, model.allocatable.get(CPU, 0))


def _for_long(session: Session, node: int) -> bool:
    return (session.nodes.nodes[node].usage_for or 0) >= session.settings.rescheduler.hot_nodes.for_


def _driven(session: Session, node: int) -> bool:
    for task in session.on_node[node]:
        usage = (task.model.usage or {}).get(CPU, 0)
        if task.node == node and usage and usage >= dict(task.cls.spec.requests).get(CPU, 0):
            return True
    return False


def act(action: TriggerExecution, nodes: Sequence[int]) -> None:
    """Cool the nodes, the hottest first."""
    session = action.session
    for node in sorted(nodes, key=lambda n: (-_excess(session, n), n)):
        action.memory.again[f"{NAME} {session.nodes.names[node]}"] = session.now + PAUSE
        _cool(action, node)


def _cool(action: TriggerExecution, node: int) -> None:
    tasks = action.movable.tasks(())
    if not any(t.node == node for t in tasks):
        return
    excess = _excess(action.session, node)
    made, answer = action.plan(tasks, cooled={node: excess})
    if answer.feasible:
        action.carry_out(made, answer, (), NAME, nodes=(node,))
        return
    action.report((), NAME, answer, nodes=(node,))
    _singly(action, node, excess)


def _singly(action: TriggerExecution, node: int, excess: int) -> None:
    """Nothing cools the node enough: move single tasks, those first that cool it most for what moving them costs."""
    there = [t for t in action.movable.tasks(()) if t.node == node and used(t)]
    price = prices_of(action.state, there)

    def rank(task: TaskState) -> tuple[float, str, int]:
        return price[task][0] / used(task), task.workload.key, task.index

    for task in sorted(there, key=rank):
        if excess <= 0:
            return
        alone = [t for t in action.movable.tasks(()) if t is task]
        if not alone:
            continue
        made, answer = action.plan(alone, cooled={node: min(excess, used(task))}, exact=False)
        if answer.feasible and action.carry_out(made, answer, (), NAME, nodes=(node,)):
            excess -= used(task)
