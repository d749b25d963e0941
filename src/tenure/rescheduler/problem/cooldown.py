"""What was moved too lately to be moved again: `settle`, growing with every move (spec: what it must never do)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from tenure.engine.state.session import Session
from tenure.engine.state.workloads import TaskState, WorkloadState
from tenure.rescheduler.memory import PastMove

MOST_DOUBLINGS = 10
Key = tuple[str, str]


def settled(session: Session, moves: Iterable[PastMove]) -> set[Key]:
    """Give the tasks, by workload and name, that must be left alone for now."""
    return {key for key, until in resting(session, moves).items() if session.now < until}


def resting(session: Session, moves: Iterable[PastMove]) -> dict[Key, int]:
    """Give, for every task that was ever moved, until when it is left alone (µs since the epoch).

    Parameters
    ----------
    session
        The cluster.
    moves
        What was moved, in any order.
    """
    settle = session.settings.rescheduler.settle
    by_task: dict[Key, list[PastMove]] = defaultdict(list)
    for move in moves:
        by_task[move.workload, move.task].append(move)
    found = {}
    for key, history in _heirs(session, by_task).items():
        task = _task(session, key)
        if task is not None:
            ordered = sorted({m.at: m for m in history}.values(), key=lambda m: m.at)
            times = [m.at for m in ordered]
            found[key] = times[-1] + rest(times, settle, _returns(ordered), back=_is_back(session, task, ordered[-1]))
    return found


def rest(times: Sequence[int], settle: int, returns: Iterable[int] = (), *, back: bool = False) -> int:
    """How long after its last move a task is left alone, in µs.

    Parameters
    ----------
    times
        When it was moved, ascending, in µs since the epoch; at least one.
    settle
        The setting, in µs. It doubles for each move that came within twice the rest before it, and for each by which
        the task left a node that it had left before: the same cause would bring it back there again.
    returns
        Numbers of the moves of that second kind.
    back
        The task stands on the origin of its last move again: that doubles the rest as well.
    """
    doublings, returned = 0, set(returns)
    for number in range(1, len(times)):
        soon = times[number] - times[number - 1] <= 2 * (settle << doublings)
        doublings = min(doublings + 1, MOST_DOUBLINGS) if soon or number in returned else 0
    return settle << min(doublings + back, MOST_DOUBLINGS)


def _returns(history: Sequence[PastMove]) -> list[int]:
    """Which of the moves left a node that an earlier one had left."""
    return [n for n, m in enumerate(history) if m.origin is not None and any(e.origin == m.origin for e in history[:n])]


def _is_back(session: Session, task: TaskState, last: PastMove) -> bool:
    if last.origin is None or last.origin == last.target or task.node < 0:
        return False
    return session.nodes.names[task.node] == last.origin


def _heirs(session: Session, by_task: dict[Key, list[PastMove]]) -> dict[Key, list[PastMove]]:
    """Hand on the history of pods that have gone to those that replaced them under another name.

    A replacement is a task of the same workload that no move names, and that started after the move on the node that
    was its target, or on the one that it left.
    """
    found: dict[Key, list[PastMove]] = defaultdict(list)
    for (key, name), history in sorted(by_task.items()):
        workload = session.workloads.get(key)
        if workload is None:
            continue
        if any(t.name == name for t in workload.tasks):
            found[key, name] += history
            continue
        last = max(history, key=lambda m: m.at)
        heir = next((t for t in workload.tasks if _replaces(session, t, last, by_task, found)), None)
        if heir is not None:
            found[key, heir.name] += history
    return found


def _replaces(
    session: Session,
    task: TaskState,
    last: PastMove,
    known: dict[Key, list[PastMove]],
    taken: dict[Key, list[PastMove]],
) -> bool:
    key = task.workload.key, task.name
    if (
        task.node < 0
        or key in known
        or key in taken
        or session.nodes.names[task.node] not in (last.target, last.origin)
    ):
        return False
    since = task.model.started_at if task.model.started_at is not None else task.model.created_at
    return since is not None and since >= last.at


def _task(session: Session, key: Key) -> TaskState | None:
    workload: WorkloadState | None = session.workloads.get(key[0])
    return None if workload is None else next((t for t in workload.tasks if t.name == key[1]), None)
