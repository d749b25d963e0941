"""Dates and lengths of time as logs of clusters write them."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from tenure.simulator.traces.numbers import micros
from tenure.simulator.traces.records import SECOND

DATE = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d{1,6})?(?:Z|[+-]\d\d:?\d\d)?")
OFFSET = re.compile(r"(?:Z|[+-]\d\d:?\d\d)$")
LENGTH = re.compile(
    r"(?:(?:(?P<days>\d{1,7})-)?(?P<hours>\d{1,7}):)?(?P<minutes>\d{1,7}):(?P<seconds>\d{1,2}(?:\.\d{1,6})?)"
)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MISSING = frozenset({"none", "unknown", "null", "nan", "n/a"})
"""Words, in lower case, that logs write where there is no value."""


def date_micros(text: str) -> int:
    """Read a date with a time of day, or seconds since 1970, as µs since 1970; without an offset as if it were UTC.

    Raises
    ------
    ValueError
        It is neither. The message says what would be.
    """
    if text.isdecimal():
        return micros(text)
    if DATE.fullmatch(text) is None:
        raise ValueError(f"{text!r} is no date; it is written as 2024-01-31 08:00:00 or 2024-01-31T08:00:00")
    try:
        read = datetime.fromisoformat(text)
    except ValueError as error:
        raise ValueError(f"{text!r} is no date: {error}") from None
    since = (read if read.tzinfo is not None else read.replace(tzinfo=UTC)) - EPOCH
    return (since.days * 86_400 + since.seconds) * SECOND + since.microseconds


class DateReader:
    """Reads the dates of one file, and notices where some are written with an offset from UTC and others without."""

    def __init__(self) -> None:
        self.with_offset = 0
        self.without = 0

    def micros(self, text: str) -> int:
        """Read a date as `date_micros` does.

        Raises
        ------
        ValueError
            It is none.
        """
        at = date_micros(text)
        if text.isdecimal() or OFFSET.search(text) is not None:  # seconds since 1970 are of UTC
            self.with_offset += 1
        else:
            self.without += 1
        return at

    def notes(self) -> tuple[str, ...]:
        """Say that the dates do not belong together, where that is so."""
        if not (self.with_offset and self.without):
            return ()
        told = f"{self.without:,} of {self.with_offset + self.without:,} dates have no offset from UTC"
        return (f"{told} and are read as if they were UTC, while the others have one; write all of them alike",)


def length_micros(text: str) -> int:
    """Read ``[days-][hours:]minutes:seconds`` as µs.

    Raises
    ------
    ValueError
        It is no length of time. The message says what would be.
    """
    found = LENGTH.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no length of time; it is written as 1-02:03:04, 02:03:04 or 03:04")
    whole = int(found["days"] or 0) * 86_400 + int(found["hours"] or 0) * 3600 + int(found["minutes"]) * 60
    return whole * SECOND + micros(found["seconds"])
