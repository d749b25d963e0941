"""The best set of any number of pieces: an exact program, solved once for each thing that sets are compared by.

The stages are solved in the order of the spec (quota preemption, firing); what a stage has reached is a bound in all
later ones. A stage whose value cannot be less than what is known already is not solved. Every answer is rounded, held
against the rules in whole numbers, and compared by the exact key, so that no set is ever worse than the one that the
search began with.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations, islice

from tenure.quota.follow_up_cuts import FollowUpCut, respects
from tenure.quota.problem import QuotaProblem, QuotaSelection
from tenure.quota.selection_program import SelectionProgram, SelectionStage, Solve, alike
from tenure.victims.rules.pieces import Piece

_MOST_EXCHANGES = 2_000
"""Pairs of workloads that are alike which are looked at in the end."""


class ExactSelection:
    """The search for the best set; ``proved`` says whether it is known to be the best."""

    def __init__(
        self, problem: QuotaProblem, pieces: Sequence[Piece], known: Sequence[Piece], solve: Solve,
        cuts: Sequence[FollowUpCut] = (),
    ) -> None:  # fmt: skip
        self.problem = problem
        self.solve = solve
        self.cuts = cuts
        self.best = list(known) if respects(known, cuts) else []
        self.value = problem.key(self.best)
        self.proved = False
        self.program = SelectionProgram(problem, pieces, cuts)

    def run(self) -> list[Piece]:
        """Solve stage by stage, and give the best set."""
        for stage in self.program.stages(lambda: self.best):
            if not self._settle(stage):
                return self.best
        self._exchange()
        self._exchange_workloads()
        self.proved = True
        return self.best

    def _settle(self, stage: SelectionStage) -> bool:
        """Make one thing least, and keep it so; False if the solver did not come to an end."""
        if stage.worth(self.best) > stage.floor:
            values = self.solve(self.program.least(stage, self.best))
            if values is None or not self._take_over(values):
                return False
        self.program.keep(stage, self.best)
        return True

    def _take_over(self, values: Sequence[float]) -> bool:
        """Read a solution; False if the rules forbid it after all, or it is worse than what is known."""
        chosen = list(self.program.read(values))
        selection = QuotaSelection(self.problem)
        if not all(selection.try_add(piece) for piece in chosen) or not respects(chosen, self.cuts):
            return False
        self._prefer(chosen)
        return True

    def _exchange(self) -> None:
        """Of what could stand for each other, prefer what is younger: the last word of the order."""
        same: dict[object, list[Piece]] = {}
        for piece in self.program.columns:
            if not piece.compound:
                same.setdefault((alike(self.problem, piece, self.cuts), piece.cost), []).append(piece)
        chosen = set(self.best)
        for pieces in same.values():
            own = [p for p in pieces if p in chosen]
            free = [p for p in pieces if not any(c.compound and c.workload is p.workload for c in chosen)]
            chosen.difference_update(own)
            chosen.update(sorted(free, key=lambda p: p.youth)[: len(own)])
        self._prefer(chosen)

    def _exchange_workloads(self) -> None:
        """Of elastic workloads that are alike, let that give way as another does which is younger then: the last word.

        Only what goes as a whole with its surplus is exchanged here, piece by piece the rest is already.
        """
        own: dict[str, list[Piece]] = {}
        for piece in self.program.columns:
            own.setdefault(piece.workload.key, []).append(piece)
        same: dict[object, list[list[Piece]]] = {}
        for pieces in own.values():
            if any(piece.compound for piece in pieces):
                form = (*((alike(self.problem, p, self.cuts), p.cost) for p in pieces),)
                same.setdefault(form, []).append(pieces)
        pairs = (pair for group in same.values() for pair in combinations(group, 2))
        for one, other in islice(pairs, _MOST_EXCHANGES):
            swapped = dict(zip((*one, *other), (*other, *one), strict=True))
            self._prefer({swapped.get(piece, piece) for piece in self.best})

    def _prefer(self, chosen: Iterable[Piece]) -> None:
        """Take another set if it is the better one."""
        found = sorted(chosen, key=lambda p: p.rank)
        if self.problem.key(found) < self.value and respects(found, self.cuts):
            self.best, self.value = found, self.problem.key(found)
