"""Numbers as they stand in traces: strict about what is a number and what is a plausible one."""

from __future__ import annotations

import math

from tenure.simulator.traces.records import SECOND

MAX_SECONDS = 10**11
"""More than 3,000 years: beyond it a time is a typing error, and µs would not fit 64 bits with room to add."""

MAX_AMOUNT = 10**15
"""Largest amount of anything: sums of thousands of them still fit 64 bits."""


def micros(text: str) -> int:
    """Read seconds, whole or with decimals, as µs.

    Raises
    ------
    ValueError
        It is no finite number, or none that is plausible. The message says so.
    """
    try:
        seconds: float = int(text)
    except ValueError:
        seconds = _decimal(text)
    if "_" in text:
        raise ValueError(f"{text!r} is not a number")
    if abs(seconds) > MAX_SECONDS:
        raise ValueError(f"{text} s is more than {MAX_SECONDS:.0e} s")
    return round(seconds * SECOND)


def _decimal(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a number") from None
    if not math.isfinite(value):
        raise ValueError(f"{text!r} is not a finite number")
    return value


def whole(text: str, low: int = -1, high: int = MAX_AMOUNT) -> int:
    """Read a whole number between ``low`` and ``high``.

    Raises
    ------
    ValueError
        It is not one. The message says what would be.
    """
    try:
        value = int(text)
    except ValueError:
        decimal = _decimal(text)
        if not decimal.is_integer():
            raise ValueError(f"{text} is not a whole number") from None
        value = int(decimal)
    if "_" in text:
        raise ValueError(f"{text!r} is not a number")
    if not low <= value <= high:
        raise ValueError(f"{text} is not between {low} and {high}")
    return value
