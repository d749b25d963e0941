"""Resource-seconds are written in hours of what people count."""

from __future__ import annotations

import pytest
from tests.report.simulations import example

from tenure.history.reading.statement import Statement, StatementRow
from tenure.report.statement_json import statement_json
from tenure.report.statement_text import comparison_text, statement_page, statement_text
from tenure.report.summary_text import summary_text
from tenure.report.tables import Terminal
from tenure.report.words import resource_hours, seconds_unit


@pytest.mark.parametrize(
    ("resource", "seconds", "written"),
    [
        ("nvidia.com/gpu", 48_600, "13.5 GPU-hours"),
        ("cpu", 7_200, "2.0 core-hours"),
        ("cpu", 9_000_000, "2,500.0 core-hours"),
        ("memory", 3600 * (3 << 30), "3 GiB-hours"),
        ("memory", 3600 * (5 << 39), "2.5 TiB-hours"),
        ("memory", 0, "0 GiB-hours"),
        ("ephemeral-storage", 3600 * (3 << 30), "3 GiB-hours"),
        ("nvidia.com/gpu", 0, "0 GPU-hours"),
        ("example.com/thing", 3600, "1.0 example.com/thing-hours"),
    ],
)
def test_hours_of_what_is_held(resource, seconds, written):
    assert resource_hours(resource, seconds).replace("\N{NO-BREAK SPACE}", " ").replace(".0 GiB", " GiB") == written


@pytest.mark.parametrize(
    ("resource", "unit"),
    [
        ("nvidia.com/gpu", "GPU-seconds"),
        ("cpu", "core-seconds"),
        ("memory", "byte-seconds"),
        ("ephemeral-storage", "byte-seconds"),
        ("example.com/thing", "example.com/thing-seconds"),
    ],
)
def test_the_unit_of_seconds_of_what_is_held(resource, unit):
    assert seconds_unit(resource) == unit


def test_a_statement_names_the_unit_of_each_sum_once_in_its_row():
    """That of bytes suits the capacity, and is the same for all sums of the row."""
    hour = 3_600_000_000
    capacity, lost = ({"memory": amount * hour, "cpu": 1000 * hour} for amount in (5 << 39, 1 << 38))
    found = Statement(0, hour, "cause", capacity, capacity, {}, lost, {}, [], [], [])
    text = statement_text(found, Terminal(width=120))
    (row,) = [line.split() for line in text.splitlines() if line.startswith("memory")]
    assert row == ["memory,", "TiB-hours", "2.5", "2.5", "0", "0.25", "0"]
    assert "CPU, core-hours" in text
    assert "hours of" not in text
    assert "memory, TiB-hours" in statement_page(found)
    assert "lost, core-hours" in comparison_text(found, found, Terminal(width=120))


def test_what_notices_spared_stands_in_hours_as_losses_do():
    """Also what is counted in bytes."""
    _, _, summary, _ = example()
    notices = {"told": 2, "withdrawn": 1, "spared": {"nvidia.com/gpu": 7_200.0, "memory": 3_600.0 * (3 << 30)}}
    text = summary_text({**summary, "notices": notices}, Terminal(width=120))
    assert "2 told, 1 withdrawn, 2.0 GPU-hours, 3 GiB-hours spared" in text


def test_the_table_and_the_json_of_a_statement_have_one_measure_of_long_waits():
    row = StatementRow("a", waits=[0, 10 * 3_600_000_000])
    found = Statement(0, 3_600_000_000, "queue", {"cpu": 1}, {}, {}, {}, {}, [row], [], [])
    (plain,) = statement_json(found)["rows"]
    assert plain["wait_s"]["p95"] == 9.5 * 3600
    text = statement_text(found, Terminal(width=200)).replace("\N{NO-BREAK SPACE}", " ")
    assert "9 h 30 min" in text
    assert "by queue, in core-hours" in text
