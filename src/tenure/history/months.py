"""Months (UTC) as numbers such as 202611: records are kept month by month."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Final, TypeVar

from tenure.history.record import Draft, DraftRow

Row = TypeVar("Row", Draft, DraftRow)
"""A draft, or its fields as a plain tuple."""

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def month_of(at: int) -> int:
    """Give the month that a time (µs since the epoch) falls in."""
    day = EPOCH + timedelta(microseconds=at)
    return day.year * 100 + day.month


def month_start(month: int) -> int:
    """Give when a month begins, in µs since the epoch."""
    return (datetime(month // 100, month % 100, 1, tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)


def next_month(month: int) -> int:
    """Give the month after one."""
    return month + 1 if month % 100 < 12 else month + 89  # noqa: PLR2004  December


def by_month(drafts: Iterable[Row]) -> Iterator[tuple[int, list[Row]]]:
    """Give drafts month by month as they stand; where they are in the order of time, each month once."""
    since, until = 0, -1
    found: list[Row] = []
    for draft in drafts:
        if not since <= draft[0] < until:
            if found:
                yield month_of(since), found
            month = month_of(draft[0])
            since, until = month_start(month), month_end(month)
            found = []
        found.append(draft)
    if found:
        yield month_of(since), found


def month_end(month: int) -> int:
    """Give when a month is over, in µs since the epoch; the last that can be written never is."""
    following = next_month(month)
    return month_start(following) if following < 1_000_000 else 1 << 62  # noqa: PLR2004  the year 10000
