"""Necessary bounds, before anything is gathered or tried: could all that the rules let go make room at all?

They look at queues and at sums by node and leaf. Shields, the order of those that wait, and who takes what back are
left aside, so a contender that passes may still not be helped; one that does not pass cannot be, whatever is tried.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from operator import add, gt, sub

import numpy as np
from numpy.typing import NDArray

from tenure.engine.queues import Amount
from tenure.engine.session import Session
from tenure.engine.workloads import NextStep, WorkloadState
from tenure.fairness.current import CurrentShares
from tenure.fairness.reclaiming import ReclaimRules
from tenure.model.settings import Cause
from tenure.victims.caps import Cap, Caps
from tenure.victims.pieces import Piece
from tenure.victims.room import Need

Floats = NDArray[np.float64]
Groups = dict[int, tuple[int, Cap, Cap]]
"""By leaf that lets something go: the sibling by which the contender meets it, and the most that each of them lets go.
"""


class Bounds:
    """The bounds for the contenders of one cause, as the session stands when they are asked."""

    def __init__(self, session: Session, shares: CurrentShares, caps: Caps, cause: Cause) -> None:
        self.session = session
        self.queues = session.queues
        self.shares = shares
        self.caps = caps
        self.holdings = caps.holdings
        self.cause = cause
        self._needs: dict[int, Need] = {}
        self._version = -1
        self._known: tuple[tuple[WorkloadState, int], Groups] | None = None

    def hopeless(self, contender: WorkloadState, step: NextStep) -> bool:
        """Whether no set of victims at all could help, and there is no room as it is."""
        self.holdings.catch_up()
        known_to_fail = step.shape is not None and step.shape.failed == self.session.epoch
        if not known_to_fail and all(part.count >= part.needed for part in self._need(step).parts):
            return False
        if self._held_back(contender, step):
            return True
        if self.cause == "reclaim":
            return self._cannot_reclaim(contender, step)
        may_go = self._movable() if self.cause == "consolidate" else self._below(contender)
        return not self._fits(self._need(step), may_go, {})

    def _need(self, step: NextStep) -> Need:
        """What a step needs; steps of one shape need the same while room stays as it is."""
        if step.shape is None:
            return Need(self.session, step)
        if self._version != self.holdings.version:
            self._needs.clear()
            self._version = self.holdings.version
        found = self._needs.get(id(step.shape))
        if found is None:
            found = self._needs[id(step.shape)] = Need(self.session, step)
        return found

    def _held_back(self, contender: WorkloadState, step: NextStep) -> bool:
        """Whether a maximum, or guarantees that must not be borrowed against, hold it back whoever gives way."""
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

    def _movable(self) -> Floats:
        entries = self.holdings.entries
        return self._by_node(np.ones(len(entries.node), bool))

    def _below(self, contender: WorkloadState) -> Floats:
        entries = self.holdings.entries
        return self._by_node((entries.leaf == contender.leaf) & (entries.priority < contender.priority))

    def _by_node(self, chosen: NDArray[np.bool_]) -> Floats:
        """Sum chosen entries up by node: ``float64[rows, nodes]``."""
        entries, count = self.holdings.entries, len(self.session.nodes)
        nodes = entries.node[chosen]
        return np.array([np.bincount(nodes, weights=row[chosen], minlength=count) for row in entries.frees])

    def _fits(self, need: Need, freed: Floats, caps: dict[int, float]) -> bool:
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

    def open_to(self, contender: WorkloadState) -> Groups:
        """Give the leaves from which reclaim may take for a contender at all, and what they let go."""
        rules = ReclaimRules(self.session, self.shares, contender)
        self.holdings.catch_up()
        known, key = self._known, (contender, self.holdings.version)
        if known is None or known[0] != key:
            known = self._known = key, self._groups(rules)
        return known[1]

    def may_be_taken(self, contender: WorkloadState, groups: Groups) -> Callable[[Piece], bool]:
        """Say which pieces may be part of a set of reclaim at all."""
        rules = ReclaimRules(self.session, self.shares, contender)
        known: dict[tuple[int, Amount], bool] = {}

        def allowed(piece: Piece) -> bool:
            group = groups.get(piece.workload.leaf)
            if group is None:
                return False
            amount = piece.amount
            key = piece.workload.leaf, amount
            if key not in known:
                known[key] = all(amount[row] <= min(group[1][row], group[2][row]) for row in rules.rows if amount[row])
            return known[key]

        return allowed

    def too_much(self, groups: Groups) -> Callable[[Sequence[Piece]], bool]:
        """Say which sets take more from a leaf or a sibling than it lets go, and so does every larger set."""

        def exceeds(pieces: Sequence[Piece]) -> bool:
            of_leaf: dict[int, Amount] = {}
            of_side: dict[int, Amount] = {}
            for piece in pieces:
                leaf = piece.workload.leaf
                theirs, own, cap = groups[leaf]
                before, beside = of_leaf.get(leaf), of_side.get(theirs)
                here = of_leaf[leaf] = piece.amount if before is None else tuple(map(add, before, piece.amount))
                there = of_side[theirs] = piece.amount if beside is None else tuple(map(add, beside, piece.amount))
                if any(map(gt, here, own)) or any(map(gt, there, cap)):
                    return True
            return False

        return exceeds

    def _cannot_reclaim(self, contender: WorkloadState, step: NextStep) -> bool:
        rules = ReclaimRules(self.session, self.shares, contender)
        if rules.contender_may() is not None:
            return True
        groups = self.open_to(contender)
        if not groups:
            return True
        need = self._need(step)
        freed, total = self._let_go(groups, sorted({row for part in need.parts for row, _ in part.asks}))
        return not self._fits(need, freed, total)

    def _let_go(self, groups: Groups, rows: Sequence[int]) -> tuple[Floats, dict[int, float]]:
        """What could be freed on each node, ``float64[rows, nodes]``, and in all, for the rows that are asked for."""
        entries, nodes = self.holdings.entries, self.session.nodes
        sides = {theirs: n for n, theirs in enumerate(dict.fromkeys(theirs for theirs, _, _ in groups.values()))}
        side_of, count = np.full(len(self.queues.queues), -1), len(nodes)
        for leaf, (theirs, _, _) in groups.items():
            side_of[leaf] = sides[theirs]
        side = side_of[entries.leaf]
        chosen = side >= 0
        node, leaf_of, side = entries.node[chosen], entries.leaf[chosen], side[chosen]
        freed, total = np.zeros((nodes.rows, count)), {}
        for row in rows:
            held = entries.frees[row][chosen]
            if row >= nodes.amounts:
                freed[row] = np.bincount(node, weights=held, minlength=count)
                continue
            most = np.full(len(side_of), inf)
            of_side = np.full(len(sides), inf)
            for leaf, (theirs, own, cap) in groups.items():
                most[leaf], of_side[sides[theirs]] = max(0.0, own[row]), max(0.0, cap[row])
            by_leaf = np.minimum(np.bincount(leaf_of, weights=held, minlength=len(side_of)), most)
            by_side = np.bincount(side_of + 1, weights=by_leaf, minlength=len(sides) + 1)[1:]
            total[row] = float(np.minimum(by_side, of_side).sum())
            there = np.bincount(
                node * len(sides) + side, weights=np.minimum(held, most[leaf_of]), minlength=count * len(sides)
            )
            freed[row] = np.minimum(there.reshape(count, len(sides)), of_side).sum(axis=1)
        return freed, total

    def _groups(self, rules: ReclaimRules) -> Groups:
        """Leaves from which something may be taken: the sibling that is met there, and what leaf and sibling let go.

        From the contender's leaf upwards, because what its own side may give up below decides how much of what is
        further away it has a right to.
        """
        groups: Groups = {}
        rows, sides = tuple(rules.rows), self.caps.sides(rules.leaf)
        inside: list[Cap] = []  # what is still held at least, queue by queue on the way up
        gone: Cap = (0,) * len(self.queues.resources)
        for mine in self.queues.path[rules.leaf]:
            inside.append(tuple(map(sub, self.queues.allocated[mine], gone)))
            for theirs, leaves in sides.get(mine, {}).items():
                cap = self._cap_of_sibling(rules, inside, theirs)
                if cap is None:
                    continue
                below: Cap = (0,) * len(cap)
                for leaf in leaves:
                    if any(held := self.holdings.held(leaf)) and (own := self.caps.of_leaf(leaf, theirs, rows)):
                        groups[leaf] = theirs, own, cap
                        below = tuple(map(add, below, map(min, held, own)))
                gone = tuple(map(add, gone, map(min, below, cap)))
        return groups

    def _cap_of_sibling(self, rules: ReclaimRules, inside: Sequence[Cap], theirs: int) -> Cap | None:
        """The most that may be taken from what the contender's side meets; None if nothing.

        ``inside``: what the queues on the contender's side hold at least, from its leaf up to the one that meets it.
        """
        queues, path = self.queues, self.queues.path[rules.leaf]
        limit: Sequence[int] = rules.allocatable[theirs]
        if rules.would_be_within(path[len(inside) - 1], inside[-1]):
            limit = [min(a, max(0, g)) for a, g in zip(limit, queues.guaranteed[theirs], strict=True)]
        cap = self.caps.of_queue(theirs, limit, tuple(rules.rows))
        if cap is None:
            return None
        least = list(cap)
        for queue, least_held in zip(path, inside, strict=False):
            for row in rules.rows:
                then = least_held[row] + rules.amount[row]
                share, its_share = rules.fair[queue][row], rules.fair[theirs][row]
                if then > share > 0 and its_share > 0:  # it must not be fuller than what it takes from
                    least[row] = min(least[row], queues.allocated[theirs][row] - -(-then * its_share // share))
        return None if any(least[row] <= 0 for row in rules.rows) and len(rules.rows) == 1 else tuple(least)
