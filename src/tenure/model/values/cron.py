"""Cron lines of five fields, and the windows of time that they open.

A window begins when the line says so on the clock of its time zone, and lasts for a real duration. A time that the
clock skips in spring counts as if it had not been put forward yet; one that comes twice in autumn begins a window the
first time.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from itertools import pairwise
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from tenure.model.values.duration import DAY

SECOND = 1_000_000
MINUTE = 60 * SECOND
MOST_LINKS = 4000
"""Windows that follow each other without a break are joined up to this number; a day's count as two at most."""

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELDS: tuple[tuple[str, int, int, tuple[str, ...]], ...] = (
    ("minute", 0, 59, ()),
    ("hour", 0, 23, ()),
    ("day of the month", 1, 31, ()),
    ("month", 1, 12, _MONTHS),
    ("day of the week", 0, 7, _DAYS),
)
_PART = re.compile(r"(?:(?P<all>\*)|(?P<first>\w+)(?:-(?P<last>\w+))?)(?:/(?P<step>[0-9]{1,4}))?", re.ASCII)
_SUNDAY = 7
_YEAR = 366 * DAY
_LEAP_CYCLE = 8 * 366
"""Days within which every day that exists at all comes round, leap days included."""


@dataclass(frozen=True, slots=True)
class Cron:
    """A cron line: the minutes, hours, days and months at which a window begins, each in order.

    ``any_day`` and ``any_weekday``: that field is ``*``. If neither is, one of the two is enough, as in cron.
    """

    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    any_day: bool
    any_weekday: bool

    def on(self, day: date) -> bool:
        """Whether windows begin on a day."""
        if day.month not in self.months:
            return False
        in_month = day.day in self.days
        in_week = day.isoweekday() % _SUNDAY in self.weekdays
        if self.any_day or self.any_weekday:
            return in_month and in_week
        return in_month or in_week


@lru_cache(maxsize=256)
def parse_cron(line: str) -> Cron:
    """Parse minute, hour, day of the month, month and day of the week.

    Raises
    ------
    ValueError
        It is no such line, or names a day that never comes. The text says what would be right.
    """
    parts = line.split()
    if len(parts) != len(_FIELDS):
        raise ValueError(
            f"{line!r} has {len(parts)} fields, and a cron line has 5: minute, hour, day of the month, month, "
            "day of the week, such as 0 6 * * 1-5"
        )
    values = [_field(text, *field) for text, field in zip(parts, _FIELDS, strict=True)]
    minutes, hours, days, months, weekdays = values
    cron = Cron(
        tuple(sorted(minutes)), tuple(sorted(hours)), frozenset(days), frozenset(months),
        frozenset(d % _SUNDAY for d in weekdays), parts[2].startswith("*"), parts[4].startswith("*"),
    )  # fmt: skip
    first = date(2000, 1, 1)
    if not any(cron.on(first + timedelta(days=i)) for i in range(_LEAP_CYCLE)):
        raise ValueError(f"{line!r} names a day that never comes")
    return cron


def _field(text: str, name: str, low: int, high: int, words: tuple[str, ...]) -> set[int]:
    found: set[int] = set()
    for part in text.split(","):
        match = _PART.fullmatch(part)
        if match is None:
            raise ValueError(
                f"{part!r} is no {name} of a cron line; write *, numbers from {low} to {high}, 1-5, */2 or 1,3"
            )
        step = int(match["step"] or 1)
        first = low if match["all"] else _number(match["first"], name, low, high, words)
        last = first if not (match["all"] or match["step"]) else high
        if match["last"] is not None:
            last = _number(match["last"], name, low, high, words)
        if not step or last < first:
            raise ValueError(f"{part!r} names no {name}; write the smaller number first, and a step of 1 or more")
        found.update(range(first, last + 1, step))
    return found


def _number(text: str, name: str, low: int, high: int, words: tuple[str, ...]) -> int:
    if text.lower() in words:
        return words.index(text.lower()) + (low if words is _MONTHS else 0)
    if not text.isdigit() or not low <= int(text) <= high:
        allowed = f"numbers from {low} to {high}" + (f" or {words[0]} to {words[-1]}" if words else "")
        raise ValueError(f"{text!r} is no {name} of a cron line; {allowed} are")
    return int(text)


@lru_cache(maxsize=256)
def parse_zone(name: str) -> ZoneInfo:
    """Find a time zone by its name.

    Raises
    ------
    ValueError
        There is none of that name.
    """
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"{name!r} is no time zone; write one such as UTC or Europe/Berlin") from None


def window_at(line: str, duration: int, zone: str, now: int) -> tuple[int, int | None] | None:
    """Give begin and end of the window that is open at ``now``; None if none is.

    Windows that overlap or touch are one for the end, which is None where they leave no gap for a whole
    year, and so never; the begin is that of the latest. All in µs since the epoch.
    """
    start = _latest(line, zone, now, now - duration)
    return None if start is None else (start, _end(line, duration, zone, start))


@lru_cache(maxsize=256)
def _end(line: str, duration: int, zone: str, start: int) -> int | None:
    """Give when the windows end that follow a begin without a break; None if not within a year."""
    area, last = parse_zone(zone), _last_of_days(line, duration)
    end = start + duration
    for _ in range(MOST_LINKS):
        later = _latest(line, zone, end, end - duration)
        if later is None or later + duration <= end:
            return end
        day = _local(later, area).date()
        if last is not None and not _changes(day, area):
            later = max(later, _midnight(day, area) + last)
        end = later + duration
        if end - start > _YEAR:
            break
    return None


def _last_of_days(line: str, duration: int) -> int | None:
    """Give the last begin of a day, in µs since midnight, if its windows leave no gap between each other; else None."""
    cron = parse_cron(line)
    begins = [(60 * hour + minute) * MINUTE for hour in cron.hours for minute in cron.minutes]
    return begins[-1] if all(b - a <= duration for a, b in pairwise(begins)) else None


def _latest(line: str, zone: str, until: int, after: int) -> int | None:
    """Give the latest begin in (after, until], in µs since the epoch."""
    cron, area = parse_cron(line), parse_zone(zone)
    day = _local(until, area).date() + timedelta(days=1)  # a clock that was put forward may be a day ahead
    while _midnight(day, area) + 2 * DAY > after:
        if cron.on(day):
            best = _latest_of(cron, day, area, until)
            if best is not None and best > after:
                return best
        if day == date.min:
            break
        day -= timedelta(days=1)
    return None


def _latest_of(cron: Cron, day: date, zone: ZoneInfo, until: int) -> int | None:
    """Give the latest begin of a day that is not after ``until``."""
    midnight = _midnight(day, zone)
    if _changes(day, zone):  # then begins need not come in the order of their local times
        begins = _begins_of(cron, day, zone)
        before = bisect_right(begins, until)
        return begins[before - 1] if before else None
    last = (until - midnight) // MINUTE
    for hour in reversed(cron.hours):
        minute = max((m for m in cron.minutes if 60 * hour + m <= last), default=None)
        if minute is not None:
            return midnight + (60 * hour + minute) * MINUTE
    return None


@lru_cache(maxsize=64)
def _begins_of(cron: Cron, day: date, zone: ZoneInfo) -> list[int]:
    """Give the begins of a day in order."""
    return sorted(_instant(day, hour, minute, zone) for hour in cron.hours for minute in cron.minutes)


@lru_cache(maxsize=4096)
def _changes(day: date, zone: ZoneInfo) -> bool:
    """Whether clocks are put forward or back on a day."""
    return _instant(day, 23, 59, zone) - _midnight(day, zone) != DAY - MINUTE


def _local(instant: int, zone: ZoneInfo) -> datetime:
    return datetime.fromtimestamp(instant // SECOND, UTC).astimezone(zone)


def _instant(day: date, hour: int, minute: int, zone: ZoneInfo) -> int:
    local = datetime(day.year, day.month, day.day, hour, minute, tzinfo=zone)
    return int(local.timestamp()) * SECOND


def _midnight(day: date, zone: ZoneInfo) -> int:
    return _instant(day, 0, 0, zone)
