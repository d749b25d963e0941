"""Which candidates could serve which contenders: necessary conditions for all at once, before any play-through.

By order, whether a contender is more deserving; by room, whether with the candidate gone a step could fit on the nodes;
and by maxima, whether the candidate stands below the queue that is full. Nearly all candidates are ruled out here.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np

from tenure.engine.session import Session
from tenure.fairness.current import CurrentShares
from tenure.requeue.candidates import RequeueCandidate
from tenure.requeue.classes import ContenderClass, ShapeNeeds, in_order
from tenure.requeue.precedence import Precedence
from tenure.requeue.room import CandidateRoom, Mask
from tenure.victims.room_bounds import RoomDemand


class CandidateMatch(NamedTuple):
    """A candidate that could serve a contender alone: the number of its kind, and the contenders, in order."""

    candidate: RequeueCandidate
    kind: int
    classes: list[ContenderClass]


class CandidatePrefilter:
    """A necessary condition: which candidates could serve which classes, as things are when it is made.

    ``candidates`` are those that at least one contender outranks, in order; ``classes`` the contenders that are more
    deserving than any of them, in the order in which they would be served.
    """

    def __init__(
        self,
        session: Session,
        shares: CurrentShares,
        candidates: Sequence[RequeueCandidate],
        contenders: Sequence[ContenderClass],
    ) -> None:
        self.session = session
        self.needs = ShapeNeeds(session)
        self.candidates: list[RequeueCandidate] = []
        self.classes: list[ContenderClass] = []
        if not contenders:
            return
        standing = Precedence(session, shares, contenders, candidates)
        alive = standing.beatable()[standing.kind]
        self.candidates = [c for c, stays in zip(candidates, alive.tolist(), strict=True) if stays]
        if not self.candidates:
            return
        self._kind = standing.kind[alive]
        self._leaves = np.array([c.workload.leaf for c in self.candidates], np.int64)
        self.room = CandidateRoom(session, self.candidates)
        self._by_room: dict[tuple[Hashable, bool], Mask] = {}
        self._helps: dict[Hashable, Mask] = {}
        self._limits = {id(cls): session.queues.over_max(cls.leaf, cls.amount) for cls in contenders}
        self._rows = dict(zip(map(id, contenders), standing.rows(contenders), strict=True))
        present = np.flatnonzero(np.bincount(self._kind))
        most = session.settings.requeue.max_candidates
        hopeful = [cls for cls in contenders if self._rows[id(cls)][present].any() and self._is_hopeful(cls, most)]
        self.classes = in_order(session, shares, hopeful)

    def _is_hopeful(self, cls: ContenderClass, most: int) -> bool:
        """Whether some candidate, or as many together as may go, could serve a class."""
        mask = self._deserving(cls)
        return bool((mask & self._enough(cls)).any()) or len(self.together(cls, most)) > 1

    def need(self, cls: ContenderClass) -> RoomDemand:
        """What a class asks for, as room was."""
        return self.needs.of(cls)

    def alone(self) -> list[CandidateMatch]:
        """Candidates that could serve a contender alone, in order."""
        found: list[list[ContenderClass]] = [[] for _ in self.candidates]
        for cls in self.classes:
            for place in np.flatnonzero(self._deserving(cls) & self._enough(cls)).tolist():
                found[place].append(cls)
        kinds = self._kind.tolist() if self.candidates else []
        return [CandidateMatch(c, k, f) for c, k, f in zip(self.candidates, kinds, found, strict=True) if f]

    def _deserving(self, cls: ContenderClass) -> Mask:
        """Candidates than which a class is more deserving."""
        mask: Mask = self._rows[id(cls)][self._kind]
        return mask

    def _enough(self, cls: ContenderClass) -> Mask:
        """Candidates that make room, or, where a maximum holds the class back, that stand below it."""
        limit = self._limits[id(cls)]
        key = cls.shape, limit is None
        found = self._by_room.get(key)
        if found is None:
            found = self._by_room[key] = self.room.enough(self.need(cls), useful=limit is None)
        if limit is None:
            return found
        path = self.session.queues.path
        below = np.array([limit[0] in path[leaf] for leaf in range(len(path))])
        stands: Mask = found & below[self._leaves]
        return stands

    def together(self, cls: ContenderClass, most: int) -> list[RequeueCandidate]:
        """Candidates that could be part of a set for a class, in order; none if no set could be enough."""
        mask = self._deserving(cls)
        if self._limits[id(cls)] is None:
            helps = self._helps.get(cls.shape)
            if helps is None:
                need = self.need(cls)
                helps = self.room.helps(need) if self.room.most(need, most) else np.zeros(len(mask), bool)
                self._helps[cls.shape] = helps
            mask = mask & helps
        if mask.sum() < 2:  # noqa: PLR2004  a set of one was tried before
            return []
        return [self.candidates[n] for n in np.flatnonzero(mask).tolist()]
