"""Sets of which it is known, without a play-through, that a victim is served first and lands where it was.

That is what most sets in a standing backlog come to. Only queues are looked at: what the set holds is released, its
victims wait again in their leaves, and the order is followed past all workloads for which a queue, or the room that
there is with the set gone, leaves no place. Where a victim comes next, all that it ran on is free, and it has it again.
"""

from __future__ import annotations

from collections.abc import Sequence

from tenure.engine.allocation import held_back
from tenure.engine.nodes import THEN
from tenure.engine.order import QueueOrder, skip_none
from tenure.engine.session import Session
from tenure.engine.workloads import Demand, Shape, WorkloadState
from tenure.fairness.current import CurrentShares
from tenure.victims.pieces import Piece
from tenure.victims.room_bounds import RoomDemand

MOST_PASSED = 64
"""Workloads that are passed before the search for the first is given up."""


class FirstServed:
    """The question which workload is served first once a set is gone; shapes' needs are kept while room is the same."""

    def __init__(self, session: Session, shares: CurrentShares) -> None:
        self.session = session
        self.shares = shares
        self.epoch = -1
        self._needs: dict[Shape, RoomDemand] = {}
        self._whole: dict[Piece, bool] = {}

    def begin(self, epoch: int) -> None:
        """Forget what was known of room at another time; shares are those before anything is taken."""
        if epoch != self.epoch:
            self.epoch = epoch
            self._needs.clear()
            self._whole.clear()
            self.shares.allocatable  # noqa: B018  what is made when it is first asked for is made now

    def returning(
        self, contender: WorkloadState, pieces: Sequence[Piece], before: QueueOrder | None
    ) -> WorkloadState | None:
        """Give the victim that is served first; None if another workload may be, or that is not known.

        To be asked in a scenario in which queues are relieved of the set and nothing else is changed yet; ``before`` is
        the order of all that wait without it.
        """
        session = self.session
        for piece in pieces:
            if piece not in self._whole:
                self._whole[piece] = self._waits_whole(piece)
            if not self._whole[piece]:
                return None
        victims = dict.fromkeys(piece.workload for piece in pieces)
        for victim in victims:
            session.journal.set(victim, "step", session.steps.whole(victim))
            session.waiting.put(victim)
        again = None if before is None else before.again(skip_none, {contender.leaf, *(v.leaf for v in victims)})
        order = again if again is not None else QueueOrder(session, self.shares, skip_none)
        for _ in range(MOST_PASSED):
            head = order.next()
            if head is None or head is contender:
                return None
            step = head.step
            assert step is not None
            if not held_back(session, head, step):
                if head in victims:
                    return head
                if session.settings.backfill == "easy" or self._may_fit(step, pieces):
                    return None
            order.pass_over(head)
        return None

    def _waits_whole(self, piece: Piece) -> bool:
        """Whether a piece is a plain core and nothing else, which could wait again as it is for where it ran."""
        workload, nodes, root = piece.workload, self.session.nodes, piece.workload.root
        if not piece.whole or piece.fresh or root.children or root.topology is not None:
            return False
        if not len(piece.ran) == len(workload.tasks) == max(root.minimum, 1) or workload.step is not None:
            return False
        for task in piece.ran:
            cls, node = task.cls, task.node
            if task.terms is not None or not cls.spec.is_placeable or not cls.static_list[node]:
                return False
            if any(nodes.room[nodes.rows + row, node] < 0 for row, _ in cls.asks):
                return False
            if any(nodes.device[THEN, node, device] < 0 for device in task.devices):
                return False
        return True

    def _may_fit(self, step: Demand, pieces: Sequence[Piece]) -> bool:
        """Whether a step may have room with a set gone."""
        shape = step.shape
        if shape is None:
            return True
        need = self._needs.get(shape)
        if need is None:
            need = self._needs[shape] = RoomDemand(self.session, step)
        return need.met(pieces)
