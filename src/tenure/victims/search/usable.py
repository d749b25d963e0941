"""Which pieces are of use to a search: they make room on nodes or under a maximum, and the rules might let them go."""

from __future__ import annotations

from functools import cache

from tenure.engine.refusal import Refusal
from tenure.victims.bounds.room_demand import RoomDemand
from tenure.victims.rules.causes import CauseRules
from tenure.victims.rules.pieces import Piece
from tenure.victims.search.search_scope import SearchScope


class UsablePieces:
    """The pieces that are of use to one contender; ``refusals`` says of which workloads the rules let nothing go.

    Where that need not be ``told``, those are not asked about that hold nothing of what is asked for.
    """

    def __init__(self, rules: CauseRules, need: RoomDemand, scope: SearchScope) -> None:
        self.need = need
        self.rules = rules
        self.scope = scope
        self.told = True
        self._holds_none = cache(rules.holds_none)
        self.refusals: list[tuple[str, Refusal]] = []
        self.path = rules.session.queues.path
        self.reached = _reached(rules)
        self._may: dict[tuple[int, tuple[int, ...]], bool] = {}

    def wanted(self, piece: Piece) -> bool:
        """Whether it frees something that is asked for where a task could go, or of a maximum that is reached."""
        if not self.need.exact or (self.reached and self._relieves(piece)):
            return True
        return any(
            part.static_list[node] and any(amounts[row] > 0 for row, _ in part.asks)
            for node, amounts in piece.frees
            for part in self.need.parts
        )

    def _relieves(self, piece: Piece) -> bool:
        return any(piece.amount[row] > 0 and queue in self.path[piece.workload.leaf] for queue, row in self.reached)

    def wanted_and_allowed(self, piece: Piece) -> bool:
        """Whether, on top of that, it can be part of a set at all."""
        return self.scope.allows(piece) and self.wanted(piece)

    def could_serve(self, piece: Piece) -> bool:
        """Whether, on top of that, the rules might allow it.

        A fuller check waits until it is its turn: what a queue may lose depends on what else is taken.
        """
        key = piece.workload.leaf, piece.rows
        if key not in self._may:
            refusal = self.rules.may_take(piece.workload, piece.amount, core=True, owed=[])
            self._may[key] = refusal is None
            if refusal is not None:
                self.refusals.append((piece.workload.key, refusal))
        return self._may[key] and self.wanted_and_allowed(piece)

    def refused(self, leaf: int, rows: tuple[int, ...]) -> bool:
        """Whether it is known that the rules let nothing of a leaf go that holds these resources, by row."""
        return self._may.get((leaf, rows)) is False or (not self.told and self._holds_none(rows))


def _reached(rules: CauseRules) -> list[tuple[int, int]]:
    """Give queue and row of each maximum that keeps a contender's step out."""
    queues, contender = rules.session.queues, rules.contender
    if contender.step is None or not queues.limited[contender.leaf]:
        return []
    asked = list(enumerate(contender.step.amount))
    held, most = queues.allocated, queues.maximum
    return [(q, r) for q in queues.path[contender.leaf] for r, more in asked if more and held[q][r] + more > most[q][r]]
