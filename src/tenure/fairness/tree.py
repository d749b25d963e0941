"""The queue tree, prepared for dividing: what of it does not change from one event to the next."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby

from tenure.model.queue import DEFAULT_QUEUE_PRIORITY, Queue
from tenure.model.values.resources import CPU, GPU, MEMORY, MILLI

UNLIMITED = 1 << 96
"""Stands for no maximum: more than any sum of amounts. Callers may use another large number."""

TOP = -1
"""The parent of a queue at the top level."""


@dataclass(frozen=True, slots=True)
class ShareQueue:
    """A queue in the tree of shares, with amounts by resource in the order that all its queues share.

    ``parent`` is an index into the same sequence of queues, or `TOP`. ``guaranteed`` may be ``None`` for a resource:
    not set, which for an inner queue means the sum of its children's. ``maximum`` ``None`` is unlimited. ``created``
    is any time, and only compared; where it is not known take a large one.
    """

    name: str
    parent: int
    guaranteed: Sequence[int | None]
    maximum: Sequence[int | None]
    weight: Sequence[float]
    priority: int = DEFAULT_QUEUE_PRIORITY
    created: int = 0


@dataclass(frozen=True, slots=True)
class SiblingSet:
    """The children of one queue, or the top level: places ``start`` to ``stop`` (exclusive) of the tree's order.

    ``parent`` is the place of the parent, or `TOP`. ``groups`` are the places of each priority, highest first.
    """

    parent: int
    start: int
    stop: int
    groups: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class ShareTree:
    """The queues as `tenure.fairness.shares.fair_shares` needs them; made by `queue_tree`.

    ``order`` gives the queue at each place: siblings stand together, higher priority first, then in the order that
    breaks ties (earlier creation, then name), and ``sets`` come parents first. ``place`` gives the place of each
    queue. The rest is by resource, then by place. ``weights`` are whole numbers: in every sibling set in exactly the
    proportion of the weights as they are written in decimal.
    """

    order: tuple[int, ...]
    place: tuple[int, ...]
    sets: tuple[SiblingSet, ...]
    units: tuple[int, ...]
    guaranteed: tuple[tuple[int, ...], ...]
    maximum: tuple[tuple[int, ...], ...]
    weights: tuple[tuple[int, ...], ...]


def queue_tree(queues: Sequence[ShareQueue], units: Sequence[int]) -> ShareTree:
    """Prepare a tree of queues for dividing.

    Parameters
    ----------
    queues
        Parents before their children; beyond that the order has no influence on shares.
    units
        The whole unit of each resource, see `whole_unit`.

    Raises
    ------
    ValueError
        A parent does not come before its child, a row has not one amount per resource, or a weight is negative or
        not finite.
    """
    for index, queue in enumerate(queues):
        _check(index, queue, len(units))
    order, sets = _arrange(queues)
    guaranteed = effective_guaranteed([queue.parent for queue in queues], [queue.guaranteed for queue in queues])
    limits = [[UNLIMITED if limit is None else limit for limit in queue.maximum] for queue in queues]
    placed = [queues[i] for i in order]
    return ShareTree(
        order=order,
        place=tuple(sorted(range(len(order)), key=order.__getitem__)),
        sets=sets,
        units=tuple(units),
        guaranteed=_columns([guaranteed[i] for i in order], len(units)),
        maximum=_columns([limits[i] for i in order], len(units)),
        weights=tuple(_whole_weights([q.weight[r] for q in placed], sets) for r in range(len(units))),
    )


def tree_of(queues: Sequence[Queue], resources: Sequence[str]) -> ShareTree:
    """Prepare the tree of the model's queues, parents before their children, for the named resources.

    A queue without a time of creation counts as created last.
    """
    index = {queue.name: position for position, queue in enumerate(queues)}
    return queue_tree(
        [
            ShareQueue(
                name=queue.name,
                parent=TOP if queue.parent is None else index[queue.parent],
                guaranteed=[queue.guaranteed.get(resource) for resource in resources],
                maximum=[queue.max.get(resource) for resource in resources],
                weight=[queue.weight_of(resource) for resource in resources],
                priority=queue.priority,
                created=UNLIMITED if queue.created_at is None else queue.created_at,
            )
            for queue in queues
        ],
        [whole_unit(resource) for resource in resources],
    )


def share_resources(queues: Iterable[Queue]) -> tuple[str, ...]:
    """Give the resources that shares look at, by name: those in some ``guaranteed`` or ``max``, else GPU, CPU, memory.

    Source: spec, fair share.
    """
    named = {resource for queue in queues for amounts in (queue.guaranteed, queue.max) for resource in amounts}
    return tuple(sorted(named or {CPU, GPU, MEMORY}))


def whole_unit(resource: str) -> int:
    """Give the amount that is one whole unit: one device for GPUs in milli-GPU, else 1 of the unit of account."""
    return MILLI if resource == GPU else 1


def effective_guaranteed(parent: Sequence[int], guaranteed: Sequence[Sequence[int | None]]) -> list[list[int]]:
    """Give every queue's guarantee by resource: its own, or where it sets none the sum of its children's.

    ``parent`` gives each queue's parent, parents first; ``guaranteed[q][r]`` is ``None`` where nothing is set. An
    explicit 0 is a guarantee of nothing.
    """
    sums = [[0] * len(row) for row in guaranteed]
    for index in reversed(range(len(parent))):
        own = sums[index]
        for resource, amount in enumerate(guaranteed[index]):
            if amount is not None:
                own[resource] = amount
        if parent[index] != TOP:
            above = sums[parent[index]]
            for resource, amount in enumerate(own):
                above[resource] += amount
    return sums


def _check(index: int, queue: ShareQueue, resources: int) -> None:
    """Refuse a queue that breaks the contract of `queue_tree`."""
    if not TOP <= queue.parent < index:
        raise ValueError(f"queue {queue.name!r}: its parent must come before it")
    if not len(queue.guaranteed) == len(queue.maximum) == len(queue.weight) == resources:
        raise ValueError(f"queue {queue.name!r}: one guaranteed, maximum and weight is needed for each resource")
    if not all(math.isfinite(weight) and weight >= 0 for weight in queue.weight):
        raise ValueError(f"queue {queue.name!r}: weights must be finite and not negative")


def _arrange(queues: Sequence[ShareQueue]) -> tuple[tuple[int, ...], tuple[SiblingSet, ...]]:
    """Put siblings together, level by level; give the order and the sibling sets in it."""
    children: dict[int, list[int]] = {}
    for index, queue in enumerate(queues):
        children.setdefault(queue.parent, []).append(index)
    order: list[int] = []
    sets: list[SiblingSet] = []
    waiting = deque([(TOP, TOP)])
    while waiting:
        place, parent = waiting.popleft()
        start = len(order)
        order += sorted(
            children.get(parent, ()), key=lambda i: (-queues[i].priority, queues[i].created, queues[i].name)
        )
        if len(order) > start:
            sets.append(SiblingSet(place, start, len(order), _groups(queues, order, start)))
        waiting.extend(enumerate(order[start:], start))
    return tuple(order), tuple(sets)


def _groups(queues: Sequence[ShareQueue], order: Sequence[int], start: int) -> tuple[tuple[int, int], ...]:
    """Give the places of each priority among the siblings from ``start`` on, which are sorted by it."""
    groups = []
    for _, group in groupby(order[start:], key=lambda i: queues[i].priority):
        stop = start + len(tuple(group))
        groups.append((start, stop))
        start = stop
    return tuple(groups)


def _whole_weights(weights: Sequence[float], sets: Iterable[SiblingSet]) -> tuple[int, ...]:
    """Give whole numbers in the proportion of the weights of siblings, which stand in the order of the tree.

    A weight of 0.1 means one tenth, not the binary number nearest to it: with that, portions that are equal on paper
    would differ in their remainders.
    """
    result: list[int] = []
    for siblings in sets:
        exact = [Fraction(str(weight)) for weight in weights[siblings.start : siblings.stop]]
        common = math.lcm(*(weight.denominator for weight in exact))
        whole = [int(weight * common) for weight in exact]
        shrink = math.gcd(*whole) or 1
        result += [weight // shrink for weight in whole]
    return tuple(result)


def _columns(rows: Sequence[Sequence[int]], resources: int) -> tuple[tuple[int, ...], ...]:
    """Turn amounts by queue into amounts by resource."""
    return tuple(tuple(row[resource] for row in rows) for resource in range(resources))
