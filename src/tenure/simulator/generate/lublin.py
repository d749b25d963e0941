"""The workload model of Lublin and Feitelson.

U. Lublin and D. G. Feitelson, "The workload on parallel supercomputers: modeling the characteristics of rigid
jobs", Journal of Parallel and Distributed Computing 63(11), 2003: job sizes, run times that depend on them, and
arrivals with a daily cycle. The parameters are those published for batch jobs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

DAY_S = 86_400
SLOTS = 48
"""The daily cycle is in half hours."""

SLOT_S = DAY_S // SLOTS
FIRST_SLOT = 10
"""The day of the model begins at 5:00, when the fewest jobs arrive."""

MAX_LOG_RUNTIME = 12.0
"""Longer run times, above e^12 s (45 hours), are drawn again."""

MAX_LOG_GAP = 13.0
"""Longer gaps between arrivals, above e^13 s (5 days), are drawn again."""


@dataclass(frozen=True, slots=True)
class Parameters:
    """Parameters of the model; the defaults are the published ones of batch jobs.

    Sizes: probability of serial jobs and of powers of two; the logarithm (base 2) of a parallel job's size is
    uniform in [low, mid] with probability ``low_part``, else uniform in [mid, log2 of the machine], where mid is
    that logarithm less ``mid_offset``. Run times: the natural logarithm is gamma (shape 1, scale 1) with
    probability slope * size + intercept, else gamma (shape 2, scale 2). Arrivals: the logarithm of the gaps in
    the rush hours is gamma distributed, ``all_day`` adapts its shape to the whole day; the jobs of a day are spread
    over its slots by another gamma distribution.
    """

    serial: float = 0.2927
    power_of_two: float = 0.6686
    low: float = 1.2
    mid_offset: float = 2.0
    low_part: float = 0.875
    run_shape_1: float = 6.57
    run_scale_1: float = 0.823
    run_shape_2: float = 639.1
    run_scale_2: float = 0.0156
    slope: float = -0.003
    intercept: float = 0.6986
    gap_shape: float = 6.0415
    gap_scale: float = 0.8531
    all_day: float = 1.0519
    slot_shape: float = 6.1271
    slot_scale: float = 5.2740


BATCH = Parameters()


def draw_sizes(generator: np.random.Generator, count: int, machine: int, model: Parameters = BATCH) -> Ints:
    """Draw job sizes between 1 and ``machine``."""
    high = math.log2(machine)
    low = min(model.low, high)
    mid = max(low, high - model.mid_offset)
    kind = generator.random(count)
    lower = generator.random(count) <= model.low_part
    place = generator.random(count)
    logs = np.where(lower, low + place * (mid - low), mid + place * (high - mid))
    rounded = np.minimum(np.rint(logs), math.floor(high))
    logs = np.where(kind <= model.serial + model.power_of_two, rounded, logs)
    sizes = np.minimum(np.rint(np.exp2(logs)).astype(np.int64), machine)
    return np.where(kind <= model.serial, 1, sizes)


def draw_runtimes(generator: np.random.Generator, sizes: Ints, model: Parameters = BATCH) -> Floats:
    """Draw run times in seconds, longer ones for larger jobs."""
    first_probability = np.clip(model.slope * sizes + model.intercept, 0.0, 1.0)
    logs = np.full(len(sizes), np.inf)
    missing = np.arange(len(sizes))
    while len(missing):
        first = generator.random(len(missing)) <= first_probability[missing]
        short = generator.gamma(model.run_shape_1, model.run_scale_1, len(missing))
        long = generator.gamma(model.run_shape_2, model.run_scale_2, len(missing))
        logs[missing] = np.where(first, short, long)
        missing = missing[logs[missing] > MAX_LOG_RUNTIME]
    runtimes: Floats = np.exp(logs)
    return runtimes


def draw_gaps(generator: np.random.Generator, count: int, model: Parameters = BATCH) -> Floats:
    """Draw gaps between arrivals in seconds of an average hour: the daily cycle comes with `with_daily_cycle`."""
    logs = np.full(count, np.inf)
    missing = np.arange(count)
    while len(missing):
        logs[missing] = generator.gamma(model.gap_shape * model.all_day, model.gap_scale, len(missing))
        missing = missing[logs[missing] > MAX_LOG_GAP]
    gaps: Floats = np.exp(logs)
    return gaps


def slot_weights(model: Parameters = BATCH) -> Floats:
    """How busy each half hour of the day is, from midnight on; the mean is 1."""
    numbers = np.arange(FIRST_SLOT + 1, FIRST_SLOT + 1 + SLOTS)
    mass = _gamma_mass(numbers - 0.5, model.slot_shape, model.slot_scale)
    weights = np.empty(SLOTS)
    weights[(numbers - 1) % SLOTS] = mass
    weights /= weights.mean()
    return weights


def _gamma_mass(low: npt.NDArray[np.floating], shape: float, scale: float) -> Floats:
    """Probability that a gamma distribution gives to each interval of length 1, by the midpoint rule."""
    steps = 256
    points = low[:, None] + (np.arange(steps) + 0.5) / steps
    logs = (shape - 1) * np.log(points) - points / scale - math.lgamma(shape) - shape * math.log(scale)
    mass: Floats = np.exp(logs).mean(axis=1)
    return mass


def with_daily_cycle(times: Floats, model: Parameters = BATCH) -> Floats:
    """Move arrivals from a day of equally busy hours to the model's day.

    Each slot takes as much of the even time as it is busier than the average; times are seconds since a midnight.
    """
    ends = np.concatenate((np.zeros(1), np.cumsum(slot_weights(model)))) * SLOT_S
    days, rest = np.divmod(times, DAY_S)
    moved: Floats = days * DAY_S + np.interp(rest, ends, np.arange(SLOTS + 1) * SLOT_S)
    return moved
