"""Which candidates could serve whom: necessary conditions for all of them at once, before anything is played through.

By order, whether somebody is more deserving; by room, whether with the candidate gone a step could fit on the nodes;
and by maxima, whether the candidate stands below the queue that is full. Nearly all candidates are ruled out here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from tenure.engine.session import Session
from tenure.engine.workloads import WorkloadState
from tenure.fairness.current import CurrentShares
from tenure.requeue.candidates import Candidate
from tenure.requeue.classes import ContenderClass, gather, in_order
from tenure.requeue.room import Mask, Room
from tenure.requeue.standing import Standing
from tenure.victims.room import Need


class Single(NamedTuple):
    """A candidate that could serve somebody alone: the number of its kind, and whom, in order."""

    candidate: Candidate
    kind: int
    classes: list[ContenderClass]


class Prospects:
    """As things are when it is made.

    ``candidates`` are those than which somebody is more deserving, in order; ``classes`` the contenders that are more
    deserving than any of them, in the order in which they would be served.
    """

    def __init__(
        self,
        session: Session,
        shares: CurrentShares,
        candidates: Sequence[Candidate],
        may_contend: Callable[[WorkloadState], bool],
    ) -> None:
        self.session = session
        self.contenders = gather(session, may_contend)
        self.candidates: list[Candidate] = []
        self.classes: list[ContenderClass] = []
        self._number: dict[int, int] = {}
        if not self.contenders.classes:
            return
        standing = Standing(session, shares, self.contenders, candidates)
        alive = standing.beatable()[standing.kind]
        self.candidates = [c for c, stays in zip(candidates, alive.tolist(), strict=True) if stays]
        if not self.candidates:
            return
        self._kind = standing.kind[alive]
        self._leaves = np.array([c.workload.leaf for c in self.candidates], np.int64)
        rows = dict(zip(map(id, self.contenders.classes), standing.rows(self.contenders.classes), strict=True))
        present = np.unique(self._kind)
        some = [c for c in self.contenders.classes if rows[id(c)][present].any()]
        self.classes = in_order(session, shares, some)
        self._number = {id(cls): number for number, cls in enumerate(self.classes)}
        self._rows = [rows[id(cls)] for cls in self.classes]
        self.room = Room(session, self.candidates)
        self._by_room: dict[tuple[int, bool], Mask] = {}
        self._helps: dict[int, Mask] = {}
        self._limit = [session.queues.over_max(cls.leaf, self.contenders.amounts[cls.shape]) for cls in self.classes]

    def need(self, cls: ContenderClass) -> Need:
        """What a class asks for, as room was."""
        return self.contenders.needs[cls.shape]

    def alone(self) -> list[Single]:
        """Candidates that could serve somebody alone, in order."""
        found: list[list[ContenderClass]] = [[] for _ in self.candidates]
        for number, cls in enumerate(self.classes):
            for place in np.flatnonzero(self._deserving(number) & self._enough(number)).tolist():
                found[place].append(cls)
        kinds = self._kind.tolist() if self.candidates else []
        return [Single(c, k, f) for c, k, f in zip(self.candidates, kinds, found, strict=True) if f]

    def _deserving(self, number: int) -> Mask:
        """Candidates than which a class is more deserving."""
        mask: Mask = self._rows[number][self._kind]
        return mask

    def _enough(self, number: int) -> Mask:
        """Candidates that make room, or, where a maximum holds the class back, that stand below it."""
        cls, limit = self.classes[number], self._limit[number]
        key = cls.shape, limit is None
        found = self._by_room.get(key)
        if found is None:
            found = self._by_room[key] = self.room.enough(self.need(cls), useful=limit is None)
        if limit is None:
            return found
        path = self.session.queues.path
        below = [leaf for leaf in set(self._leaves.tolist()) if limit[0] in path[leaf]]
        return np.logical_and(found, np.isin(self._leaves, below))

    def together(self, cls: ContenderClass, most: int) -> list[Candidate]:
        """Candidates that could be part of a set for a class, in order; none if no set could be enough."""
        number = self._number[id(cls)]
        mask = self._deserving(number)
        if self._limit[number] is None:
            helps = self._helps.get(cls.shape)
            if helps is None:
                need = self.need(cls)
                helps = self.room.helps(need) if self.room.most(need, most) else np.zeros(len(mask), bool)
                self._helps[cls.shape] = helps
            mask = mask & helps
        if mask.sum() < 2:  # noqa: PLR2004  a set of one was tried before
            return []
        return [self.candidates[n] for n in np.flatnonzero(mask).tolist()]
