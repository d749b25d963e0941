"""Checks a plan by itself: it shares no code with what makes plans, and is written to be read rather than to be fast.

It replays the waves and looks at every instant; a lower bound is checked against a bound of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from tenure.rescheduler.problem.definition import MoveAnswer, MoveProblem, TaskMove

Waves = Sequence[Sequence[tuple[TaskMove, str]]]
"""Moves with their mode, wave by wave."""

SMALL = 12
"""Up to so many tasks on a node, the checker's own bound looks at all sets of them."""


def check(problem: MoveProblem, answer: MoveAnswer, waves: Waves | None = None) -> list[str]:
    """Give everything that is wrong with an answer, in sentences; nothing if it is right.

    Parameters
    ----------
    problem
        What was asked.
    answer
        The plan and its certificate.
    waves
        The plan in order, if it is to be replayed as well.
    """
    if not answer.feasible:
        return ["there are moves, but no plan"] if answer.moves or answer.landings else []
    faults = _moves(problem, answer) + _landings(problem, answer) + _budgets(problem, answer)
    faults += _whole_cores(problem, answer) + _costs(problem, answer) + _outcome(problem, answer)
    return faults + (replay(problem, answer, waves) if waves is not None else [])


def _moves(problem: MoveProblem, answer: MoveAnswer) -> list[str]:
    faults = []
    seen = set()
    for move in answer.moves:
        task = move.task
        if task in seen:
            faults.append(f"task {task} moves twice")
        seen.add(task)
        if move.origin != problem.node[task]:
            faults.append(f"task {task} is on node {problem.node[task]} and not on {move.origin}")
        if move.shape not in problem.shapes[problem.cls[task]]:
            faults.append(f"task {task} cannot take shape {move.shape}")
        same = move.shape == problem.shape[task] or not problem.in_place
        if move.target == move.origin and same and problem.unit[task] < 0:
            faults.append(f"task {task} returns to its own node")
        if not problem.allowed[move.shape, move.target]:
            faults.append(f"task {task} may not land on node {move.target}")
    return faults


def _landings(problem: MoveProblem, answer: MoveAnswer) -> list[str]:
    faults = []
    for number, ask in enumerate(problem.asks):
        places = [x for x in answer.landings if x.ask == number]
        if len(places) != ask.count:
            faults.append(f"{len(places)} of {ask.count} members of ask {number} land")
        faults += [
            f"a member of ask {number} may not land on node {place.node}"
            for place in places
            if place.shape not in problem.shapes[ask.cls] or not problem.allowed[place.shape, place.node]
        ]
    for group in {a.group for a in problem.asks}:
        domains = {int(problem.domain[group, x.node]) for x in answer.landings if problem.asks[x.ask].group == group}
        if len(domains) > 1 or -1 in domains:
            faults.append(f"group {group} lands in domains {sorted(domains)}")
    for family in problem.families:
        numbers = {int(family.domain[x.node]) for x in answer.landings if problem.asks[x.ask].group in family.groups}
        if len(numbers) > 1 or -1 in numbers:
            faults.append(f"groups {family.groups} land in domains {sorted(numbers)}")
    return faults


def _budgets(problem: MoveProblem, answer: MoveAnswer) -> list[str]:
    faults = []
    for bound in problem.bounds:
        used = sum(bound.weights.get(m.task, 0) for m in answer.moves)
        broken = used > bound.limit if not bound.concurrent else used > 0 and bound.limit <= 0
        if broken and used:
            faults.append(f"budget {bound.name}: {used} of {bound.limit}")
    return faults


def _whole_cores(problem: MoveProblem, answer: MoveAnswer) -> list[str]:
    moved = {m.task for m in answer.moves}
    faults = []
    for unit in sorted({int(u) for u in problem.unit if u >= 0}):
        core = [t for t in range(problem.tasks) if problem.unit[t] == unit]
        gone = sum(t in moved for t in core)
        if 1 < gone < len(core):
            faults.append(f"of core {unit}, {gone} of {len(core)} tasks move")
    return faults


def _costs(problem: MoveProblem, answer: MoveAnswer) -> list[str]:
    certificate = answer.certificate
    cost = sum(int(problem.cost[m.task]) for m in answer.moves)
    faults = []
    if cost != certificate.cost:
        faults.append(f"the moves cost {cost} and not {certificate.cost}")
    if certificate.lower_bound > cost:
        faults.append(f"the lower bound {certificate.lower_bound} is above the cost {cost}")
    if certificate.method in {"exact", "cover"} and certificate.lower_bound != cost:
        faults.append(f"{certificate.method}, but the bound {certificate.lower_bound} is not the cost {cost}")
    if certificate.method == "cover":
        own = max(own_bound(problem, number) for number in range(len(problem.asks))) if problem.asks else 0
        if own < certificate.lower_bound:
            faults.append(f"the cover bound is {own} and not {certificate.lower_bound}")
    return faults


def _outcome(problem: MoveProblem, answer: MoveAnswer) -> list[str]:
    room = {n: [int(x) for x in problem.free[:, n]] for n in range(problem.size)}
    for move in answer.moves:
        _add(room[move.origin], problem.ask[problem.shape[move.task]], 1)
        _add(room[move.target], problem.ask[move.shape], -1)
    for place in answer.landings:
        _add(room[place.node], problem.ask[place.shape], -1)
    used = {m.target for m in answer.moves} | {x.node for x in answer.landings}
    return [f"node {n} is over its capacity in the end: {room[n]}" for n in sorted(used) if min(room[n]) < 0]


def _add(room: list[int], ask: Sequence[int], sign: int) -> None:
    for kind, amount in enumerate(ask):
        room[kind] += sign * int(amount)


def replay(problem: MoveProblem, answer: MoveAnswer, waves: Waves) -> list[str]:
    """Carry the waves out one by one: at no instant is a node over its capacity, and in the end all have landed.

    ``reserve-first``: the new place is held before the old one is left. ``evict-first``: everything of the wave that
    moves this way leaves before any of it lands. A task may take a hop: what counts is where it ends.
    """
    room = {n: [int(x) for x in problem.free[:, n]] for n in range(problem.size)}
    at = {m.task: (m.origin, int(problem.shape[m.task])) for m in answer.moves}
    faults = []
    for number, wave in enumerate(waves):
        for move, _ in wave:
            if at[move.task][0] != move.origin:
                faults.append(f"wave {number}: task {move.task} is not on node {move.origin}")
        faults += _down(problem, [m.task for m, _ in wave], number)
        gone = [m for m, mode in wave if mode == "evict-first"]
        held = [m for m, mode in wave if mode == "reserve-first"]
        for move in held:
            _add(room[move.target], problem.ask[move.shape], -1)
        faults += _over(room, number, "while places are reserved")
        for move in gone + held:
            _add(room[move.origin], problem.ask[at[move.task][1]], 1)
        for move in gone:
            _add(room[move.target], problem.ask[move.shape], -1)
        faults += _over(room, number, "once it has landed")
        for move, _ in wave:
            at[move.task] = (move.target, move.shape)
    faults += [f"task {m.task} ends on {at[m.task]}" for m in answer.moves if at[m.task] != (m.target, m.shape)]
    for place in answer.landings:
        _add(room[place.node], problem.ask[place.shape], -1)
    return faults + _over(room, len(waves), "once all tasks have landed")


def _over(room: dict[int, list[int]], wave: int, when: str) -> list[str]:
    return [f"wave {wave}: node {n} is over its capacity {when}" for n, free in sorted(room.items()) if min(free) < 0]


def _down(problem: MoveProblem, tasks: list[int], wave: int) -> list[str]:
    faults = []
    for bound in problem.bounds:
        down = sum(bound.weights.get(t, 0) for t in tasks)
        if bound.concurrent and down > max(bound.limit, 0):
            faults.append(f"wave {wave}: budget {bound.name} allows {bound.limit} down, and {down} are")
    return faults


def own_bound(problem: MoveProblem, number: int) -> int:
    """Work out the least that any plan for one ask costs, wherever what moves would land.

    On nodes with many tasks the bound is that of nothing, so it may lie below the planner's.
    """
    ask = problem.asks[number]
    prices = [_price_list(problem, number, node) for node in range(problem.size)]
    best = None
    for domain in {int(d) for d in problem.domain[ask.group] if d >= 0}:
        inside = [p for n, p in enumerate(prices) if problem.domain[ask.group, n] == domain]
        total = {0: 0}
        for price in inside:
            new = dict(total)
            for have, cost in total.items():
                for members, more in enumerate(price, start=1):
                    reached = min(have + members, ask.count)
                    new[reached] = min(new.get(reached, cost + more), cost + more)
            total = new
        if ask.count in total:
            best = total[ask.count] if best is None else min(best, total[ask.count])
    return best if best is not None else sum(int(c) for c in problem.cost) + 1


def _price_list(problem: MoveProblem, number: int, node: int) -> list[int]:
    """What one, two, … members on a node cost at least; it ends where no more fit."""
    ask = problem.asks[number]
    (shape, *others) = problem.shapes[ask.cls]
    if others:
        return [0] * ask.count
    if not problem.allowed[shape, node]:
        return []
    there = [t for t in range(problem.tasks) if problem.node[t] == node]
    found: list[int] = []
    for members in range(1, ask.count + 1):
        price = _price(problem, there, node, [members * int(a) for a in problem.ask[shape]])
        if price is None:
            break
        found.append(price)
    return found


def _price(problem: MoveProblem, there: list[int], node: int, wanted: list[int]) -> int | None:
    def fits(tasks: Sequence[int]) -> bool:
        room = [int(x) for x in problem.free[:, node]]
        for task in tasks:
            _add(room, problem.ask[problem.shape[task]], 1)
        return all(have >= need for have, need in zip(room, wanted, strict=True))

    if fits(()):
        return 0
    if not fits(there):
        return None
    if len(there) > SMALL:
        return 0
    sets = (s for size in range(1, len(there) + 1) for s in combinations(there, size) if fits(s))
    return min(sum(int(problem.cost[t]) for t in s) for s in sets)
