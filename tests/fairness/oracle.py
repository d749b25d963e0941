"""Slow and plain ways to work out fair shares, to compare the fast one with."""

from __future__ import annotations

from fractions import Fraction

from tenure.fairness.tree import TOP


def by_the_rules(case, usage=None, strength=0):
    """Follow the three steps of the spec word by word, in exact fractions."""
    demand, floors = case.demand(), case.floors()
    shares = list(floors)
    for parent, children in sorted(case.sibling_sets().items()):
        left = (case.total if parent == TOP else shares[parent]) - sum(floors[i] for i in children)
        for priority in sorted({case.queues[i].priority for i in children}, reverse=True):
            equals = [i for i in children if case.queues[i].priority == priority]
            weighty = {i: Fraction(str(case.queues[i].weight[0])) for i in equals if case.queues[i].weight[0] > 0}
            weightless = {i: Fraction(1) for i in equals if i not in weighty}
            left = _rounds(case, left, weighty, demand, shares, usage, Fraction(strength))
            left = _rounds(case, left, weightless, demand, shares, None, 0)
    return shares


def _rounds(case, left, weights, demand, shares, usage, strength):
    somebody_took_less = True
    remainder = {}
    while somebody_took_less and left > 0:
        somebody_took_less = False
        hungry = {i: weights[i] for i in weights if demand[i] > shares[i]}
        if usage is not None:
            hungry = _with_history(hungry, usage, strength)
        portions = {i: left * weight / sum(hungry.values()) for i, weight in hungry.items()}
        remainder = {}
        for i, portion in portions.items():
            need = demand[i] - shares[i]
            if need <= portion:
                got = need
                somebody_took_less = somebody_took_less or need < portion
            else:
                got = portion // case.unit * case.unit
                remainder[i] = portion - got
            shares[i] += got
            left -= got
    for i in sorted(remainder, key=lambda i: (-remainder[i], case.queues[i].created, case.queues[i].name)):
        got = max(0, min(case.unit, left, demand[i] - shares[i]))
        shares[i] += got
        left -= got
    return left


def _with_history(weights, usage, strength):
    used = sum((Fraction(usage[i]) for i in weights), Fraction(0))
    whole = sum(weights.values())
    result = {}
    for i, weight in weights.items():
        w = weight / whole
        u = Fraction(usage[i]) / used if used else Fraction(0)
        result[i] = max(Fraction(0), w + strength * (w - u)) if used else w
    return result


def unit_by_unit(case):
    """Hand out one unit after another to the queue that got least so far; for one level, equal weights, whole units."""
    demand, floors = case.demand(), case.floors()
    shares = list(floors)
    left = case.total - sum(floors)
    while left > 0:
        hungry = [i for i in range(len(shares)) if shares[i] < demand[i]]
        if not hungry:
            break
        highest = max(case.queues[i].priority for i in hungry)
        poorest = min(
            (i for i in hungry if case.queues[i].priority == highest),
            key=lambda i: (shares[i] - floors[i], case.queues[i].created, case.queues[i].name),
        )
        shares[poorest] += case.unit
        left -= case.unit
    return shares


def water_level(left, wants, weights):
    """Give the exact division without rounding: min(want, level · weight), as fractions."""
    hungry = set(range(len(wants)))
    given = [Fraction(0)] * len(wants)
    remaining = Fraction(left)
    while hungry:
        whole = sum(weights[i] for i in hungry)
        sated = {i for i in hungry if wants[i] <= remaining * weights[i] / whole}
        if not sated:
            for i in hungry:
                given[i] = remaining * weights[i] / whole
            break
        for i in sated:
            given[i] = Fraction(wants[i])
        remaining -= sum(given[i] for i in sated)
        hungry -= sated
    return given
