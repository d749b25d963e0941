"""Cron lines and the windows they open."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenure.model.values.cron import parse_cron, window_at
from tenure.model.values.duration import format_time, parse_duration, parse_time

HOUR = 3_600_000_000
MINUTE = 60_000_000


def window(line, duration, now, zone="UTC"):
    found = window_at(line, parse_duration(duration), zone, parse_time(now))
    return found and tuple(map(format_time, found))


def test_a_window_is_open_from_its_first_instant_and_shut_at_its_last():
    """Half open: at 06:00 it is open, at 22:00 no longer."""
    assert window("0 6 * * *", "16h", "2026-11-20T05:59:59Z") is None
    assert window("0 6 * * *", "16h", "2026-11-20T06:00:00Z") == ("2026-11-20T06:00:00Z", "2026-11-20T22:00:00Z")
    assert window("0 6 * * *", "16h", "2026-11-20T22:00:00Z") is None


def test_the_time_zone_moves_with_its_daylight_saving():
    """Six o'clock in Berlin is five in UTC in winter and four in summer."""
    assert window("0 6 * * *", "1h", "2026-11-20T05:30:00Z", "Europe/Berlin") is not None
    assert window("0 6 * * *", "1h", "2026-07-20T04:30:00Z", "Europe/Berlin") is not None
    assert window("0 6 * * *", "1h", "2026-07-20T05:30:00Z", "Europe/Berlin") is None


def test_a_time_that_the_clock_skips_still_opens_its_window():
    """02:30 does not exist on 2026-03-29 in Berlin; the window opens when it would have been 02:30."""
    assert window("30 2 * * *", "1h", "2026-03-29T01:45:00Z", "Europe/Berlin") is not None


def test_windows_that_touch_are_one():
    """Every hour for an hour in the morning is the whole morning."""
    start, end = window_at("0 6-11 * * *", HOUR, "UTC", parse_time("2026-11-20T10:30:00Z"))
    assert (format_time(start), format_time(end)) == ("2026-11-20T10:00:00Z", "2026-11-20T12:00:00Z")


@pytest.mark.parametrize(("line", "minutes"), [("0 * * * *", 60), ("*/30 * * * *", 30), ("* * * * *", 1)])
def test_windows_that_touch_all_day_end_where_a_day_is_left_out_and_else_never(line, minutes):
    """Hundreds of windows a day; where an hour comes twice in autumn, and none of its minutes again, there is a gap."""
    now, working = parse_time("2026-11-20T10:29:30Z"), line.removesuffix("*") + "1-5"
    for zone, end in (("UTC", "2026-11-21T00:00:00Z"), ("Europe/Berlin", "2026-11-20T23:00:00Z")):
        assert format_time(window_at(working, minutes * MINUTE, zone, now)[1]) == end
    assert window_at(line, minutes * MINUTE, "UTC", now)[1] is None
    autumn = window_at(line, minutes * MINUTE, "Europe/Berlin", now)
    assert format_time(autumn[1]) == "2027-10-31T01:00:00Z"


@pytest.mark.parametrize("hours", [24, 30])
def test_windows_of_every_day_that_leave_no_gap_have_no_end(hours):
    assert window_at("0 0 * * *", hours * HOUR, "UTC", parse_time("2026-11-20T10:30:00Z"))[1] is None
    assert window_at("0 0 * * 1-5", hours * HOUR, "UTC", parse_time("2026-11-20T10:30:00Z"))[1] is not None


def test_day_of_month_and_day_of_week_are_either_or_as_in_cron():
    """The 13th, and every Friday."""
    cron = parse_cron("0 0 13 * 5")
    assert cron.on(datetime(2026, 11, 13, tzinfo=UTC).date())
    assert cron.on(datetime(2026, 11, 20, tzinfo=UTC).date())
    assert not cron.on(datetime(2026, 11, 21, tzinfo=UTC).date())


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("0 6 * *", "has 4 fields"),
        ("60 6 * * *", "'60' is no minute"),
        ("0 6-2 * * *", "names no hour"),
        ("0 6 30 2 *", "never comes"),
        ("*/0 * * * *", "names no minute"),
        ("0 6 * * fry", "'fry' is no day of the week"),
        ("a b c d e f", "has 6 fields"),
        ("1,,2 * * * *", "'' is no minute"),
    ],
)
def test_what_is_no_cron_line_says_why(line, says):
    """Every message names the part that is wrong."""
    with pytest.raises(ValueError, match=says):
        parse_cron(line)


@given(
    minute=st.integers(0, 59), hour=st.integers(0, 23), weekday=st.integers(0, 6),
    zone=st.sampled_from(["UTC", "Europe/Berlin", "Asia/Kolkata", "America/New_York"]),
    at=st.integers(0, 366 * 24 * 60), length=st.integers(1, 30 * 60),
)  # fmt: skip
def test_a_window_is_open_exactly_when_a_walk_over_all_minutes_finds_its_begin(minute, hour, weekday, zone, at, length):
    """Brute force: some minute in the last `length` minutes is a begin on the local clock."""
    at = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=at)
    now = int(at.timestamp()) * 1_000_000
    area, wanted = ZoneInfo(zone), []
    for back in range(length):
        local = (at - timedelta(minutes=back)).astimezone(area)
        if (local.minute, local.hour, local.isoweekday() % 7) == (minute, hour, weekday) and not local.fold:
            wanted.append(now - back * MINUTE)
    found = window_at(f"{minute} {hour} * * {weekday}", length * MINUTE, zone, now)
    skipped = _skipped(at, length, area)
    if not skipped:
        assert (found is not None) == bool(wanted)
        assert not wanted or found[0] == wanted[0]


def _skipped(at, length, area):
    """Whether the clock was changed in the time looked at."""
    offsets = {(at - timedelta(minutes=m)).astimezone(area).utcoffset() for m in range(-1500, length + 1500, 30)}
    return len(offsets) > 1


@pytest.mark.parametrize(
    ("line", "duration"),
    [("0 0 * * *", "24h"), ("0 * * * *", "1h"), ("*/15 * * * *", "15m"), ("* * * * *", "1m"), ("30 */6 * * *", "7h")],
)
def test_windows_that_follow_each_other_without_a_gap_have_no_end_however_short_they_are(line, duration):
    """They are open for ever, whether they begin once a day or each minute."""
    begin, end = window_at(line, parse_duration(duration), "UTC", parse_time("2026-11-20T10:20:00Z"))
    assert begin <= parse_time("2026-11-20T10:20:00Z")
    assert end is None


def test_a_gap_that_comes_with_the_change_of_clocks_is_the_end_of_hourly_windows():
    """In autumn an hour comes twice in Berlin, and begins one window: the second is without."""
    assert window("0 * * * *", "1h", "2026-11-20T10:20:00Z", "Europe/Berlin") == (
        "2026-11-20T10:00:00Z", "2027-10-31T01:00:00Z",
    )  # fmt: skip


@settings(max_examples=25)
@given(
    line=st.sampled_from(["* * * * *", "*/10 * * * *", "0 8-17 * * 1-5", "20,50 3 * * *", "0 */5 * * *", "5 0 1 * *"]),
    length=st.sampled_from([1, 9, 10, 11, 30, 60, 299, 300, 301, 24 * 60]),
    zone=st.sampled_from(["UTC", "Europe/Berlin", "Australia/Lord_Howe"]),
    hours=st.integers(0, 60 * 24), parts=st.lists(st.floats(0, 1), max_size=3),
)  # fmt: skip
def test_the_end_of_joined_windows_is_the_first_minute_at_which_none_is_open(line, length, zone, hours, parts):
    """At every minute before, looked at by chance, one is open, and at the end none is."""
    now = parse_time("2026-09-15T00:00:00Z") + hours * HOUR
    found = window_at(line, length * MINUTE, zone, now)
    if found is None or found[1] is None:
        return
    minutes = (found[1] - now) // MINUTE
    for part in (*parts, 1.0):
        assert window_at(line, length * MINUTE, zone, now + round((minutes - 1) * part) * MINUTE) is not None
    assert window_at(line, length * MINUTE, zone, found[1]) is None


@settings(max_examples=50)
@given(
    line=st.sampled_from(["* * * * *", "*/7 * * * *", "10,50 1-3 * * *", "59 23 * * *", "0 0,2,12 * * *"]),
    zone=st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"]),
    day=st.sampled_from(
        ["2026-03-08", "2026-03-29", "2026-04-05", "2026-07-01", "2026-10-04", "2026-10-25", "2026-11-01"]
    ),
    minute=st.integers(-60, 30 * 60),
)
def test_of_many_begins_the_latest_counts_on_days_when_clocks_change_as_on_others(line, zone, day, minute):
    """Brute force: each begin of the days around is made on the local clock, and the latest that has come is taken."""
    now = parse_time(f"{day}T00:00:00Z") + minute * MINUTE
    cron, first = parse_cron(line), datetime.fromtimestamp(now / 1_000_000, UTC).date()
    begins = [
        int(datetime(d.year, d.month, d.day, hour, at, tzinfo=ZoneInfo(zone)).timestamp()) * 1_000_000
        for d in (first + timedelta(days=n) for n in range(-2, 2)) if cron.on(d)
        for hour in cron.hours for at in cron.minutes
    ]  # fmt: skip
    found = window_at(line, MINUTE, zone, now)
    latest = max(b for b in begins if b <= now)
    assert (found and found[0]) == (latest if now - latest < MINUTE else None)
