"""Durations (those of Go, plus ``d`` and ``w``) and times (RFC 3339), as integer microseconds."""

from __future__ import annotations

import re
from datetime import date
from functools import lru_cache

from tenure.model.values.problems import shorten

DAY = 86_400_000_000
"""A day in µs."""

MAX_DURATION = 2**63 - 1
"""The longest duration in µs: durations are kept in 64 bits."""

_NANOS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,  # U+00B5, micro sign
    "μs": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
    "d": 86_400_000_000_000,
    "w": 604_800_000_000_000,
}
_PART = re.compile(r"(?P<whole>[0-9]*)(?:\.(?P<part>[0-9]*))?(?P<unit>[a-zµμ]+)")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)")
_MAX_LENGTH = 64
_EXAMPLES = "such as 30s, 1h30m or 2d"
_STEPS = (("d", DAY), ("h", 3_600_000_000), ("m", 60_000_000))
_SECOND = 1_000_000
_MILLISECOND = 1_000

_TIME = re.compile(
    r"(?P<year>[0-9]{4})-(?P<month>[0-9]{2})-(?P<day>[0-9]{2})[Tt ]"
    r"(?P<hour>[0-9]{2}):(?P<minute>[0-9]{2}):(?P<second>[0-9]{2})(?:\.(?P<fraction>[0-9]{1,12}))?"
    r"(?:[Zz]|(?P<sign>[+-])(?P<offset_hour>[0-9]{2}):(?P<offset_minute>[0-9]{2}))"
)
_EPOCH_DAY = date(1970, 1, 1).toordinal()
_FIRST_TIME = (1 - _EPOCH_DAY) * DAY
LAST_TIME = (date.max.toordinal() + 1 - _EPOCH_DAY) * DAY - 1


def parse_duration(text: str | int, *, signed: bool = False) -> int:
    """Parse a duration into microseconds; what is finer than a microsecond is rounded up.

    Parameters
    ----------
    text
        The duration: ``30s``, ``1h30m``, ``1.5h``, ``500ms``, ``2d``, ``0``.
    signed
        Whether it may be negative, where that has a meaning ("never").

    Raises
    ------
    ValueError
        It has no unit, is no duration, is negative, or does not fit 64 bits. The text says what would be right.

    """
    return _parse_duration(str(text), signed)


@lru_cache(maxsize=16_384)
def _parse_duration(text: str, signed: bool) -> int:
    if len(text) > _MAX_LENGTH:
        raise _no_duration(text)
    if _NUMBER.fullmatch(text):
        if not text.strip("+-0."):
            return 0
        raise ValueError(f"{text} has no unit; write {text}s, {text}m or {text}h, whichever is meant")
    negative = text.startswith("-")
    amount = _sum_parts(text, text[1:] if text[:1] in ("-", "+") else text)
    if negative and amount and not signed:
        raise ValueError(f"{text} is negative; a duration is 0 or more")
    if amount > MAX_DURATION:
        raise ValueError(f"{shorten(text)} is too long; the longest duration is about 292,000 years")
    return -amount if negative else amount


def _sum_parts(text: str, unsigned: str) -> int:
    """Add the parts of ``1h30m`` up, exactly, and round up to whole microseconds."""
    scale: int = 10**_MAX_LENGTH  # no part of the text has more digits after its point than the text is long
    total = 0
    position = 0
    while position < len(unsigned) or not position:
        match = _PART.match(unsigned, position)
        if match is None or not (match["whole"] or match["part"]) or match["unit"] not in _NANOS:
            raise _no_duration(text)
        part = match["part"] or ""
        total += int(match["whole"] + part) * _NANOS[match["unit"]] * (scale // 10 ** len(part))
        position = match.end()
    return -(-total // (scale * 1000))


def _no_duration(text: str) -> ValueError:
    return ValueError(f"{shorten(text)} is not a duration; write one {_EXAMPLES}")


def format_duration(micros: int) -> str:
    """Write a duration so that `parse_duration` gives it back: ``1d``, ``1h30m``, ``1.5s``, ``250us``."""
    if micros < 0:
        return "-" + format_duration(-micros)
    if not micros:
        return "0s"
    text = ""
    for unit, size in _STEPS:
        count, micros = divmod(micros, size)
        text += f"{count}{unit}" if count else ""
    return text + _format_seconds(micros) if micros else text


def _format_seconds(micros: int) -> str:
    for unit, size, digits in (("s", _SECOND, 6), ("ms", _MILLISECOND, 3)):
        if micros >= size:
            count, rest = divmod(micros, size)
            return f"{count}.{rest:0{digits}}".rstrip("0") + unit if rest else f"{count}{unit}"
    return f"{micros}us"


@lru_cache(maxsize=16_384)
def parse_time(text: str) -> int:
    """Parse an RFC 3339 time (``2026-11-20T10:00:00Z``) into microseconds since the epoch, cutting off what is finer.

    Raises
    ------
    ValueError
        It is no such time. The text says what would be right.

    """
    match = _TIME.fullmatch(text)
    if match is None:
        raise ValueError(f"{shorten(text)} is not a time; write one such as 2026-11-20T10:00:00Z (RFC 3339)")
    try:
        days = date(int(match["year"]), int(match["month"]), int(match["day"])).toordinal() - _EPOCH_DAY
    except ValueError as error:
        raise ValueError(f"{text} is not a time: {error}") from None
    seconds = _clock_seconds(text, match["hour"], match["minute"], match["second"])
    if match["sign"]:
        offset = _clock_seconds(text, match["offset_hour"], match["offset_minute"], "0")
        seconds += offset if match["sign"] == "-" else -offset
    micros = days * DAY + seconds * _SECOND + int((match["fraction"] or "")[:6].ljust(6, "0"))
    if not _FIRST_TIME <= micros <= LAST_TIME:
        raise ValueError(f"{text} is not a time between the years 1 and 9999")
    return micros


def _clock_seconds(text: str, hour: str, minute: str, second: str) -> int:
    hours, minutes, seconds = int(hour), int(minute), int(second)
    if hours > 23 or minutes > 59 or seconds > 59:  # noqa: PLR2004  the clock's own limits
        raise ValueError(f"{text} is not a time: hours go up to 23, minutes and seconds up to 59")
    return (hours * 60 + minutes) * 60 + seconds


def format_time(micros: int) -> str:
    """Write a time as ``2026-11-20T10:00:00Z``, with a fraction only where there is one."""
    days, rest = divmod(micros, DAY)
    seconds, fraction = divmod(rest, _SECOND)
    day = date.fromordinal(days + _EPOCH_DAY).isoformat()
    clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"{day}T{clock}.{fraction:06}".rstrip("0") + "Z" if fraction else f"{day}T{clock}Z"
