"""From how many of a class leave and arrive to which task goes where, no task back to where it came from."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from numpy.typing import NDArray

from tenure.rescheduler.milp.program import MixedIntegerProgram
from tenure.rescheduler.problem.definition import MemberLanding, MoveProblem, TaskMove


def decode(
    problem: MoveProblem, program: MixedIntegerProgram, values: NDArray[np.float64]
) -> tuple[list[TaskMove], list[MemberLanding]]:
    """Give moves and landings of a solution."""
    counts = np.rint(values).astype(np.int64)
    leaving: dict[int, list[int]] = defaultdict(list)
    for tasks, count in zip(program.removed, counts[: len(program.removed)].tolist(), strict=True):
        leaving[int(problem.cls[tasks[0]])] += tasks[:count]
    places: dict[int, list[tuple[int, int]]] = defaultdict(list)
    landings: list[MemberLanding] = []
    first = len(program.removed)
    for inflow, count in zip(program.inflows, counts[first : first + len(program.inflows)].tolist(), strict=True):
        if inflow.ask >= 0:
            landings += [MemberLanding(inflow.ask, inflow.node, inflow.shape)] * count
        else:
            places[inflow.cls] += [(inflow.node, inflow.shape)] * count
    moves: list[TaskMove] = []
    for cls, tasks in sorted(leaving.items()):
        moves += _matched(problem, tasks, places[cls])
    return sorted(moves, key=lambda m: m.task), landings


def _matched(problem: MoveProblem, tasks: list[int], places: list[tuple[int, int]]) -> list[TaskMove]:
    """Assign tasks to places, as few as possible to their own node.

    What has to stay on its node in its shape does not move at all, unless it goes along with its core.
    """
    taken: dict[int, int] = {}
    for task in range(len(tasks)):
        _augment(problem, tasks, places, task, taken, set())
    given = {task: place for place, task in taken.items()}
    rest = iter([p for p in range(len(places)) if p not in taken])
    moves = []
    for number, task in enumerate(tasks):
        place = given[number] if number in given else next(rest)
        node, shape = places[place]
        origin = int(problem.node[task])
        if node == origin and shape == problem.shape[task] and problem.unit[task] < 0:
            continue
        moves.append(TaskMove(task, origin, node, shape))
    return moves


def _augment(
    problem: MoveProblem,
    tasks: list[int],
    places: list[tuple[int, int]],
    task: int,
    taken: dict[int, int],
    seen: set[int],
) -> bool:
    """Find a place for a task, moving others to other places where that helps."""
    for place, (node, _) in enumerate(places):
        if node == problem.node[tasks[task]] or place in seen:
            continue
        seen.add(place)
        if place not in taken or _augment(problem, tasks, places, taken[place], taken, seen):
            taken[place] = task
            return True
    return False
