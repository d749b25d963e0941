"""Moves of what asked to be spared: only where nothing else makes room, and as few of them as will do.

Spec, the cycle: a set with fewer such tasks wins before cost is looked at. A plan proves the least of one sum, so the
number is a bound of the program: it is lowered as long as a plan is found, and each plan is the cheapest below it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from tenure.engine.state.session import Session
from tenure.engine.state.workloads import TaskState
from tenure.rescheduler.problem.build import ProblemView
from tenure.rescheduler.problem.definition import MoveAnswer, MoveBound
from tenure.shields.opt_out import SHIELD, spared

Planned = tuple[ProblemView | None, MoveAnswer]
"""A problem, None where it was not written, and what was found."""

PlanOf = Callable[[Sequence[TaskState], Sequence[MoveBound]], Planned]
"""Plans the moves of some tasks within budgets and further bounds."""


def spared_last(
    session: Session,
    plan: PlanOf,
    movable: Sequence[TaskState],
    everybody: Callable[[], Sequence[TaskState]],
    emptied: int | None = None,
) -> Planned:
    """Plan moves of what is ``movable``, and only where that gives none of ``everybody``, with what asked to be spared.

    What asked for it on the node that is to be ``emptied`` goes in any case, and is not counted.
    """
    found = plan(movable, ())
    tasks = movable if found[1].feasible else everybody()
    if len(tasks) == len(movable):
        return found
    return with_fewest(partial(plan, tasks), askers(session, tasks, emptied))


def askers(session: Session, tasks: Sequence[TaskState], emptied: int | None = None) -> frozenset[int]:
    """Give the places of those among some tasks that asked to be spared; not on the node that is to be ``emptied``."""
    return frozenset(i for i, task in enumerate(tasks) if task.node != emptied and spared(session, task))


def with_fewest(plan: Callable[[Sequence[MoveBound]], Planned], asked: frozenset[int]) -> Planned:
    """Plan so that as few as possible of the tasks that ``asked`` to be spared move, then as cheaply as possible.

    That no plan was found without any of them is known beforehand.

    What is not proven to be impossible, because a search was cut off, counts as not found, and the reason says so.
    """
    best = plan(())
    low, all_ruled_out = 1, True
    while (moved := _count(best[1], asked)) > low:
        most = (low + moved - 1) // 2
        bound = MoveBound(name=SHIELD, weights=dict.fromkeys(asked, 1), limit=most)
        tried = plan((bound,))
        if tried[1].feasible:
            best = tried
        else:
            low, all_ruled_out = most + 1, all_ruled_out and tried[1].certificate.method == "impossible"
    return _told(best, moved, proven=all_ruled_out) if moved else best


def _count(answer: MoveAnswer, asked: frozenset[int]) -> int:
    return sum(move.task in asked for move in answer.moves)


def _told(planned: Planned, moved: int, *, proven: bool) -> Planned:
    """Say in the certificate how many of those moves there are."""
    certificate = planned[1].certificate
    what = f"{moved} {'task' if moved == 1 else 'tasks'} that asked to be spared"
    fewer = "nothing makes room with fewer" if proven else "whether fewer would do was not found out"
    text = f"{certificate.reason}; among plans that move {what}: {fewer}"
    return planned[0], replace(planned[1], certificate=replace(certificate, reason=text))
