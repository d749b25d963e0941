"""In which order moves are made, so that at no instant a node is over its capacity (spec: plans).

What can land on room that is free already goes first; what it leaves behind makes room for the next wave. *Evict-first*
never deadlocks: where moves wait for each other in a circle, they leave together and land together. *Reserve-first*
holds the new place before the old one is left, so a circle has to be broken: over spare room elsewhere, or by moving
the cheapest of it evict-first.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from tenure.rescheduler.problem.definition import Ints, MoveProblem, TaskMove

Mode = Literal["evict-first", "reserve-first"]


class MoveLeg(NamedTuple):
    """A move, or one of the two hops of one, and how it is made."""

    move: TaskMove
    mode: Mode


Wave = tuple[MoveLeg, ...]


class _Sequencer:
    """Room as it is after the waves so far, and the moves that are left: singly, or all of a core together."""

    def __init__(self, problem: MoveProblem, moves: Sequence[TaskMove], mode: Mode) -> None:
        self.problem = problem
        self.mode = mode
        self.room = problem.free.copy()
        together: dict[int, list[TaskMove]] = defaultdict(list)
        for move in moves:
            unit = int(problem.unit[move.task])
            together[unit if unit >= 0 else -2 - move.task].append(move)
        self.left = sorted(together.values(), key=lambda block: (self._price(block), block[0].task))
        self.held = {m.task: int(problem.shape[m.task]) for m in moves}
        self.waves: list[Wave] = []

    def _price(self, block: list[TaskMove]) -> int:
        return sum(int(self.problem.cost[m.task]) for m in block)

    def run(self) -> list[Wave]:
        """Make wave after wave until nothing is left."""
        while self.left:
            if self._direct() or (self.mode == "reserve-first" and self._over_spare()):
                continue
            self._together()
        return self.waves

    def _direct(self) -> bool:
        """Make a wave of everything that lands on room that is free before the wave, as many as may be down at once."""
        room = self.room.copy()
        chosen: list[list[TaskMove]] = []
        down: dict[int, int] = {}
        for block in self.left:
            trial = room.copy()
            self._land(trial, block)
            if self._nothing_over(trial, block) and self._may_go_down(block, down):
                room = trial
                chosen.append(block)
        if not chosen:
            return False
        self._emit([MoveLeg(m, self.mode) for block in chosen for m in block])
        self.left = [block for block in self.left if block not in chosen]
        return True

    def _over_spare(self) -> bool:
        """Take the cheapest single move to a node with room, from where it goes on in a later wave."""
        problem = self.problem
        for number, block in enumerate(self.left):
            if len(block) > 1:
                continue
            (move,) = block
            for shape in problem.shapes[problem.cls[move.task]]:
                fits = problem.allowed[shape] & (self.room >= problem.ask[shape][:, None]).all(axis=0)
                fits[[move.origin, move.target]] = False
                if fits.any() and self._may_go_down(block, {}):
                    spare = int(np.flatnonzero(fits)[0])
                    hop = TaskMove(move.task, move.origin, spare, shape)
                    self._emit([MoveLeg(hop, "reserve-first")])
                    self.left[number] = [TaskMove(move.task, spare, move.target, move.shape)]
                    return True
        return False

    def _together(self) -> None:
        """Evict the cheapest, and with it whatever its landing place waits for, until all of them can land."""
        chosen: list[list[TaskMove]] = []
        waiting = list(self.left)
        room = self.room.copy()
        while waiting:
            over = self._over(room)
            block = next((b for b in waiting if any(m.origin in over for m in b)), waiting[0])
            waiting.remove(block)
            chosen.append(block)
            for move in block:
                room[:, move.origin] += self.problem.ask[self.held[move.task]]
            self._land(room, block)
            if not self._over(room):
                break
        self._emit([MoveLeg(m, "evict-first") for block in chosen for m in block])
        self.left = waiting

    def _emit(self, legs: list[MoveLeg]) -> None:
        for move, _ in legs:
            self.room[:, move.origin] += self.problem.ask[self.held[move.task]]
            self.room[:, move.target] -= self.problem.ask[move.shape]
            self.held[move.task] = move.shape
        self.waves.append(tuple(sorted(legs, key=lambda leg: leg.move.task)))

    def _land(self, room: Ints, block: list[TaskMove]) -> None:
        for move in block:
            room[:, move.target] -= self.problem.ask[move.shape]

    def _over(self, room: Ints) -> set[int]:
        return set(np.flatnonzero((room < 0).any(axis=0)).tolist())

    def _nothing_over(self, room: Ints, block: list[TaskMove]) -> bool:
        return all((room[:, m.target] >= 0).all() for m in block)

    def _may_go_down(self, block: list[TaskMove], down: dict[int, int]) -> bool:
        """Whether so many may be down at one time, and if so note that they are."""
        more = dict(down)
        for number, bound in enumerate(self.problem.bounds):
            if bound.concurrent:
                more[number] = more.get(number, 0) + sum(bound.weights.get(m.task, 0) for m in block)
                if more[number] > max(0, bound.limit):
                    return False
        down.update(more)
        return True


def sequence(problem: MoveProblem, moves: Sequence[TaskMove], mode: Mode) -> list[Wave] | None:
    """Give the waves of a plan; None if no order keeps what is down at one time within its bounds."""
    waves = _Sequencer(problem, moves, mode).run()
    for wave in waves:
        for bound in problem.bounds:
            down = sum(bound.weights.get(leg.move.task, 0) for leg in wave)
            if bound.concurrent and down > max(0, bound.limit):
                return None
    return waves
