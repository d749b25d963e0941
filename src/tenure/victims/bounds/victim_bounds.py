"""Necessary bounds, before anything is gathered or tried: could all that the rules let go make room at all?

They look at queues and at sums by node and leaf. Shields, the order of those that wait, and who takes what back are
left aside, so a contender that passes may still not be helped; one that does not pass cannot be, whatever is tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from math import inf
from operator import add, gt, sub
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tenure.engine.memo import Memo
from tenure.engine.state.queues import Amount, QueueTree, add_at
from tenure.engine.state.session import Session
from tenure.engine.state.workloads import Demand, WorkloadState
from tenure.fairness.current import CurrentShares
from tenure.fairness.reclaiming import ReclaimRules
from tenure.model.settings import Cause
from tenure.victims.bounds.reclaim_limits import Cap, ReclaimLimits, SubtreeLimits
from tenure.victims.bounds.room_demand import RoomDemand, RoomDemands
from tenure.victims.rules.pieces import Piece

Floats = NDArray[np.float64]


class VictimBranch(NamedTuple):
    """A sibling on the contender's way up from which something may be taken.

    ``mine`` is the queue above the contender's leaf beside which it stands, ``cap`` the most that it lets go if
    everything goes on the contender's own side that may. ``direct``: something may be taken as things stand, whatever
    else is. ``below``: what its leaves let go.
    """

    mine: int
    queue: int
    cap: Cap
    direct: bool
    below: SubtreeLimits


class VictimBranches:
    """The branches that let something go for a contender, side by side from its leaf upwards."""

    def __init__(self, queues: QueueTree, leaf: int, branches: Sequence[VictimBranch]) -> None:
        self.queues = queues
        self.leaf = leaf
        self._by_queue = {branch.queue: branch for branch in branches}

    def __iter__(self) -> Iterator[VictimBranch]:
        """Give them from the contender's leaf upwards."""
        return iter(self._by_queue.values())

    def __bool__(self) -> bool:
        """Whether there is anything."""
        return bool(self._by_queue)

    def of(self, leaf: int) -> tuple[VictimBranch, Cap] | None:
        """Give the branch of a leaf, and the most that the leaf lets go; None if nothing."""
        branch = self._by_queue.get(self.queues.meeting(self.leaf, leaf)[1])
        own = None if branch is None else branch.below.leaves.get(leaf)
        return None if branch is None or own is None else (branch, own)

    @property
    def leaves(self) -> list[int]:
        """The leaves from which something may be taken."""
        return [leaf for branch in self for leaf in branch.below.leaves]


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
            lambda contender: self._branches(ReclaimRules(session, shares, contender)),
            lambda _: self.holdings.version,
            lambda one, other: list(one) == list(other),
        )

    def infeasible(self, contender: WorkloadState, step: Demand) -> bool:
        """Whether no set of victims at all could help, and there is no room as it is."""
        self.holdings.catch_up()
        known_to_fail = step.shape and step.shape.failed == self.session.epoch and step.tasks[0].terms is None
        if not known_to_fail and all(part.count >= part.needed for part in self._needs.of(step).parts):
            return False
        if self._held_back(contender, step):
            return True
        if self.cause == "reclaim":
            return self._cannot_reclaim(contender, step)
        may_go = self.holdings.movable if self.cause == "consolidate" else self._below(contender)
        return not self._fits(self._needs.of(step), may_go, {})

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

    def _fits(self, need: RoomDemand, freed: Floats, caps: dict[int, float]) -> bool:
        """Whether there could be room for all with ``freed`` gone, of which no more than ``caps`` by row."""
        room = self.session.nodes.room[self.session.nodes.rows :]
        for part in need.parts:
            slots = np.full(room.shape[1], inf)
            for row, ask in part.asks:
                np.minimum(slots, (room[row] + freed[row]) // ask, out=slots)
            possible = np.where(part.cls.static, np.maximum(slots, 0), 0)
            if possible.sum() < part.needed:
                return False
            for row, ask in part.asks:
                cap = caps.get(row, inf)
                if cap < inf and self._cheapest(room[row], possible, ask, part.needed) > cap:
                    return False
        return True

    def _cheapest(self, room: NDArray[np.int64], possible: Floats, ask: int, needed: int) -> float:
        """The least that has to go of one resource so that ``needed`` tasks of ``ask`` have room, bounded from below.

        Every task takes the place where it lacks least; only the first on a node finds a rest there.
        """
        there = np.minimum(np.maximum(room // ask, 0), possible)
        missing = needed - int(there.sum())
        if missing <= 0:
            return 0
        more = possible > there
        first = np.sort(np.minimum(ask, ask - room[more] + there[more] * ask))[:missing]
        return float(first.sum()) + ask * max(0, missing - len(first))

    # -- reclaim --------------------------------------------------------------------------------------------------

    def open_to(self, contender: WorkloadState) -> VictimBranches:
        """Give the leaves from which reclaim may take for a contender at all, and what they let go."""
        self.holdings.catch_up()
        return self._open_to(contender)

    def too_much(self, contender: WorkloadState, pieces: Iterable[Piece]) -> Callable[[Sequence[Piece]], bool]:
        """Say which sets of some pieces take more from a leaf or a sibling than it lets go, and so does every larger.

        What goes on the contender's own side are these pieces at most.
        """
        self.holdings.catch_up()
        rules = ReclaimRules(self.session, self.shares, contender)
        held: dict[int, Amount] = {}
        for piece in dict.fromkeys(pieces):
            add_at(held, rules.meeting(piece.workload.leaf)[1], piece.amount)
        branches = self._branches(rules, held)

        def exceeds(pieces: Sequence[Piece]) -> bool:
            of_leaf: dict[int, Amount] = {}
            of_branch: dict[int, Amount] = {}
            for piece in pieces:
                leaf = piece.workload.leaf
                known = branches.of(leaf)
                if known is None:
                    return True
                branch, own = known
                here, there = add_at(of_leaf, leaf, piece.amount), add_at(of_branch, branch.queue, piece.amount)
                if any(map(gt, here, own)) or any(map(gt, there, branch.cap)):
                    return True
            return False

        return exceeds

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
        freed, total = self._let_go(branches, sorted({row for part in need.parts for row in part.scarce()}))
        return not self._fits(need, freed, total)

    def _one_may_do(self, need: RoomDemand, branches: VictimBranches) -> bool:
        """Whether one workload that may go holds all that is asked for: then nothing is to be said beforehand."""
        asked: dict[int, int] = {}
        for part in need.parts:
            for row, ask in part.asks:
                if row < self.session.nodes.amounts:
                    asked[row] = asked.get(row, 0) + ask * part.needed
        for branch in branches if asked else ():
            for leaf, own in branch.below.leaves.items():
                for amount in self.holdings.sizes(leaf):
                    if all(ask <= amount[row] <= min(own[row], branch.cap[row]) for row, ask in asked.items()):
                        return True
        return False

    def _let_go(self, branches: VictimBranches, rows: Sequence[int]) -> tuple[Floats, dict[int, float]]:
        """What could be freed on each node, ``float64[rows, nodes]``, and in all, for the rows that are asked for.

        Of what queues do not count (free devices) all that is preemptible, wherever it belongs.
        """
        nodes = self.session.nodes
        freed, total = np.zeros((nodes.rows, len(nodes))), {}
        for row in rows:
            if row >= nodes.amounts:
                freed[row] = self.holdings.movable[row]
                continue
            for branch in branches:
                here = branch.below.on_nodes(self.holdings, row, len(nodes))
                freed[row] += np.minimum(here, max(0.0, branch.cap[row]))
            total[row] = float(sum(min(branch.below.total[row], max(0.0, branch.cap[row])) for branch in branches))
        return freed, total

    def _branches(self, rules: ReclaimRules, held: dict[int, Amount] | None = None) -> VictimBranches:
        """Siblings from which something may be taken; ``held``: what of each could go, where that is known.

        From the contender's leaf upwards, because what its own side may give up below decides how much of what is
        further away it has a right to.
        """
        found: list[VictimBranch] = []
        rows, siblings = tuple(rules.rows), self.limits.siblings(rules.leaf)
        now: list[Cap] = []  # what is held, queue by queue on the way up
        least: list[Cap] = []  # what is still held at least
        gone: Cap = (0,) * len(self.queues.resources)
        for mine in self.queues.path[rules.leaf]:
            now.append(self.queues.allocated[mine])
            least.append(tuple(map(sub, self.queues.allocated[mine], gone)))
            for sibling in siblings[mine]:
                queue = sibling.queue
                if held is not None and queue not in held:
                    continue
                cap = self._cap_of_sibling(rules, least, queue)
                below = self.limits.below((sibling, rows))
                if cap is None or not below.leaves:
                    continue
                direct = least == now or self._is_open(rules, now, queue)
                found.append(VictimBranch(mine, queue, cap, direct, below))
                goes = below.total if held is None else held[queue]
                gone = tuple(map(add, gone, map(min, goes, cap)))
        return VictimBranches(self.queues, rules.leaf, found)

    def is_open(self, rules: ReclaimRules, branch: VictimBranch) -> bool:
        """Whether something, be it ever so little, may be taken from a branch as things stand at this moment."""
        path = self.queues.path[rules.leaf]
        now = [self.queues.allocated[q] for q in path[: path.index(branch.mine) + 1]]
        return self._is_open(rules, now, branch.queue)

    def _is_open(self, rules: ReclaimRules, inside: Sequence[Cap], theirs: int) -> bool:
        allocated, limit = self.queues.allocated[theirs], self._limit(rules, inside, theirs)
        if not any(allocated[row] > limit[row] for row in rules.rows):
            return False
        return self._worth_it(rules, self._until_fuller(rules, inside, theirs))

    def _worth_it(self, rules: ReclaimRules, most: Sequence[float]) -> bool:
        return all(most[row] >= 0 for row in rules.rows) and any(most[row] > 0 for row in rules.rows)

    def _cap_of_sibling(self, rules: ReclaimRules, inside: Sequence[Cap], theirs: int) -> Cap | None:
        """The most that may be taken from what the contender's side meets; None if nothing.

        ``inside``: what the queues on the contender's side hold, from its leaf up to the one that meets it.
        """
        cap = self.limits.of_queue(theirs, self._limit(rules, inside, theirs), tuple(rules.rows))
        if cap is None:
            return None
        most = tuple(map(min, cap, self._until_fuller(rules, inside, theirs)))
        return most if self._worth_it(rules, most) else None

    def _limit(self, rules: ReclaimRules, inside: Sequence[Cap], theirs: int) -> Sequence[int]:
        """What a sibling has to hold more than, so that something may be taken from it."""
        limit, guaranteed = rules.allocatable[theirs], self.queues.guaranteed[theirs]
        mine = self.queues.path[rules.leaf][len(inside) - 1]
        if rules.would_be_within(mine, inside[-1]):
            return [min(a, max(0, g)) for a, g in zip(limit, guaranteed, strict=True)]
        return [max(0, a) for a in limit]

    def _until_fuller(self, rules: ReclaimRules, inside: Sequence[Cap], theirs: int) -> Cap:
        """The most that can go before the contender's side is relatively fuller than what it takes from."""
        most = [inf] * len(self.queues.resources)
        allocated, its_fair = self.queues.allocated[theirs], rules.fair[theirs]
        for queue, held in zip(self.queues.path[rules.leaf], inside, strict=False):
            fair = rules.fair[queue]
            for row in rules.rows:
                then, share, its_share = held[row] + rules.amount[row], fair[row], its_fair[row]
                if then > share > 0 and its_share > 0:
                    most[row] = min(most[row], allocated[row] - -(-then * its_share // share))
        return tuple(most)
