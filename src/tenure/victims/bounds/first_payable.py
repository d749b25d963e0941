"""When the first set of victims can be paid for, at the earliest: before that it need not be looked for again.

A contender's waiting is worth more from second to second, and some victims become cheaper at one instant: when they
save their work, or when it is forgotten how often they were evicted. What such a victim costs from then on is taken to
be nothing.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable

from tenure.engine.room.nodes import Ints
from tenure.victims.bounds.least_price import PriceBound


def first_payable(bound: PriceBound, cheaper_at: Ints, pays_at: Callable[[float], int], latest: int) -> int:
    """Give a time (µs since the epoch) before which no set can be paid for.

    Parameters
    ----------
    bound
        The least that sets cost now.
    cheaper_at
        ``int64[entries]``: when each piece of the bound becomes cheaper, in µs since the epoch; after all times that
        count if it does not.
    pays_at
        Gives when a contender has waited enough for a price.
    latest
        When it has waited enough for what is the least now.
    """
    times = bound.falls(cheaper_at, latest)

    def least_at(number: int, time: int) -> float:
        """Give what a set costs at least once all is cheaper that becomes so by then, where ``time`` is to pay it."""
        return bound.without(cheaper_at <= times[number]).least_if_paid(lambda price: pays_at(price) > time)

    def is_payable(number: int) -> bool:
        return pays_at(least_at(number, times[number])) <= times[number]

    first = bisect_left(range(len(times)), x=True, key=is_payable)
    end = times[first] if first < len(times) else latest
    if not first:
        return end
    return min(end, max(times[first - 1], pays_at(least_at(first - 1, end))))
