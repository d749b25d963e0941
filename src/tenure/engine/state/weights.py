"""How amounts of several resources are compared as one number (spec: choosing victims)."""

from __future__ import annotations

from fractions import Fraction
from math import lcm

from tenure.engine.state.cost import UNITS
from tenure.engine.state.session import Session


def resource_weights(session: Session) -> tuple[int, ...]:
    """Give the weight of each resource of the queues, as whole numbers, so that sums are exact.

    A resource counts as in the disruption cost (per whole GPU, per core); one without a weight there by its part of
    the cluster's total. All are multiplied by one common number.
    """
    prices, totals = session.settings.disruption.cost, session.occupancy.total()
    found = [
        Fraction(repr(prices[name])) / UNITS.get(name, 1) if name in prices else Fraction(1, max(1, totals[row]))
        for row, name in enumerate(session.queues.resources)
    ]
    common = lcm(*(weight.denominator for weight in found)) if found else 1
    return tuple(int(weight * common) for weight in found)
