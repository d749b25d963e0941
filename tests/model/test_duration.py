"""Durations and times, against references that share no code with the parsers."""

from datetime import UTC, datetime, timedelta, timezone
from fractions import Fraction
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.model.values.duration import MAX_DURATION, format_duration, format_time, parse_duration, parse_time

UNITS = {
    "ns": Fraction(1, 1000),
    "us": Fraction(1),
    "µs": Fraction(1),
    "μs": Fraction(1),
    "ms": Fraction(10**3),
    "s": Fraction(10**6),
    "m": Fraction(60 * 10**6),
    "h": Fraction(3600 * 10**6),
    "d": Fraction(86_400 * 10**6),
    "w": Fraction(604_800 * 10**6),
}


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        ("30s", 30_000_000),
        ("1h30m", 5_400_000_000),
        ("1.5h", 5_400_000_000),
        ("500ms", 500_000),
        ("2d", 172_800_000_000),
        ("1w", 604_800_000_000),
        ("1us", 1),
        ("1ns", 1),
        ("1001ns", 2),
        ("+5s", 5_000_000),
        ("0", 0),
        (0, 0),
        ("0.0", 0),
        ("0s", 0),
        (".5s", 500_000),
        ("1.s", 1_000_000),
    ],
)
def test_durations_of_go_and_days_and_weeks(text, micros):
    assert parse_duration(text) == micros


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("600", "has no unit; write 600s"),
        (600, "has no unit"),
        ("1.5", "has no unit"),
        ("-1h", "is negative"),
        ("1e400h", "is not a duration"),
        ("1h 30m", "is not a duration"),
        ("1 h", "is not a duration"),
        ("h", "is not a duration"),
        (".s", "is not a duration"),
        ("", "is not a duration"),
        ("-", "is not a duration"),
        ("1y", "is not a duration"),
        ("1H", "is not a duration"),
        ("inf", "is not a duration"),
        ("1_0s", "is not a duration"),
        ("9" * 100, "is not a duration"),
        ("9" * 60 + "h", "is too long"),
        ("16000000w", "is too long"),
    ],
)
def test_what_is_no_duration_is_refused_in_words(text, wrong):
    with pytest.raises(ValueError, match=wrong):
        parse_duration(text)


def test_never_is_negative_only_where_that_means_something():
    assert parse_duration("-1s", signed=True) == -1_000_000
    assert format_duration(-1_000_000) == "-1s"


PARTS = st.lists(
    st.tuples(st.text("0123456789", max_size=5), st.text("0123456789", max_size=5), st.sampled_from(sorted(UNITS))),
    min_size=1,
    max_size=3,
)


@given(PARTS)
def test_the_value_is_exact_and_rounded_up_to_microseconds(parts):
    text = "".join(f"{whole}.{part}{unit}" if part else f"{whole}{unit}" for whole, part, unit in parts)
    if not all(whole or part for whole, part, _ in parts):
        with pytest.raises(ValueError, match="duration"):
            parse_duration(text)
        return
    exact = sum(Fraction(int((w + p) or "0"), 10 ** len(p)) * UNITS[unit] for w, p, unit in parts)
    assert parse_duration(text) == ceil(exact)


@given(st.integers(0, MAX_DURATION))
def test_what_is_written_is_read_as_the_same_duration(micros):
    assert parse_duration(format_duration(micros)) == micros
    assert parse_duration(format_duration(-micros), signed=True) == -micros


@pytest.mark.parametrize(
    ("micros", "text"),
    [(0, "0s"), (5_400_000_000, "1h30m"), (86_400_000_000, "1d"), (1_500_000, "1.5s"), (1_500, "1.5ms"), (7, "7us")],
)
def test_durations_are_written_as_people_write_them(micros, text):
    assert format_duration(micros) == text


@given(
    st.datetimes(min_value=datetime(1, 1, 2), max_value=datetime(9999, 12, 30)),  # noqa: DTZ001
    st.integers(-23 * 60 - 59, 23 * 60 + 59),
)
def test_times_are_those_of_the_standard_library(moment, offset):
    local = moment.replace(tzinfo=timezone(timedelta(minutes=offset)))
    expected = (local - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    assert parse_time(local.isoformat()) == expected
    assert parse_time(format_time(expected)) == expected


def test_times_are_written_in_utc_with_a_fraction_only_where_there_is_one():
    assert format_time(parse_time("2026-11-20T12:00:00+02:00")) == "2026-11-20T10:00:00Z"
    assert format_time(parse_time("2026-11-20T10:00:00.250Z")) == "2026-11-20T10:00:00.25Z"
    assert format_time(parse_time("1969-12-31T23:59:59.999999Z")) == "1969-12-31T23:59:59.999999Z"


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-20",
        "2026-11-20T10:00:00",
        "2026-11-20T10:00Z",
        "2026-02-30T10:00:00Z",
        "2026-11-20T24:00:00Z",
        "2026-11-20T10:60:00Z",
        "2026-11-20T10:00:00+24:00",
        "0000-01-01T00:00:00Z",
        "0001-01-01T00:00:00+23:00",
        "9999-12-31T23:59:59-23:00",
        "yesterday",
        "",
        "٢٠٢٦-11-20T10:00:00Z",
    ],
)
def test_what_is_no_time_is_refused_in_words(text):
    with pytest.raises(ValueError, match="time"):
        parse_time(text)
