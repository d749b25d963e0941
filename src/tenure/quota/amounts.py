"""How much each queue should give up: distributed level by level (spec: quota preemption, firing).

First over the children that are above their allocatable share under the new max, in proportion to how far, so that
reclaim has nothing to give back afterwards; then over those above their guaranteed. What has opted out is left out
until nothing else remains.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tenure.engine.state.queues import QueueTree
from tenure.engine.state.workloads import TaskState
from tenure.fairness.tree import whole_unit
from tenure.quota.candidates import Tier, tier_of
from tenure.victims.rules.pieces import Piece

Amounts = dict[int, dict[int, int]]
"""Amount by queue, then by row."""


Holdings = dict[tuple[int, Tier], dict[int, int]]
"""What pieces come to, by leaf and tier, then by row."""


def holdings(rows: Sequence[int], pieces: Sequence[Piece]) -> Holdings:
    """Add up what pieces hold; of those that overlap the largest counts."""
    found: Holdings = {}
    taken: set[TaskState] = set()
    for piece in sorted(pieces, key=lambda p: -len(p.tasks)):  # what holds others before those
        if piece.tasks[0] in taken:
            continue
        if piece.compound:
            taken.update(piece.tasks)
        own = found.setdefault((piece.workload.leaf, tier_of(piece)), dict.fromkeys(rows, 0))
        for row in rows:
            own[row] += piece.amount[row]
    return found


def enforceable(queues: QueueTree, top: int, rows: Sequence[int], found: Holdings, tier: Tier | None = None) -> Amounts:
    """Give what could be taken below each queue from ``top`` down without breaking a guarantee in that resource.

    Only tiers up to ``tier`` count, if one is given.
    """
    total: Amounts = {}

    def add_up(queue: int) -> dict[int, int]:
        own = total[queue] = dict.fromkeys(rows, 0)
        parts = [amounts for (leaf, of), amounts in by_leaf.get(queue, ()) if tier is None or of <= tier]
        for amounts in (*parts, *map(add_up, queues.children[queue])):
            for row in rows:
                own[row] += amounts[row]
        for row in rows:
            above = queues.allocated[queue][row] - max(0, queues.guaranteed[queue][row])
            if above >= 0:  # a guarantee that was not reached before binds nothing
                own[row] = min(own[row], above)
        return own

    by_leaf: dict[int, list[tuple[tuple[int, Tier], dict[int, int]]]] = {}
    for key, amounts in found.items():
        by_leaf.setdefault(key[0], []).append((key, amounts))
    add_up(top)
    return total


@dataclass(frozen=True, slots=True)
class _Child:
    """One child in one resource: ``far`` is how far above the line it is, ``room`` how much it may still give."""

    queue: int
    far: int
    room: int


def distribute(
    queues: QueueTree, top: int, need: dict[int, int], share: Sequence[Sequence[int]], capacities: Sequence[Amounts]
) -> Amounts:
    """Give the amount that each queue below ``top`` should give up, by row.

    Parameters
    ----------
    queues
        The tree.
    top
        The queue that is over its max.
    need
        By row, how much has to go.
    share
        Allocatable share by queue and row, under the new max.
    capacities
        What could be taken; each is exhausted before the next is looked at.
    """
    amounts: Amounts = {top: dict(need)}
    waiting = [top]
    while waiting:
        queue = waiting.pop()
        children = queues.children[queue]
        waiting += children
        given = {child: dict.fromkeys(need, 0) for child in children}
        for row, amount in amounts[queue].items():
            _divide(queues, children, row, amount, share, capacities, given)
        amounts |= given
    return amounts


def _divide(
    queues: QueueTree, children: Sequence[int], row: int, amount: int, share: Sequence[Sequence[int]],
    capacities: Sequence[Amounts], given: Amounts,
) -> None:  # fmt: skip
    grain = whole_unit(queues.resources[row])
    for capacity in capacities:
        for above_share in (True, False):
            parts = []
            for child in children:
                held = queues.allocated[child][row]
                floor = max(0, queues.guaranteed[child][row])
                line = max(share[child][row], floor) if above_share else floor
                far = held - line - given[child][row]
                room = min(far, capacity[child][row] - given[child][row])
                if far > 0 and room > 0:
                    parts.append(_Child(child, far, room))
            for child, extra in _proportional(queues, parts, amount, grain).items():
                given[child][row] += extra
                amount -= extra
            if amount <= 0:
                return


def _proportional(queues: QueueTree, parts: list[_Child], amount: int, grain: int) -> dict[int, int]:
    """Divide in proportion to how far, none giving more than there is room for; whole units by largest remainder."""
    if sum(p.room for p in parts) <= amount:
        return {p.queue: p.room for p in parts}
    given: dict[int, int] = {}
    while True:
        total = sum(p.far for p in parts)
        full = [p for p in parts if p.far * amount >= p.room * total]
        if not full:
            break
        for part in full:
            given[part.queue] = part.room
            amount -= part.room
        parts = [p for p in parts if p not in full]
    portions = {p.queue: p.far * amount // total // grain * grain for p in parts}
    rest = amount - sum(portions.values())
    rooms = {p.queue: p.room for p in parts}
    order = sorted(parts, key=lambda p: (-(p.far * amount % (total * grain)), *_earlier(queues, p.queue)))
    for part in order:
        extra = min(grain, rest, rooms[part.queue] - portions[part.queue])
        portions[part.queue] += extra
        rest -= extra
    return given | portions


def _earlier(queues: QueueTree, queue: int) -> tuple[bool, int, str]:
    model = queues.queues[queue]
    return model.created_at is None, model.created_at or 0, model.name
