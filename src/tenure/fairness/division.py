"""Dividing what is left among queues of one priority, by weight, in whole units (spec: fair share, steps 2 and 3)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

from tenure.fairness.history import reweigh, whole_usage

Past = tuple[Sequence[float], Fraction]
"""Past usage of the queues, and the strength of history."""


def divide(left: int, wants: Sequence[int], weights: tuple[int, ...], unit: int, past: Past | None = None) -> list[int]:
    """Divide one resource among sibling queues of one priority; all they want, if there is enough.

    Parameters
    ----------
    left
        What there is to divide.
    wants
        How much more each queue wants, 0 or more: min(max, request) less what step 1 gave.
    weights
        Whole numbers in the proportion of the weights, 0 allowed.
    unit
        The amount that portions are rounded down to, such as 1000 for GPUs in milli-GPU.
    past
        Past usage of each queue and the strength of history, if that is switched on.

    The queues stand in the order in which ties are broken: earlier creation, then name.

    Notes
    -----
    Always gives min(``left``, sum of ``wants``) in all. Where ``left`` or a want is no whole number of units, the
    last single unit of step 3 is a part of one, no larger than what is left and what the queue wants: otherwise an
    amount smaller than a unit would lie idle while a queue could use it.

    Rounds are taken as they are written: each round divides what the earlier ones left, the parts that were cut off
    by rounding included. With unequal weights this may differ by a few units from rounding the final portions once.
    """
    if left >= sum(wants):
        return list(wants)
    if left <= 0:
        return [0] * len(wants)
    if weights.count(weights[0]) == len(weights) and (past is None or not weights[0]):
        return _equal_portions(left, wants, unit)
    given = [0] * len(wants)
    competing = [i for i, weight in enumerate(weights) if weight and wants[i]]
    if 0 in weights:
        needed = sum([wants[i] for i in competing])
        if needed <= left:
            return _after_the_others(left - needed, wants, weights, unit)
    _rounds(left, wants, weights, unit, competing, given, past)
    return given


def _equal_portions(left: int, wants: Sequence[int], unit: int) -> list[int]:
    """Share out ``left``, which is less than all want, in equal portions.

    All rounds in one: as every portion is cut off by the same amount, nothing that is left over shifts proportions.
    """
    lacking = len(wants)
    for want in sorted(wants):
        if want * lacking > left:
            break
        left -= want
        lacking -= 1
    portion = left // lacking
    rounded = portion // unit * unit
    given = [want if want <= portion else rounded for want in wants]
    left -= rounded * lacking
    if left:
        _single_units(left, wants, unit, range(len(wants)), given)
    return given


def _after_the_others(left: int, wants: Sequence[int], weights: Sequence[int], unit: int) -> list[int]:
    """Give the queues that have a weight all they want, and divide the rest equally among those of weight 0."""
    given = [want if weight else 0 for want, weight in zip(wants, weights, strict=True)]
    idle = [i for i, weight in enumerate(weights) if not weight]
    for i, gift in zip(idle, _equal_portions(left, [wants[i] for i in idle], unit), strict=True):
        given[i] = gift
    return given


def _rounds(
    left: int,
    wants: Sequence[int],
    weights: Sequence[int],
    unit: int,
    competing: list[int],
    given: list[int],
    past: Past | None,
) -> None:
    """Share out ``left``, which is less than the competing queues want, in proportion to weight."""
    again = True
    while again:
        again = False
        pool = left
        in_force = weights if past is None else _weights_now(weights, competing, past)
        whole = sum([in_force[i] for i in competing])
        unsatisfied = []
        for i in competing:
            portion = pool * in_force[i]  # as a multiple of 1 / whole: no fractions are needed
            gift = wants[i] - given[i]
            lacking = gift * whole - portion
            if lacking > 0:
                units, remainder = divmod(portion, whole * unit)
                gift = units * unit
                unsatisfied.append((-remainder, i))
            elif lacking:
                again = True
            given[i] += gift
            left -= gift
        competing = [i for _, i in unsatisfied]
    unsatisfied.sort()
    _single_units(left, wants, unit, [i for _, i in unsatisfied], given)


def _single_units(left: int, wants: Sequence[int], unit: int, order: Iterable[int], given: list[int]) -> None:
    """Give one unit to each queue in turn that still wants more, until nothing is left."""
    for i in order:
        if not left:
            break
        gift = min(unit, left, wants[i] - given[i])
        given[i] += gift
        left -= gift


def _weights_now(weights: Sequence[int], competing: Sequence[int], past: Past) -> list[int]:
    """Give the weights with history, normalised among the competing queues; 0 for the others."""
    usage, strength = past
    now = [0] * len(weights)
    changed = reweigh([weights[i] for i in competing], whole_usage([usage[i] for i in competing]), strength)
    for i, weight in zip(competing, changed, strict=True):
        now[i] = weight
    return now
