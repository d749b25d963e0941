"""The branches of the queue tree from which something may be taken for one contender, and how much."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from math import inf
from operator import add, gt, sub
from typing import NamedTuple

from tenure.engine.state.queues import Amount, add_at
from tenure.fairness.reclaiming import ReclaimRules
from tenure.victims.bounds.reclaim_limits import Cap, ReclaimLimits, SubtreeLimits
from tenure.victims.rules.pieces import Piece


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
    """The branches that let something go for a contender, side by side from its leaf upwards.

    ``held``: what of each could go, where that is known.
    """

    def __init__(self, rules: ReclaimRules, limits: ReclaimLimits, held: dict[int, Amount] | None = None) -> None:
        self.rules = rules
        self.queues = rules.queues
        self.limits = limits
        self._by_queue = {branch.queue: branch for branch in self._find(held)}

    def __iter__(self) -> Iterator[VictimBranch]:
        """Give them from the contender's leaf upwards."""
        return iter(self._by_queue.values())

    def __bool__(self) -> bool:
        """Whether there is anything."""
        return bool(self._by_queue)

    def of(self, leaf: int) -> tuple[VictimBranch, Cap] | None:
        """Give the branch of a leaf, and the most that the leaf lets go; None if nothing."""
        branch = self._by_queue.get(self.rules.meeting(leaf)[1])
        own = None if branch is None else branch.below.leaves.get(leaf)
        return None if branch is None or own is None else (branch, own)

    @property
    def leaves(self) -> list[int]:
        """The leaves from which something may be taken."""
        return [leaf for branch in self for leaf in branch.below.leaves]

    def too_much(self, pieces: Iterable[Piece]) -> Callable[[Sequence[Piece]], bool]:
        """Say which sets of some pieces take more from a leaf or a sibling than it lets go, and so does every larger.

        What goes on the contender's own side are these pieces at most.
        """
        self.limits.holdings.catch_up()
        held: dict[int, Amount] = {}
        for piece in dict.fromkeys(pieces):
            add_at(held, self.rules.meeting(piece.workload.leaf)[1], piece.amount)
        branches = VictimBranches(self.rules, self.limits, held)

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

    def is_open(self, branch: VictimBranch) -> bool:
        """Whether something, be it ever so little, may be taken from a branch as things stand at this moment."""
        path = self.queues.path[self.rules.leaf]
        now = [self.queues.allocated[q] for q in path[: path.index(branch.mine) + 1]]
        return self._is_open(now, branch.queue)

    def _is_open(self, inside: Sequence[Cap], theirs: int) -> bool:
        allocated, limit = self.queues.allocated[theirs], self._limit(inside, theirs)
        if not any(allocated[row] > limit[row] for row in self.rules.rows):
            return False
        return _worth_it(self.rules, self._until_fuller(inside, theirs))

    def _find(self, held: dict[int, Amount] | None) -> Iterator[VictimBranch]:
        """Give the siblings from which something may be taken.

        From the contender's leaf upwards, because what its own side may give up below decides how much of what is
        further away it has a right to.
        """
        rules = self.rules
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
                cap = self._cap_of_sibling(least, queue)
                below = self.limits.below((sibling, rows))
                if cap is None or not below.leaves:
                    continue
                direct = least == now or self._is_open(now, queue)
                yield VictimBranch(mine, queue, cap, direct, below)
                goes = below.total if held is None else held[queue]
                gone = tuple(map(add, gone, map(min, goes, cap)))

    def _cap_of_sibling(self, inside: Sequence[Cap], theirs: int) -> Cap | None:
        """The most that may be taken from what the contender's side meets; None if nothing.

        ``inside``: what the queues on the contender's side hold, from its leaf up to the one that meets it.
        """
        cap = self.limits.of_queue(theirs, self._limit(inside, theirs), tuple(self.rules.rows))
        if cap is None:
            return None
        most = tuple(map(min, cap, self._until_fuller(inside, theirs)))
        return most if _worth_it(self.rules, most) else None

    def _limit(self, inside: Sequence[Cap], theirs: int) -> Sequence[int]:
        """What a sibling has to hold more than, so that something may be taken from it."""
        rules = self.rules
        limit, guaranteed = rules.allocatable[theirs], self.queues.guaranteed[theirs]
        mine = self.queues.path[rules.leaf][len(inside) - 1]
        if rules.would_be_within(mine, inside[-1]):
            return [min(a, max(0, g)) for a, g in zip(limit, guaranteed, strict=True)]
        return [max(0, a) for a in limit]

    def _until_fuller(self, inside: Sequence[Cap], theirs: int) -> Cap:
        """The most that can go before the contender's side is relatively fuller than what it takes from."""
        rules, most = self.rules, [inf] * len(self.queues.resources)
        allocated, its_fair = self.queues.allocated[theirs], rules.fair[theirs]
        for queue, held in zip(self.queues.path[rules.leaf], inside, strict=False):
            fair = rules.fair[queue]
            for row in rules.rows:
                then, share, its_share = held[row] + rules.amount[row], fair[row], its_fair[row]
                if then > share > 0 and its_share > 0:
                    most[row] = min(most[row], allocated[row] - -(-then * its_share // share))
        return tuple(most)


def _worth_it(rules: ReclaimRules, most: Sequence[float]) -> bool:
    """Whether something of what is asked for may go, and of none of it less than nothing."""
    return all(most[row] >= 0 for row in rules.rows) and any(most[row] > 0 for row in rules.rows)
