"""Fair share: what each queue is due of what there is, top down through the tree (spec: fair share)."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from operator import add, sub

from tenure.fairness.division import Past, divide
from tenure.fairness.history import UsageHistory
from tenure.fairness.tree import TOP, ShareTree, SiblingSet


def fair_shares(
    tree: ShareTree, total: Sequence[int], request: Sequence[Sequence[int]], history: UsageHistory | None = None
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
    if not request or not request[0]:
        return [[] for _ in request]
    columns = []
    for resource, column in enumerate(zip(*request, strict=True)):
        shares = _shares_of(tree, resource, total[resource], column, history)
        columns.append([shares[place] for place in tree.place])
    return list(map(list, zip(*columns, strict=True)))


def allocatable_share(maximum: int, guaranteed: int, fair: int) -> int:
    """Give min(max, max(guaranteed, fair share)): what a queue may hold before others reclaim from it."""
    return min(maximum, max(guaranteed, fair))


def _shares_of(
    tree: ShareTree, resource: int, total: int, request: Sequence[int], history: UsageHistory | None
) -> list[int]:
    """Give the fair shares of one resource, by place in the tree's order."""
    maximum = tree.maximum[resource]
    shares = _smaller(maximum, [request[i] for i in tree.order])
    wanted = _sum_up(tree.sets, maximum, shares)
    floors = _smaller(tree.guaranteed[resource], shares)
    past = None
    if history is not None:
        past = [history.usage[i][resource] for i in tree.order], Fraction(str(history.strength))
    for siblings, want in zip(tree.sets, reversed(wanted), strict=True):
        pool = total if siblings.parent == TOP else shares[siblings.parent]
        if pool < want:
            _divide_among(siblings, pool, shares, floors, tree.weights[resource], tree.units[resource], past)
    return shares


def _smaller(first: Sequence[int], second: Sequence[int]) -> list[int]:
    """Give the smaller of each pair."""
    return [a if a < b else b for a, b in zip(first, second, strict=True)]  # noqa: FURB136 - four times faster than min


def _sum_up(sets: Sequence[SiblingSet], maximum: Sequence[int], demand: list[int]) -> list[int]:
    """Set every inner queue's demand to what its children want in all, cut to its max; give these sums, last set first.

    ``demand`` is min(max, request) at the leaves.
    """
    wanted = []
    for siblings in reversed(sets):
        parent = siblings.parent
        want = sum(demand[siblings.start : siblings.stop])
        wanted.append(want)
        if parent != TOP:
            demand[parent] = min(want, maximum[parent])
    return wanted


def _divide_among(
    siblings: SiblingSet,
    pool: int,
    shares: list[int],
    floors: Sequence[int],
    weights: tuple[int, ...],
    unit: int,
    past: Past | None,
) -> None:
    """Divide ``pool`` among siblings who want more than that; ``shares`` holds their demand and takes the result.

    ``floors`` are the amounts of step 1, by place, as ``weights`` and ``past`` are.
    """
    left = pool - sum(floors[siblings.start : siblings.stop])
    for start, stop in siblings.groups:
        floor = floors[start:stop]
        wants = list(map(sub, shares[start:stop], floor))
        lately = past and (past[0][start:stop], past[1])
        gifts = divide(left, wants, weights[start:stop], unit, lately)
        shares[start:stop] = map(add, floor, gifts)
        left -= sum(gifts)
