"""The counts for terms that no task had before: which of the tasks that are there match them."""

from __future__ import annotations

from tenure.engine.state.state import SessionState
from tenure.engine.state.workloads import TERMINATING, TaskState


def count_anew(session: SessionState, first: int) -> None:
    """Look which of the tasks known so far new terms match, and count these.

    Parameters
    ----------
    session
        The session that has just registered the terms.
    first
        Number of the first of them.
    """
    terms = session.terms
    for state in session.workloads.values():
        namespace = state.model.namespace
        for task in state.tasks:
            rows = terms.rows_for(task.model.spec.labels, namespace)
            if rows and rows[-1] >= first:
                _count_wherever(session, task, -1)
                task.terms = terms.of(task.model.spec, namespace)
                _count_wherever(session, task, 1)
        if state.entry is not None:
            session.refresh(state)  # its step may fail now where others of its shape fit


def _count_wherever(session: SessionState, task: TaskState, sign: int) -> None:
    """Count what a task's terms match, where it is, where it is promised to be, and where it leaves."""
    now, then = _views(task)
    session.occupancy.count_terms(task, sign, now=now, then=then)
    if task.leaving >= 0:
        session.occupancy.count_terms(task, sign, now=True, then=task.stuck, node=task.leaving)
    if task.leaving >= 0 or task.phase is TERMINATING:
        session.occupancy.count_leaving(task, sign, now=True, then=task.stuck)


def _views(task: TaskState) -> tuple[bool, bool]:
    placed = task.node >= 0
    return placed, (placed and (task.phase is not TERMINATING or task.stuck)) or task.nominated >= 0
