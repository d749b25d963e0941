"""A search for moves that improve the layout: single tasks, and whole nodes that become empty (spec 7, triggers).

It moves on the session itself, with the scheduler's own fit rules, inside a checkpoint that is undone in the end. Every
move that it keeps pays for itself, more than ``least`` for each unit of disruption, and no task moves twice; it goes on
until nothing more pays, so that a second search on what it leaves finds nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tenure.engine.state.evictions import evict
from tenure.engine.state.workloads import TaskState
from tenure.rescheduler.heuristic.emptied_nodes import EmptiedNodes
from tenure.rescheduler.heuristic.layout_moves import ImprovingMove, LayoutMoves
from tenure.rescheduler.heuristic.single_moves import SingleMoves
from tenure.rescheduler.problem.layout import LayoutWorth, Mask
from tenure.rescheduler.problem.waiting import fitting
from tenure.victims.recording.state import EvictionState


class LocalSearchResult(NamedTuple):
    """The moves that a local search found, their gain in weighted resources, their cost, and whether it was cut off."""

    moves: tuple[ImprovingMove, ...]
    gain: float
    cost: int
    cut_off: bool


class LocalSearch:
    """A local search for moves that improve a layout. ``targets``: ``bool[nodes]``, where anything may land at all."""

    def __init__(
        self, state: EvictionState, tasks: Sequence[TaskState], worth: LayoutWorth, targets: Mask, least: float
    ) -> None:
        self.moves = LayoutMoves(state, tasks, worth, targets, least)

    def run(self) -> LocalSearchResult:
        """Search, and leave the session as it was."""
        moves, singles, nodes = self.moves, SingleMoves(self.moves), EmptiedNodes(self.moves)
        with moves.session.scenario():
            fits = fitting(moves.state)
            before = moves.total()
            while singles.make() | nodes.make():
                pass
            gain = moves.total() - before + moves.liked()
            blocks = [w for w in fits if w not in fitting(moves.state, fits)]
        total = sum(moves.cost[m.task] for m in moves.made)
        if blocks or not moves.pays(gain, total):
            return LocalSearchResult((), 0.0, 0, moves.steps <= 0)
        return LocalSearchResult(tuple(moves.made), gain, total, moves.steps <= 0)

    def trial(self, found: Sequence[ImprovingMove]) -> LocalSearchResult | None:
        """Try moves that were found elsewhere, all together; None if they do not hold here."""
        moves = self.moves
        with moves.session.scenario():
            fits = fitting(moves.state)
            before = moves.total()
            holds = self._all_together(found)
            gain = moves.total() - before + moves.liked()
            holds = holds and len(fitting(moves.state, fits)) == len(fits)
        total = sum(moves.cost[m.task] for m in found)
        return (
            LocalSearchResult(tuple(found), gain, total, cut_off=False) if holds and moves.pays(gain, total) else None
        )

    def _all_together(self, found: Sequence[ImprovingMove]) -> bool:
        moves = self.moves
        if not moves.within([m.task for m in found]):
            return False
        for task, _ in found:
            evict(moves.session, task)
        for task, target in found:
            if moves.utilization is not None and not moves.utilization.spares(task)[target]:
                return False
            if not moves.state.placer.fits_later(task, target):
                return False
            moves.put(task, target)
            moves.keep(task, target)
        return True
