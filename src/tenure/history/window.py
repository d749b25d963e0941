"""Which window of time is meant: ``30d`` before its end, or a time."""

from __future__ import annotations

from tenure.model.values.duration import parse_duration, parse_time


def instant(text: str, before: int) -> int:
    """Read a time (RFC 3339), or a duration before ``before`` (both µs since the epoch).

    Raises
    ------
    ValueError
        It is neither; the message says what would be right.
    """
    try:
        return before - parse_duration(text)
    except ValueError:
        pass
    try:
        return parse_time(text)
    except ValueError:
        raise ValueError(f"{text!r} is no time; write such as 30d, 12h or 2026-11-20T10:00:00Z") from None
