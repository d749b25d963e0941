"""Time-based fairness: past usage that fades, and the weights that follow from it (spec: fair share)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

MICROSECONDS = 1_000_000


@dataclass(frozen=True, slots=True)
class UsageHistory:
    """The past usage of queues, and how much that counts.

    ``usage[q][r]`` are decayed resource-seconds of queue ``q``, inner queues included, all of one resource in one
    unit; ``strength`` is the k of the formula, 0 or more.
    """

    usage: Sequence[Sequence[float]]
    strength: float


def decay(usage: float, elapsed: int, half_life: int) -> float:
    """Give what is left of past usage when ``elapsed`` µs have gone by: half of it per ``half_life`` µs."""
    _check_half_life(half_life)
    return usage * math.exp2(-max(0, elapsed) / half_life)


def accrue(usage: float, allocated: int, elapsed: int, half_life: int) -> float:
    """Give the decayed usage after ``elapsed`` µs in which ``allocated`` was held all the time.

    The exact integral, so that it does not matter how often it is called: one step of two hours and two steps of
    one hour give the same. The result is in units of ``allocated`` times seconds.
    """
    lasting = half_life / math.log(2) / MICROSECONDS
    gained = -math.expm1(-math.log(2) * max(0, elapsed) / half_life) if half_life > 0 else 0.0
    return decay(usage, elapsed, half_life) + allocated * lasting * gained


def history_weight(weight: float, usage: float, strength: float) -> float:
    """Give max(0, w + k·(w - u)) for a normalised weight, a normalised usage and the strength k."""
    return max(0.0, weight + strength * (weight - usage))


def reweigh(weights: Sequence[int], usage: Sequence[int], strength: Fraction) -> list[int]:
    """Give whole numbers in the proportion of max(0, w + k·(w - u)), exactly.

    ``weights`` and ``usage`` are those of the queues that compete with each other, and are normalised among them:
    only so do weights that history has served stand in the proportion that was configured. Without any usage the
    weights stay as they are.
    """
    used = sum(usage)
    if not used:
        return list(weights)
    whole = sum(weights)
    kept = (strength.numerator + strength.denominator) * used
    lost = strength.numerator * whole
    return [max(0, kept * weight - lost * past) for weight, past in zip(weights, usage, strict=True)]


def whole_usage(usage: Sequence[float]) -> list[int]:
    """Give whole numbers in exactly the proportion of finite amounts of usage; what is below 0 counts as 0."""
    ratios = [max(0.0, float(amount)).as_integer_ratio() for amount in usage]
    common = max((denominator for _, denominator in ratios), default=1)
    return [numerator * (common // denominator) for numerator, denominator in ratios]


def _check_half_life(half_life: int) -> None:
    """Refuse a half-life that is none."""
    if half_life <= 0:
        raise ValueError(f"the half-life must be more than 0 µs, not {half_life}")
