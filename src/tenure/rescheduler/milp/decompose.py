"""Plans for clusters whose program is too large: parts of them, drawn at random, are solved one after the other.

Without a plan, members are dealt out to parts. With one, parts are closed under its moves: what goes on elsewhere stays
as it is, and a part is solved below what it costs now. All draws come from one seed and rounds are counted, so that
the same problem gives the same plan. The bound is that of the whole problem.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tenure.rescheduler.heuristic.beam import Found
from tenure.rescheduler.heuristic.greedy import greedy
from tenure.rescheduler.milp.cover_bounds import NEVER, CoverBounds, bounds_of
from tenure.rescheduler.milp.decode import decode
from tenure.rescheduler.milp.program import assemble
from tenure.rescheduler.milp.solver import Solver
from tenure.rescheduler.problem.definition import Ints, MemberLanding, MoveBound, MoveProblem, PendingMembers, TaskMove

PART = 120
"""Nodes in one part."""
ROUNDS = 24
"""How many parts of a plan are solved anew."""
NODES = 200
"""How far the search tree of one part may grow."""


@dataclass(frozen=True, slots=True)
class ProblemPart:
    """Some nodes of a problem as a problem: numbers of its nodes, tasks and asks in the whole one."""

    problem: MoveProblem
    nodes: Ints
    tasks: Ints
    asks: tuple[int, ...]

    def whole(self, found: Found) -> Found:
        """Give a plan for the part in the numbers of the whole problem."""
        cost, moves, landings = found
        nodes, tasks = self.nodes.tolist(), self.tasks.tolist()
        return (
            cost,
            tuple(TaskMove(tasks[m.task], nodes[m.origin], nodes[m.target], m.shape) for m in moves),
            tuple(MemberLanding(self.asks[x.ask], nodes[x.node], x.shape) for x in landings),
        )


def part_of(problem: MoveProblem, nodes: Ints, counts: Sequence[int], used: Sequence[int], domain: Ints) -> ProblemPart:
    """Cut a part out of a problem.

    Parameters
    ----------
    problem
        The whole problem.
    nodes
        Numbers of the part's nodes, ascending.
    counts
        For each ask, how many members land in the part.
    used
        For each budget, what moves elsewhere use up.
    domain
        ``int64[groups, nodes of the whole]``, with the choice of domains made.
    """
    inside = np.zeros(problem.size, bool)
    inside[nodes] = True
    mine = inside[problem.node]
    split = np.unique(problem.unit[~mine])
    mine &= (problem.unit < 0) | ~np.isin(problem.unit, split)  # cores that reach beyond it stay
    tasks = np.flatnonzero(mine)
    place = np.cumsum(inside) - 1
    number = {int(t): n for n, t in enumerate(tasks)}
    bounds = tuple(
        MoveBound(name=b.name, weights={number[t]: w for t, w in b.weights.items() if t in number},
              limit=b.limit - (0 if b.concurrent else u), concurrent=b.concurrent, message=b.message)
        for b, u in zip(problem.bounds, used, strict=True)
    )  # fmt: skip
    asks = tuple(n for n, count in enumerate(counts) if count)
    part = replace(
        problem, free=problem.free[:, nodes], allowed=problem.allowed[:, nodes], cls=problem.cls[tasks],
        shape=problem.shape[tasks], node=place[problem.node[tasks]], cost=problem.cost[tasks],
        unit=problem.unit[tasks], asks=tuple(replace(problem.asks[n], count=counts[n]) for n in asks),
        domain=domain[:, nodes], families=(), bounds=bounds, nodes=(), real=None,
    )  # fmt: skip
    return ProblemPart(part, nodes, tasks, asks)


class Decomposition:
    """The search by parts on one problem."""

    def __init__(self, problem: MoveProblem, covers: Sequence[CoverBounds], solver: Solver, time_limit: float) -> None:
        self.problem = problem
        self.covers = covers
        self.solver = solver
        self.rng = np.random.default_rng(problem.tasks)
        self.deadline = time.monotonic() + time_limit
        self.failure = ""

    def run(self, found: Found | None) -> Found | None:
        """Improve a plan, or find one."""
        found = found or self._dealt_out()
        bound = max(int(c.total[-1]) for c in self.covers)
        for _ in range(ROUNDS):
            if found is None or found[0] <= bound or self.failure:
                break
            found = self._better(found)
        return found

    def _solved(self, part: ProblemPart, cutoff: int | None) -> Found | None:
        """Solve one part below a cut-off: by the greedy plan where that is the best there is, else exactly."""
        left = self.deadline - time.monotonic()
        if left <= 0:
            self.failure = "the time limit struck"
            return None
        covers = bounds_of(part.problem)
        bound = max((int(c.total[-1]) for c in covers), default=0)
        if bound >= (NEVER if cutoff is None else cutoff):
            return None
        quick = greedy(part.problem, covers)
        if quick is not None and (cutoff is None or quick[0] < cutoff):
            cutoff = quick[0]
        else:
            quick = None
        if cutoff is not None and bound >= cutoff:
            return None if quick is None else part.whole(quick)
        program = assemble(part.problem, covers, cutoff)
        solution = self.solver.solve(program, node_limit=NODES, time_limit=left)
        self.failure = solution.failure
        if solution.values is None:
            return None if quick is None else part.whole(quick)
        moves, landings = decode(part.problem, program, solution.values)
        cost = sum(int(part.problem.cost[m.task]) for m in moves)
        return part.whole((cost, tuple(moves), tuple(landings)))

    # -- from no plan to one --------------------------------------------------------------------------------------

    def _dealt_out(self) -> Found | None:
        """Deal members out to parts: as many to each as it finds room for, in turn, until all have a place."""
        problem = self.problem
        if any(len(np.unique(numbers[numbers >= 0])) > 1 for _, numbers in problem.together()):
            return None
        parts = np.array_split(self.rng.permutation(problem.size), max(1, -(-problem.size // PART)))
        left = [ask.count for ask in problem.asks]
        used = [0] * len(problem.bounds)
        cost, moves, landings = 0, (), ()  # type: tuple[int, tuple[TaskMove, ...], tuple[MemberLanding, ...]]
        for number, chosen in enumerate(parts):
            counts = [-(-have // (len(parts) - number)) for have in left]
            while any(counts):
                part = part_of(problem, np.sort(chosen), counts, used, problem.domain)
                found = self._solved(part, None)
                if self.failure:
                    return None
                if found is not None:
                    cost, moves, landings = cost + found[0], moves + found[1], landings + found[2]
                    left = [have - count for have, count in zip(left, counts, strict=True)]
                    used = _used(problem, moves)
                    break
                counts = [count // 2 for count in counts]
        return None if any(left) else (cost, tuple(sorted(moves, key=lambda m: m.task)), landings)

    # -- from a plan to a better one ------------------------------------------------------------------------------

    def _better(self, found: Found) -> Found:
        """Solve a part that is closed under the moves of the plan anew."""
        problem = self.problem
        cost, moves, landings = found
        label = _components(problem, moves)
        chosen: set[int] = set()
        for node in self.rng.permutation([x.node for x in landings]).tolist():
            members = np.flatnonzero(label == label[node]).tolist()
            if len(chosen) + len(members) <= PART // 2 or not chosen:
                chosen.update(members)
        for node in self.rng.permutation(problem.size).tolist():
            if len(chosen) >= PART:
                break
            if (label == label[node]).sum() == 1:
                chosen.add(node)
        nodes = np.array(sorted(chosen), np.int64)
        inside = np.isin(np.arange(problem.size), nodes)
        kept = tuple(m for m in moves if not inside[m.origin])
        here = cost - sum(int(problem.cost[m.task]) for m in kept)
        if not here:
            return found
        counts = [sum(x.ask == n and bool(inside[x.node]) for x in landings) for n in range(len(problem.asks))]
        part = part_of(problem, nodes, counts, _used(problem, kept), _fixed(problem, landings))
        better = self._solved(part, here)
        if better is None or better[0] >= here:
            return found
        outside = tuple(x for x in landings if not inside[x.node])
        moves = tuple(sorted((*kept, *better[1]), key=lambda m: m.task))
        return cost - here + better[0], moves, (*outside, *better[2])


def _components(problem: MoveProblem, moves: Sequence[TaskMove]) -> Ints:
    """Give nodes that moves connect, or cores that go together, one label."""
    label = np.arange(problem.size)
    anchor: dict[int, int] = {}
    for move in moves:
        ends = [move.origin, move.target]
        unit = int(problem.unit[move.task])
        if unit >= 0:
            ends.append(anchor.setdefault(unit, move.origin))
        for end in ends[1:]:
            label[label == label[end]] = label[ends[0]]
    return label


def _used(problem: MoveProblem, moves: Sequence[TaskMove]) -> list[int]:
    return [sum(b.weights.get(m.task, 0) for m in moves) for b in problem.bounds]


def _fixed(problem: MoveProblem, landings: Sequence[MemberLanding]) -> Ints:
    """Domains, with every group kept to the one where it is."""
    domain = problem.domain.copy()
    for landing in landings:
        group = _ask(problem, landing).group
        for groups, numbers in problem.together():
            if group in groups:
                domain[group, numbers != numbers[landing.node]] = -1
    return domain


def _ask(problem: MoveProblem, landing: MemberLanding) -> PendingMembers:
    return problem.asks[landing.ask]
