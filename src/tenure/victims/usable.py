"""Which pieces are of use to a search: they free something that is asked for, and the rules might let them go."""

from __future__ import annotations

from collections.abc import Callable

from tenure.engine.refusal import Refusal
from tenure.victims.pieces import Piece
from tenure.victims.room_bounds import RoomDemand
from tenure.victims.rules import CauseRules


class UsablePieces:
    """The pieces that are of use to one contender; ``refusals`` says of which workloads the rules let nothing go."""

    def __init__(
        self,
        need: RoomDemand,
        rules: CauseRules,
        allowed: Callable[[Piece], bool] | None,
        refusals: list[tuple[str, Refusal]],
    ) -> None:
        self.need = need
        self.rules = rules
        self.allowed = allowed
        self.refusals = refusals
        self._may: dict[tuple[int, tuple[bool, ...]], bool] = {}

    def wanted(self, piece: Piece) -> bool:
        """Whether it frees something that is asked for where a task could go."""
        return not self.need.exact or any(
            part.cls.static_list[node] and any(amounts[row] > 0 for row, _ in part.asks)
            for node, amounts in piece.frees
            for part in self.need.parts
        )

    def wanted_and_allowed(self, piece: Piece) -> bool:
        """Whether, on top of that, it can be part of a set at all."""
        return (self.allowed is None or self.allowed(piece)) and self.wanted(piece)

    def could_serve(self, piece: Piece) -> bool:
        """Whether, on top of that, the rules might allow it.

        A fuller check waits until it is its turn: what a queue may lose depends on what else is taken.
        """
        key = piece.workload.leaf, tuple(a > 0 for a in piece.amount)
        if key not in self._may:
            refusal = self.rules.may_take(piece.workload, piece.amount, core=True, owed=[])
            self._may[key] = refusal is None
            if refusal is not None:
                self.refusals.append((piece.workload.key, refusal))
        return self._may[key] and self.wanted_and_allowed(piece)
