"""Plays sets through, unless it is known beforehand that the candidates would have their places back."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tenure.engine.refusal import Refusal
from tenure.engine.workloads import TaskState, WorkloadState
from tenure.requeue.known_returns import KnownReturns
from tenure.victims.dry_run import NO_ROOM, AcceptedSet, DryRuns, in_stages
from tenure.victims.pieces import Piece
from tenure.victims.rules import CauseRules


class RequeueDryRuns(DryRuns):
    """The dry runs of requeue; ``returns`` is what is known as long as nothing is committed, None where nothing is."""

    returns: KnownReturns | None = None

    def _play(
        self,
        contender: WorkloadState,
        pieces: Sequence[Piece],
        rules: CauseRules,
        staying: Collection[TaskState] = frozenset(),
    ) -> AcceptedSet | Refusal:
        if not pieces or self.returns is None or staying or not self.returns.certain(contender, pieces):
            return super()._play(contender, pieces, rules, staying)
        assert contender.step is not None
        victims = list(dict.fromkeys(p.workload for p in pieces))
        refusal = self._ask(in_stages(self.session, pieces, contender.step.amount), victims, rules, [])
        return refusal or Refusal(NO_ROOM, "with these victims gone the room would go back to them")
