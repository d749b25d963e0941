"""Where the ticks of an axis go, and where a value lies on it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tenure.report.words import duration

MINUTE, HOUR, DAY = 60, 3_600, 86_400

_TIME_STEPS = (
    1, 2, 5, 10, 15, 30,
    MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 15 * MINUTE, 30 * MINUTE,
    HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR,
    DAY, 2 * DAY, 5 * DAY, 10 * DAY, 20 * DAY, 50 * DAY, 100 * DAY,
)  # fmt: skip

_LOG_DURATIONS = (1, 10, MINUTE, 10 * MINUTE, HOUR, DAY, 10 * DAY, 100 * DAY, 1000 * DAY, 10_000 * DAY)


@dataclass(frozen=True, slots=True)
class Tick:
    """A mark of an axis: where it is, 0 to 1, and what it says. One that is ``minor`` goes where room is scarce."""

    at: float
    label: str
    minor: bool = False


def nice_step(span: float, ticks: int) -> float:
    """Give the step of 1, 2 or 5 times a power of ten that makes at most about ``ticks`` steps of a span."""
    rough = span / ticks
    power = 10.0 ** math.floor(math.log10(rough))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * 0.999)


def top_of(value: float, ticks: int = 4) -> float:
    """Give the end of an axis that begins at 0 and holds a value."""
    if value <= 0:
        return 1.0
    step = nice_step(value, ticks)
    return math.ceil(value / step - 1e-9) * step


def time_ticks(begin: float, end: float, count: int = 8) -> list[Tick]:
    """Give ticks between two times, in seconds, at whole seconds, minutes, hours or days. Every second one is minor."""
    span = end - begin
    if span <= 0:
        return [Tick(0.0, duration(begin))]
    step = next((step for step in _TIME_STEPS if span / step <= count), 0.0) or nice_step(span / DAY, count) * DAY
    first = math.ceil(begin / step - 1e-9)
    last = math.floor(end / step + 1e-9)
    return [Tick((k * step - begin) / span, _time_label(k * step), minor=bool(k % 2)) for k in range(first, last + 1)]


def _time_label(seconds: float) -> str:
    return "0" if not seconds else duration(seconds)


@dataclass(frozen=True, slots=True)
class LogScale:
    """A logarithmic axis from ``low`` to ``high``; what is less lies at its beginning."""

    low: float
    high: float

    def at(self, value: float) -> float:
        """Give where a value lies, 0 to 1."""
        if value <= self.low:
            return 0.0
        return min(1.0, math.log(value / self.low) / math.log(self.high / self.low))


def duration_scale(longest: float) -> tuple[LogScale, list[Tick]]:
    """Make a logarithmic axis for durations in seconds, from 1 s up."""
    high = next((step for step in _LOG_DURATIONS[2:] if step >= longest), _LOG_DURATIONS[-1])
    scale = LogScale(1.0, max(float(high), longest))
    steps: Sequence[int] = [step for step in _LOG_DURATIONS if step <= scale.high]
    return scale, [
        Tick(scale.at(step), "≤ 1 s" if step == 1 else duration(step), minor=bool(index % 2))
        for index, step in enumerate(steps)
    ]
