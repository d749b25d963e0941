"""Numbers as they stand in traces: strict about what is a number and what is a plausible one."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation

from tenure.model.values.problems import shorten
from tenure.simulator.traces.records import SECOND

MAX_SECONDS = 10**11
"""More than 3,000 years: beyond it a time is a typing error, and µs would not fit 64 bits with room to add."""

MAX_AMOUNT = 10**15
"""Largest amount of anything: sums of thousands of them still fit 64 bits."""


LONGEST_SHOWN = 50
"""Digits of a number that are shown."""

MAX_DIGITS = 30
"""Decimal exponent beyond which a number is not even written out to be compared."""


def bare(text: str) -> str:
    """Write a number as it stands in a trace, for a message; cut where it is long."""
    return text if len(text) <= LONGEST_SHOWN else text[:LONGEST_SHOWN] + "…"


def micros(text: str) -> int:
    """Read seconds, whole or with decimals, as µs.

    Raises
    ------
    ValueError
        It is no finite number, or none that is plausible. The message says so.
    """
    seconds = _integer(text)
    if seconds is not None:
        if not -MAX_SECONDS <= seconds <= MAX_SECONDS:
            raise ValueError(f"{bare(text)} s is out of range: times are within {MAX_SECONDS:.0e} s")
        return seconds * SECOND
    decimal = _decimal(text)
    if abs(decimal) > MAX_SECONDS:
        raise ValueError(f"{bare(text)} s is out of range: times are within {MAX_SECONDS:.0e} s")
    return round(decimal * SECOND)


def _integer(text: str) -> int | None:
    if "_" in text:
        raise ValueError(f"{shorten(text)} is not a number")
    try:
        return int(text)
    except ValueError:
        return None


def seconds_text(value: int) -> str:
    """Write µs as seconds, exactly: whole where they are whole, else with as many decimals as it takes."""
    whole_part, rest = divmod(abs(value), SECOND)
    sign = "-" if value < 0 else ""
    return f"{sign}{whole_part}.{rest:06d}".rstrip("0") if rest else f"{sign}{whole_part}"


def _decimal(text: str) -> Decimal:
    try:
        value = Decimal(text)
    except InvalidOperation:
        raise ValueError(f"{shorten(text)} is not a number") from None
    if not value.is_finite():
        raise ValueError(f"{shorten(text)} is not a finite number")
    return value


def whole(text: str, low: int = -1, high: int = MAX_AMOUNT) -> int:
    """Read a whole number between ``low`` and ``high``.

    Raises
    ------
    ValueError
        It is not one. The message says what would be.
    """
    value = _integer(text)
    if value is None:
        decimal = _decimal(text)
        if decimal.adjusted() > MAX_DIGITS:
            raise ValueError(f"{bare(text)} is not between {low} and {high}")
        if decimal != decimal.to_integral_value():
            raise ValueError(f"{bare(text)} is not a whole number")
        value = int(decimal)
    if not low <= value <= high:
        raise ValueError(f"{bare(text)} is not between {low} and {high}")
    return value


def scaled(text: str, factor: int, high: int = MAX_AMOUNT) -> int:
    """Read a number of at least 0, whole or with decimals, times a factor, rounded to a whole number.

    Raises
    ------
    ValueError
        It is no number, is negative, or more than ``high`` after scaling.
    """
    value = _decimal(text)
    if value < 0 or value.adjusted() > MAX_DIGITS or value * factor > high:
        raise ValueError(f"{text} is not between 0 and {high // factor}")
    return round(value * factor)
