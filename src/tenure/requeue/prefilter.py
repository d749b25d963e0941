"""Which candidates could serve which contenders: necessary conditions for all at once, before any play-through.

By order, whether a contender is more deserving; by room, whether with the candidate gone a step could fit on the nodes;
and by maxima, whether the candidate stands below the queue that is full. Nearly all candidates are ruled out here.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from tenure.engine.memo import Memo
from tenure.engine.state.session import Session
from tenure.fairness.current import CurrentShares
from tenure.requeue.candidates import RequeueCandidate
from tenure.requeue.pending_index import ContenderClass, in_order
from tenure.requeue.precedence import Precedence
from tenure.requeue.room import CandidateRoom, Mask
from tenure.victims.bounds.room_demand import RoomDemand


class CandidateMatch(NamedTuple):
    """A candidate that could serve a contender alone, and these contenders, in order."""

    candidate: RequeueCandidate
    classes: list[ContenderClass]


class CandidatePrefilter:
    """A necessary condition: which candidates could serve which classes, as things are when it is made.

    ``candidates`` are those that at least one contender outranks, in order; ``classes`` the contenders that some of
    them could serve, in the order in which they would be served.
    """

    def __init__(
        self,
        session: Session,
        shares: CurrentShares,
        candidates: Sequence[RequeueCandidate],
        contenders: Sequence[ContenderClass],
    ) -> None:
        self.session = session
        self.candidates: list[RequeueCandidate] = []
        self.classes: list[ContenderClass] = []
        self.most = session.settings.requeue.max_candidates
        if not contenders:
            return
        precedence = Precedence(session, shares, contenders, candidates)
        self._rows = precedence.rows()
        outranked: Mask = np.logical_or.reduce(list(self._rows.values()))[precedence.kind]
        self._kind = precedence.kind[outranked]
        self.candidates = [c for c, counts in zip(candidates, outranked.tolist(), strict=True) if counts]
        self._leaves = np.array([c.workload.leaf for c in self.candidates], np.int64)
        self._steps = {cls.alike.shape: cls.step for cls in contenders}
        self._by_room = Memo[tuple[Hashable, bool], Mask](self._enough_room, lambda _: session.epoch, np.array_equal)
        self._helps = Memo[Hashable, Mask](self._helping, lambda _: session.epoch, np.array_equal)
        self._limits = {cls: session.queues.over_max(cls.alike.leaf, cls.step.amount) for cls in contenders}
        self.classes = in_order(session, shares, [cls for cls in contenders if self._is_hopeful(cls)])

    @cached_property
    def room(self) -> CandidateRoom:
        """What the candidates hold."""
        return CandidateRoom(self.session, self.candidates)

    def _is_hopeful(self, cls: ContenderClass) -> bool:
        """Whether some candidate, or as many together as may go, could serve a class."""
        mask = self._deserving(cls)
        return bool(mask.any()) and (bool((mask & self._enough(cls)).any()) or bool(self.together(cls)))

    def need(self, shape: Hashable) -> RoomDemand:
        """What steps of a shape ask for, as room is."""
        return RoomDemand(self.session, self._steps[shape])

    def _enough_room(self, key: tuple[Hashable, bool]) -> Mask:
        """Candidates without which there could be room for a shape; or only those of them that add to the room."""
        shape, useful = key
        return self.room.enough(self.need(shape), useful=useful)

    def _helping(self, shape: Hashable) -> Mask:
        """Candidates that could help a shape to room as part of a set; none if no set could be enough."""
        need = self.need(shape)
        return self.room.helps(need) if self.room.most(need, self.most) else np.zeros(self.room.count, bool)

    def alone(self) -> list[CandidateMatch]:
        """Candidates that could serve a contender alone, in order."""
        found: list[list[ContenderClass]] = [[] for _ in self.candidates]
        for cls in self.classes:
            for place in np.flatnonzero(self._deserving(cls) & self._enough(cls)).tolist():
                found[place].append(cls)
        return [CandidateMatch(c, f) for c, f in zip(self.candidates, found, strict=True) if f]

    def _deserving(self, cls: ContenderClass) -> Mask:
        """Candidates than which a class is more deserving."""
        mask: Mask = self._rows[cls][self._kind]
        return mask

    def _enough(self, cls: ContenderClass) -> Mask:
        """Candidates that make room, or, where a maximum holds the class back, that stand below it."""
        limit = self._limits[cls]
        found = self._by_room((cls.alike.shape, limit is None))
        if limit is None:
            return found
        path = self.session.queues.path
        below = np.array([limit[0] in path[leaf] for leaf in range(len(path))])
        stands: Mask = found & below[self._leaves]
        return stands

    def together(self, cls: ContenderClass) -> list[RequeueCandidate]:
        """Candidates that could be part of a set for a class, in order; none if no set could be enough."""
        mask = self._deserving(cls)
        if self._limits[cls] is None:
            mask = mask & self._helps(cls.alike.shape)
        if mask.sum() < 2:  # noqa: PLR2004  a set of one was tried before
            return []
        return [self.candidates[n] for n in np.flatnonzero(mask).tolist()]
