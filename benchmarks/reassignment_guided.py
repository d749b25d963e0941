"""Search that draws its parts where the linear relaxation of the whole would exchange load.

Each round solves the relaxation once: from the layout there is now, what would have to move between which nodes so
that nobody paid for load? Tasks pay there for leaving their nodes, by their size, so that it says little more than it
has to. Then every dear node makes a part with those nodes with which the relaxation exchanges most.

What has moved holds room at its origin, and what is held is lacking later. So moves pay for what they hold, less and
less as the search goes on. Rounds and parts are counted, so the same run gives the same layout.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from reassignment import Floats, Ints, Layout, Reassignment
from reassignment_check import cost_of
from reassignment_parts import Part
from reassignment_search import GAP, HALF, Reassigned, Search, descend
from tenure.rescheduler.milp.solver import Solver

LARGE = 1.1e-3
"""Tasks that take this share of all that is taken of a resource are in the relaxation."""
HOLD = 0.15
"""What holding a unit costs at first, in shares of what a unit above the limit does."""
UNTIL = 0.6
"""Share of the parts after which holding costs nothing any more."""
LEAVE = 0.1
"""What leaving a node costs in the relaxation for each unit that a task takes, in the same shares."""
HOT = 20
"""Parts of one round."""
STALE = 0.2
"""Where a smaller share of a round's parts gains anything worth mentioning, larger ones are drawn."""
WORTH = 1e-4
"""Share of the cost that a gain has to be to be worth mentioning."""
NOTHING = 1.0
"""Less than this is not exchanged."""


@dataclass(slots=True)
class State:
    """Where the search stands: ``away`` is what being away costs each task besides, ``total`` all costs together."""

    place: Ints
    cost: int
    away: Floats
    total: float
    parts: int = 0


class Guided(Search):
    """One search; what `Search` says of ``parts``, ``most`` and ``seed`` holds."""

    def __init__(self, problem: Reassignment, solver: Solver, parts: int, most: int, seed: int = 0) -> None:
        super().__init__(problem, solver, parts, most, seed)
        self.tasks = self._relaxed_tasks()

    def run(self) -> Reassigned:
        """Search."""
        problem = self.problem
        place = descend(problem, self._away(0))
        state = State(place, cost_of(problem, place), np.zeros(problem.tasks), 0.0)
        size = min(3, self.most)
        while state.parts < self.parts:
            self._priced(state)
            begin, gains = state.parts, 0
            for nodes in self.drawn(state.place, size, state.away):
                gains += self._improved(state, nodes)
                if state.parts == self.parts:
                    break
            if gains < STALE * (state.parts - begin):
                size = min(size + 1, self.most)
        return Reassigned(state.place, state.cost, cost_of(problem, problem.origin), self.seconds)

    def _away(self, parts: int) -> Floats:
        """What being away from its origin costs each task besides, after so many parts: ``float64[tasks]``."""
        problem = self.problem
        left = max(0.0, 1.0 - parts / (UNTIL * self.parts))
        return np.asarray((problem.takes * problem.transient) @ problem.over * (HOLD * left), np.float64)

    def _priced(self, state: State) -> None:
        state.away = self._away(state.parts)
        state.total = self._total(state, state.place, state.cost)

    def _total(self, state: State, place: Ints, cost: int) -> float:
        return cost + float(state.away[place != self.problem.origin].sum())

    def _relaxed_tasks(self) -> Ints:
        """Large tasks, and those that have to be where others are: these hold large ones back."""
        problem = self.problem
        large = (problem.takes > LARGE * np.maximum(1, problem.takes.sum(axis=0))).any(axis=1)
        bound = np.zeros(len(problem.needs), bool)
        bound[problem.pairs[~problem.everywhere[problem.pairs[:, 1]], 0]] = True
        return np.flatnonzero(large | bound[problem.group])

    def _exchanged(self, place: Ints, away: Floats | None) -> Floats:
        """How much the relaxation moves between each two nodes, in either direction: ``float64[nodes, nodes]``."""
        problem, tasks = self.problem, self.tasks
        part = Part(problem, place, tasks, np.ones((len(tasks), problem.nodes), bool))
        takes = problem.takes.astype(np.float64)
        leave = takes @ problem.over * LEAVE + problem.cost.mean() * LEAVE
        values = self.values(replace(part.program(away=away, leave=leave), relaxed=True))
        found = np.zeros((problem.nodes, problem.nodes))
        if values is not None:
            np.add.at(found, place[tasks], part.shares(values) * takes[tasks].sum(axis=1)[:, None])
        np.fill_diagonal(found, 0.0)
        return np.asarray(found + found.T)

    def _excess(self, place: Ints) -> Floats:
        """What each node pays beyond the balances that all layouts pay together: ``float64[nodes]``."""
        layout = Layout(self.problem, place)
        kinds = self.problem.capacity.shape[1]
        return np.asarray(layout.pays - layout.forms[:, kinds:] @ layout.weights[kinds:])

    def drawn(self, place: Ints, size: int, away: Floats | None = None) -> list[Ints]:
        """Give parts of a round: the dearest nodes, each with those with which it, or what is there, exchanges most."""
        exchanged = self._exchanged(place, away)
        dear = self._excess(place)
        found: dict[tuple[int, ...], None] = {}
        for node in np.argsort(-dear, kind="stable")[:HOT].tolist():
            chosen = [node]
            while len(chosen) < size:
                flow = exchanged[chosen].sum(axis=0) + HALF * exchanged[node]
                flow[chosen] = 0.0
                chosen.append(int(flow.argmax()) if flow.max() > NOTHING else self._any(dear, chosen))
            found[tuple(sorted(chosen))] = None
        return [np.array(nodes, np.int64) for nodes in found]

    def _any(self, dear: Floats, chosen: list[int]) -> int:
        """Draw another node, half of the time by what it costs."""
        weight = dear + 0.1 * dear.mean() + 1.0 if self.rng.random() < HALF else np.ones(len(dear))
        weight[chosen] = 0.0
        return int(self.rng.choice(len(dear), p=weight / weight.sum()))

    def _improved(self, state: State, nodes: Ints) -> bool:
        """Solve a part and keep what it gains; whether that is worth mentioning."""
        part = Part.among(self.problem, state.place, nodes)
        state.parts += 1
        if not part.tasks.size:
            return False
        share = len(nodes) / self.problem.nodes
        found = self.solved(part, part.program(away=state.away, gap=GAP * state.cost * share))
        cost = cost_of(self.problem, found)
        total = self._total(state, found, cost)
        gain = state.total - total
        if gain > HALF:
            state.place, state.cost, state.total = found, cost, total
        return gain > WORTH * state.cost
