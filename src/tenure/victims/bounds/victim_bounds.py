"""Necessary bounds, before anything is gathered or tried: could all that the rules let go make room at all?

They look at queues and at sums by node and leaf. Shields, the order of those that wait, and who takes what back are
left aside, so a contender that passes may still not be helped; one that does not pass cannot be, whatever is tried.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf

import numpy as np
from numpy.typing import NDArray

from tenure.engine.memo import Memo
from tenure.engine.state.queues import Amount
from tenure.engine.state.session import Session
from tenure.engine.state.workloads import Demand, WorkloadState
from tenure.fairness.current import CurrentShares
from tenure.fairness.reclaiming import ReclaimRules
from tenure.model.settings import Cause
from tenure.victims.bounds.branches import VictimBranches
from tenure.victims.bounds.reclaim_limits import ReclaimLimits
from tenure.victims.bounds.room_demand import RoomDemand, RoomDemands

Floats = NDArray[np.float64]


class VictimBounds:
    """The bounds for the contenders of one cause, as the session stands when they are asked."""

    def __init__(self, session: Session, shares: CurrentShares, limits: ReclaimLimits, cause: Cause) -> None:
        self.session = session
        self.queues = session.queues
        self.shares = shares
        self.limits = limits
        self.holdings = limits.holdings
        self.cause = cause
        self._needs = RoomDemands(session, lambda: self.holdings.version)
        self._open_to = Memo[WorkloadState, VictimBranches](
            lambda contender: VictimBranches(ReclaimRules(session, shares, contender), limits),
            lambda _: self.holdings.version,
            lambda one, other: list(one) == list(other),
        )

    def infeasible(self, contender: WorkloadState, step: Demand) -> bool:
        """Whether no set of victims at all could help, and there is no room as it is, or the queue has none."""
        self.holdings.catch_up()
        if self._held_back(contender, step):
            return True
        known_to_fail = step.shape and step.shape.failed == self.session.epoch and step.tasks[0].terms is None
        if not known_to_fail and all(part.count >= part.needed for part in self._needs.of(step).parts):
            return False
        if self.cause == "reclaim":
            return self._cannot_reclaim(contender, step)
        may_go = self.holdings.movable if self.cause == "consolidate" else self._below(contender)
        return not self._fits(self._needs.of(step), may_go)

    def _held_back(self, contender: WorkloadState, step: Demand) -> bool:
        """Whether a maximum, or guarantees that must not be borrowed against, hold it back whatever is evicted."""
        queues, leaf = self.queues, contender.leaf
        if contender.fixed and queues.beyond_guaranteed(leaf, step.amount) is not None:
            return True
        if not queues.limited[leaf]:
            return False
        if self.cause == "consolidate":  # what moves counts as before
            return queues.over_max(leaf, step.amount) is not None
        for queue in queues.path[leaf]:
            held = self._at_least(queue, leaf if self.cause == "reclaim" else -1)
            for have, more, most in zip(held, step.amount, queues.maximum[queue], strict=True):
                if more and have + more > most:
                    return True
        return False

    def _at_least(self, queue: int, leaf: int) -> Amount:
        """What a queue still holds when all preemptible work below it, but that of ``leaf``, is gone."""
        held = list(self.queues.allocated[queue])
        for below in self.queues.leaves[queue]:
            if below != leaf:
                for row, amount in enumerate(self.holdings.held(below)):
                    held[row] -= amount
        return tuple(held)

    # -- what could be free ---------------------------------------------------------------------------------------

    def _below(self, contender: WorkloadState) -> Floats:
        """Sum up by node what is of lower priority in the contender's leaf: ``float64[rows, nodes]``."""
        entries, count = self.holdings.entries(contender.leaf), len(self.session.nodes)
        chosen = entries.priority < contender.priority
        nodes = entries.node[chosen]
        return np.array([np.bincount(nodes, weights=row[chosen], minlength=count) for row in entries.frees])

    def _fits(self, need: RoomDemand, freed: Floats) -> bool:
        """Whether there could be room for all with ``freed`` gone."""
        room = self.session.nodes.room[self.session.nodes.rows :]
        for part in need.parts:
            slots = np.full(room.shape[1], inf)
            for row, ask in part.asks:
                np.minimum(slots, (room[row] + freed[row]) // ask, out=slots)
            if np.where(part.cls.static, np.maximum(slots, 0), 0).sum() < part.needed:
                return False
        return True

    # -- reclaim --------------------------------------------------------------------------------------------------

    def open_to(self, contender: WorkloadState) -> VictimBranches:
        """Give the leaves from which reclaim may take for a contender at all, and what they let go."""
        self.holdings.catch_up()
        return self._open_to(contender)

    def _cannot_reclaim(self, contender: WorkloadState, step: Demand) -> bool:
        rules = ReclaimRules(self.session, self.shares, contender)
        if not rules.entitled():
            return True
        branches = self.open_to(contender)
        if not branches:
            return True
        need = self._needs.of(step)
        if self._one_may_do(need, branches):
            return False
        return not self._fits(need, self._let_go(branches, {row for part in need.parts for row, _ in part.asks}))

    def _one_may_do(self, need: RoomDemand, branches: VictimBranches) -> bool:
        """Whether one workload that may go holds all that is asked for: then nothing is to be said beforehand."""
        asked: dict[int, int] = {}
        for part in need.parts:
            for row, ask in part.asks:
                if row < self.session.nodes.amounts:
                    asked[row] = asked.get(row, 0) + ask * part.needed
        for branch in branches if asked else ():
            for leaf, own in branch.below.leaves.items():
                for amount in self.holdings.sizes.get(leaf, ()):
                    if all(ask <= amount[row] <= min(own[row], branch.cap[row]) for row, ask in asked.items()):
                        return True
        return False

    def _let_go(self, branches: VictimBranches, rows: Iterable[int]) -> Floats:
        """What could be freed on each node, ``float64[rows, nodes]``, for the rows that are asked for.

        Of what queues do not count (free devices) all that is preemptible, wherever it belongs.
        """
        nodes = self.session.nodes
        freed = np.zeros((nodes.rows, len(nodes)))
        for row in rows:
            if row >= nodes.amounts:
                freed[row] = self.holdings.movable[row]
                continue
            for branch in branches:
                here = branch.below.on_nodes(self.holdings, row, len(nodes))
                freed[row] += np.minimum(here, max(0.0, branch.cap[row]))
        return freed
