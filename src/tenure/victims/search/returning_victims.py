"""Victims that would take their places back, learnt from one that did.

Where a victim ranks before the contender though it is the only one from its side, or the only one that has not
returned, it is served first and has its place again. A victim with the same leaf and size and an earlier queue time
would also be placed first: its queue would rank the same.
"""

from __future__ import annotations

from collections.abc import Sequence

from tenure.engine.state.queues import Amount
from tenure.engine.state.session import Session
from tenure.engine.state.workloads import WorkloadState
from tenure.victims.rules.pieces import Piece

Place = tuple[int, int, str]
"""Where a workload would stand in its leaf: priority, time, name."""


class ReturningVictims:
    """The whole workloads known to win their place back from one contender."""

    def __init__(self, session: Session, contender: WorkloadState) -> None:
        self.queues = session.queues
        self.leaf = contender.leaf
        self._last: dict[tuple[int, int, Amount], Place] = {}

    def __call__(self, piece: Piece) -> bool:
        """Whether a piece would return."""
        last = self._last.get(self._kind(piece)) if piece.whole else None
        return last is not None and _place(piece.workload) <= last

    def learn(self, pieces: Sequence[Piece], back: Sequence[WorkloadState]) -> None:
        """Hear who of a set returned, one after the other."""
        path = self.queues.path
        gone = {p.workload: p for p in pieces}
        for workload in back:
            piece, leaf = gone[workload], workload.leaf
            if leaf == self.leaf or not piece.whole or piece.fresh:
                continue
            del gone[workload]
            side = self.queues.meeting(self.leaf, leaf)[1]
            if not any(side in path[other.leaf] for other in gone):
                kind, place = self._kind(piece), _place(workload)
                self._last[kind] = max(place, self._last.get(kind, place))

    def _kind(self, piece: Piece) -> tuple[int, int, Amount]:
        return piece.workload.leaf, len(piece.tasks), piece.amount


def _place(workload: WorkloadState) -> Place:
    return -workload.priority, workload.queued_at, workload.key
