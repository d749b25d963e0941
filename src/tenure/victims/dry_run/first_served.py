"""Sets of which it is known, without a play-through, that the first that is served leaves the contender no place.

That is what most sets in a standing backlog come to. Queues and counts of room are looked at: the set is released, its
victims wait again, and the order is followed past all for which a queue, or the room that there is then, leaves no
place. A victim that ran and comes next has its place again. Any other takes so much that too little is left.
"""

from __future__ import annotations

from collections.abc import Sequence

from tenure.engine.memo import Memo
from tenure.engine.room.nodes import THEN
from tenure.engine.serving.allocation import held_back
from tenure.engine.serving.order import QueueOrder, skip_none
from tenure.engine.state.session import Session
from tenure.engine.state.workloads import Demand, WorkloadState
from tenure.fairness.current import CurrentShares
from tenure.victims.bounds.room_demand import RoomDemand, RoomDemands
from tenure.victims.rules.pieces import Piece

MOST_PASSED = 64
"""Workloads that are passed before the search for the first is given up."""


class FirstServed:
    """The question which workload is served first once a set is gone."""

    def __init__(self, session: Session, shares: CurrentShares) -> None:
        self.session = session
        self.shares = shares
        self.epoch = -1
        self._needs = RoomDemands(session, lambda: self.epoch)
        self._whole = Memo[Piece, bool](self._waits_whole, lambda _: self.epoch)

    def begin(self, epoch: int) -> None:
        """Note the epoch of room before anything is taken; shares are those of that time."""
        if epoch != self.epoch:
            self.epoch = epoch
            self.shares.allocatable  # noqa: B018  what is made when it is first asked for is made now

    def instead(
        self, contender: WorkloadState, pieces: Sequence[Piece], before: QueueOrder | None
    ) -> WorkloadState | None:
        """Give who is served first and leaves the contender no place; None if that is not known.

        To be asked in a scenario in which queues are relieved of the set and nothing else is changed yet; ``before`` is
        the order of all that wait without it.
        """
        session, easy = self.session, self.session.settings.backfill == "easy"
        if not all(map(self._whole, pieces)):
            return None
        victims = {piece.workload: piece.fresh for piece in pieces}
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
                if not victims.get(head, True):
                    return head
                need = self._need(step)
                fits = need is None or need.met(pieces)
                if fits or easy:
                    return head if fits and self._leaves_none(need, contender.step, pieces) else None
            order.pass_over(head)
        return None

    def _waits_whole(self, piece: Piece) -> bool:
        """Whether a piece is a plain core and nothing else, which could wait again as it is for where it ran."""
        workload, nodes, root = piece.workload, self.session.nodes, piece.workload.root
        if not piece.whole or root.children or root.topology is not None or workload.step is not None:
            return False
        if not len(piece.tasks if piece.fresh else piece.ran) == len(workload.tasks) == max(root.minimum, 1):
            return False
        for task in piece.ran:
            cls, node = task.cls, task.node
            if task.terms is not None or not cls.placeable or not cls.static_list[node]:
                return False
            if any(nodes.room[nodes.rows + row, node] < 0 for row, _ in cls.asks):
                return False
            if any(nodes.device[THEN, node, device] < 0 for device in task.devices):
                return False
        return True

    def _need(self, step: Demand) -> RoomDemand | None:
        """Give the room that a step needs; None where it is not known of others of its shape."""
        return None if step.shape is None else self._needs.of(step)

    def _leaves_none(self, first: RoomDemand | None, step: Demand | None, pieces: Sequence[Piece]) -> bool:
        """Whether what fits by a bound surely fits, and the contender's step then no more."""
        need = None if step is None else self._need(step)
        if first is None or need is None or not first.exact or need.met(pieces, need.lost_to(first)):
            return False
        return all(task.cls.milli is None for piece in pieces for task in piece.tasks)
