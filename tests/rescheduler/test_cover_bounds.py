"""Cover bounds are what trying every set of tasks gives, and never more than a plan costs."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import ceil

import numpy as np
import pytest

from tenure.rescheduler.milp.cover_bounds import ENUMERATED, NEVER, CoverBounds, bounds_of

from .problems import problem

SEEDS = range(300)


def random_cover(seed):
    """A few nodes with few tasks or many; resources that go together, scarce or not, and classes of several shapes."""
    dice = np.random.default_rng(seed)
    size, kinds, classes = int(dice.integers(1, 6)), int(dice.integers(1, 4)), int(dice.integers(1, 5))
    takes = dice.integers(0, 4, (classes, kinds))
    if dice.random() < 0.4:
        takes[:, -1] = takes[:, 0]
    if dice.random() < 0.1:
        takes = takes * int(dice.integers(1, 1 << 33))
    unit = int(takes.max()) // 4 or 1
    free = dice.integers(-2 if dice.random() < 0.2 else 0, 7, (size, kinds)) * unit
    number = int(dice.integers(0, size * int(dice.choice([3, 6, ENUMERATED + 5])) + 1))
    costs = [int(dice.integers(1, 20)) if dice.random() < 0.97 else NEVER for _ in range(number)]
    tasks = [(int(dice.integers(classes)), int(dice.integers(size)), cost) for cost in costs]
    asks = [(group, int(dice.integers(classes)), int(dice.integers(1, 9))) for group in range(int(dice.integers(1, 3)))]
    found = problem(free.tolist(), tasks, asks, kinds=takes.tolist(), allowed=dice.random((classes, size)) < 0.9,
                    domain=dice.integers(-1, 2, (len(asks), size)))  # fmt: skip
    if dice.random() < 0.3:
        shapes = tuple(tuple(sorted({cls, int(dice.integers(classes))})) for cls in range(classes))
        found = replace(found, shapes=shapes)
    return found


@pytest.mark.parametrize("part", range(6))
def test_bounds_are_those_of_every_set_of_tasks(part):
    """On every node, for every number of members, and anywhere together."""
    seen = {"few": 0, "many": 0, "free": 0, "never": 0}
    for seed in SEEDS[part::6]:
        asked = random_cover(seed)
        for ask, found in zip(asked.asks, bounds_of(asked), strict=True):
            width = found.least.shape[1] - 1
            least = [[_least(asked, ask, node, m, int(found.most[node])) for m in range(width + 1)]
                     for node in range(asked.size)]  # fmt: skip
            assert found.least.tolist() == least, seed
            assert found.total.tolist() == _total(asked, ask, least), seed
            alone = CoverBounds(asked, ask)
            assert np.array_equal(alone.least, found.least)
            for node in range(asked.size):
                seen["many" if (asked.node == node).sum() > ENUMERATED else "few"] += width > 0
            seen["free"] += any(0 in of[1:] for of in least)
            seen["never"] += any(NEVER in of for of in least)
    assert min(seen.values()) > 5, seen


def _least(asked, ask, node, members, most):
    """What so many members on a node cost at least: by every set of its tasks, or resource by resource."""
    if members == 0:
        return 0
    shapes = asked.shapes[ask.cls]
    tasks = np.flatnonzero(asked.node == node)
    if most == 0:
        return NEVER
    if len(tasks) > ENUMERATED:
        return _by_resource(asked, shapes, node, tasks, members) if members <= most else NEVER
    alike = min((_of_shape(asked, shape, node, tasks, members) for shape in shapes), default=NEVER)
    if members > 1 and len(shapes) > 1:
        return min(alike, *(_of_shape(asked, shape, node, tasks, 1) for shape in shapes))
    return alike


def _of_shape(asked, shape, node, tasks, members):
    """The cheapest set of tasks without which so many fit; NEVER if there is none."""
    if not asked.allowed[shape, node]:
        return NEVER
    takes, costs = asked.takes()[tasks].tolist(), asked.cost[tasks].tolist()
    missing = [
        members * need - have
        for need, have in zip(asked.ask[shape].tolist(), asked.free[:, node].tolist(), strict=True)
    ]
    best = NEVER
    for chosen in product((0, 1), repeat=len(tasks)):
        price = sum(cost for cost, goes in zip(costs, chosen, strict=True) if goes)
        freed = [sum(of[row] for of, goes in zip(takes, chosen, strict=True) if goes) for row in range(len(missing))]
        if price < best and all(have >= short for have, short in zip(freed, missing, strict=True)):
            best = price
    return best


def _by_resource(asked, shapes, node, tasks, members):
    """The dearest of the resources, each covered by the cheapest parts of tasks."""
    bound = 0
    for row in range(len(asked.free)):
        missing = members * int(min(asked.ask[s][row] for s in shapes)) - int(asked.free[row, node])
        pieces = [(Fraction(int(asked.cost[t]), int(asked.takes()[t][row])), int(asked.takes()[t][row])) for t in tasks
                  if asked.takes()[t][row]]  # fmt: skip
        price = Fraction(0)
        for rate, amount in sorted(pieces):
            taken = min(amount, max(0, missing))
            price, missing = price + rate * taken, missing - taken
        bound = max(bound, NEVER if missing > 0 else ceil(price))
    return bound


def _total(asked, ask, least):
    """What so many members cost at least in one domain: one node after the other, any number on each."""
    domains = asked.domain[ask.group].tolist()
    best = [NEVER] * (ask.count + 1)
    for number in sorted(set(domains) - {-1}):
        total = [0, *[NEVER] * ask.count]
        for of in (row for row, domain in zip(least, domains, strict=True) if domain == number):
            total = [min(total[m - k] + of[k] for k in range(min(m, len(of) - 1) + 1)) for m in range(ask.count + 1)]
        best = [min(a, b, NEVER) for a, b in zip(best, total, strict=True)]
    return best
