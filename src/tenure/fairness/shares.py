"""Fair share: what each queue is due of what there is, top down through the tree (spec: fair share)."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from tenure.fairness.division import divide
from tenure.fairness.history import History
from tenure.fairness.tree import TOP, QueueTree, SiblingSet


def fair_shares(
    tree: QueueTree, total: Sequence[int], request: Sequence[Sequence[int]], history: History | None = None
) -> list[list[int]]:
    """Give the fair share of every queue in every resource.

    Parameters
    ----------
    tree
        The queues, see `tenure.fairness.tree.queue_tree`.
    total
        What ready nodes have less what pods of other schedulers use, by resource.
    request
        ``request[q][r]``: allocated plus pending of the workloads in leaf queue ``q``. Rows of inner queues are not
        read: requests are summed up the tree here.
    history
        Past usage, with time-based fairness. Leave it out for the shares that reclaim compares with.

    Returns
    -------
    list of list of int
        ``fair[q][r]``, in the units of ``request``.

    Notes
    -----
    On its way up a request is cut to the ``max`` of each queue that it passes. With plain sums a parent whose
    children are held back by their ``max`` would be given what none of them may use, while its sibling waits for it:
    the satisfied would hold what the unsatisfied could use.

    Guarantees of children that exceed their parent's fair share are given all the same (step 1), so only then, and
    where guarantees at the top level exceed the total, do the shares of siblings add up to more than there is.
    """
    if not tree.parent:
        return []
    columns = [
        _shares_of(tree, resource, total[resource], [row[resource] for row in request], history)
        for resource in range(len(tree.units))
    ]
    return [list(row) for row in zip(*columns, strict=True)] or [[] for _ in tree.parent]


def allocatable_share(maximum: int, guaranteed: int, fair: int) -> int:
    """Give min(max, max(guaranteed, fair share)): what a queue may hold before others reclaim from it."""
    return min(maximum, max(guaranteed, fair))


def _shares_of(tree: QueueTree, resource: int, total: int, request: list[int], history: History | None) -> list[int]:
    """Give every queue's fair share of one resource."""
    wanted = _demand(tree, resource, request)
    shares = request
    for siblings in tree.sets:
        pool = total if siblings.parent == TOP else shares[siblings.parent]
        if pool < wanted[siblings.parent]:
            _divide_among(tree, resource, siblings, pool, shares, history)
    return shares


def _demand(tree: QueueTree, resource: int, request: list[int]) -> list[int]:
    """Turn the leaves' requests, in place, into every queue's min(max, request); give what its children want in all.

    The last element, at index `TOP`, is for the top level.
    """
    maximum = tree.maximum[resource]
    parent = tree.parent
    below = [0] * (len(parent) + 1)
    for queue in tree.inner:
        request[queue] = 0
    for queue in range(len(parent) - 1, -1, -1):
        demand = min(request[queue] + below[queue], maximum[queue])
        request[queue] = demand
        below[parent[queue]] += demand
    return below


def _divide_among(
    tree: QueueTree, resource: int, siblings: SiblingSet, pool: int, shares: list[int], history: History | None
) -> None:
    """Divide ``pool`` among siblings who want more than that; ``shares`` holds their demand and takes the result."""
    guaranteed = tree.guaranteed[resource]
    weights = tree.weights[resource]
    unit = tree.units[resource]
    left = pool - sum([min(guaranteed[i], shares[i]) for i in siblings.members])
    for group in siblings.groups:
        floors = [min(guaranteed[i], shares[i]) for i in group]
        wants = [shares[i] - floor for i, floor in zip(group, floors, strict=True)]
        past = None
        if history is not None:
            past = [history.usage[i][resource] for i in group], Fraction(str(history.strength))
        gifts = divide(left, wants, [weights[i] for i in group], unit, past)
        left -= sum(gifts)
        for i, floor, gift in zip(group, floors, gifts, strict=True):
            shares[i] = floor + gift
