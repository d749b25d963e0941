"""Tables for a terminal, and words for numbers."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.report.drawing.scales import LogScale, duration_scale, time_ticks, top_of
from tenure.report.tables import NOT_A_TERMINAL, TableColumn, Terminal, table, terminal, text_width, wrap
from tenure.report.words import (
    amount,
    amounts,
    byte_size,
    count,
    duration,
    figure_text,
    number,
    percent,
    short_number,
)

WORDS = st.text(st.sampled_from("abc 一é"), max_size=40)


@given(WORDS, st.integers(2, 30))
def test_wrapped_lines_fit_and_lose_no_letter(text, width):
    lines = wrap(text, width)
    assert all(text_width(line) <= width for line in lines)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")


@given(st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=5), st.integers(40, 90))
def test_a_table_fits_the_terminal_and_loses_no_letter(rows, width):
    """Unless a single word is wider than what a line has beside a heading: that one runs over rather than be cut."""
    columns = (TableColumn("left", wrap=True), TableColumn("right", wrap=True))
    text = table(columns, rows, Terminal(width))
    words = [word for row in rows for cell in row for word in cell.split(" ")]
    widest = max(map(text_width, words))
    assert all(text_width(line) <= max(width, widest + 4) for line in text.splitlines())
    lines = [word for line in text.splitlines() for word in line.split()]
    assert not [word for word in words if word and word not in lines]


def test_where_columns_do_not_fit_rows_stand_below_each_other_and_no_word_is_cut():
    columns = (TableColumn("workload", wrap=True), TableColumn("node"), TableColumn("why", wrap=True))
    names = ("research-team/pretraining-of-a-large-model", "gpu-node-17.cluster.example", "it waits for room " * 4)
    text = table(columns, [names], Terminal(60))
    assert text.splitlines()[0] == names[0]
    assert text.splitlines()[1] == f"  node: {names[1]}"
    assert all(text_width(line) <= 60 for line in text.splitlines())
    assert all(word in text.split() for cell in names for word in cell.split())


def test_colours_are_where_the_terminal_has_them_or_where_it_was_said(monkeypatch):
    column = TableColumn("action", tints={"evict": "red"})
    assert "\x1b[31mevict" in table((column,), [("evict",)], Terminal(80, styled=True))
    assert "\x1b" not in table((column,), [("evict",)], Terminal(80))
    screen = io.StringIO()
    screen.isatty = lambda: True
    assert terminal(screen).styled
    monkeypatch.setenv("NO_COLOR", "1")
    assert not terminal(screen).styled
    assert terminal(screen, "always").styled
    assert not terminal(io.StringIO()).styled
    assert terminal(io.StringIO(), "always").styled


def test_columns_are_aligned_and_numbers_set_right():
    text = table((TableColumn("name"), TableColumn("jobs", right=True)), [("a", "1"), ("long", "1,000")])
    assert text == "name   jobs\na         1\nlong  1,000\n"


def test_what_cannot_be_wrapped_runs_over_rather_than_being_cut():
    assert "x" * 50 in table((TableColumn("name"),), [("x" * 50,)], Terminal(20))


def test_control_characters_do_not_reach_the_terminal():
    assert "\x1b" not in table((TableColumn("a"),), [("\x1b[2J\n",)], Terminal(20))


def test_a_file_gets_a_fixed_width_and_no_styles(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    assert terminal(io.StringIO()) == Terminal(NOT_A_TERMINAL, styled=False)
    monkeypatch.setenv("COLUMNS", "72")
    assert terminal(io.StringIO()).width == 72


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"), (12.25, "12.2 s"), (60, "1 min"), (3599.9, "1 h"), (6505.3, "1 h 48 min"), (86_400, "1 d"),
        (90_061, "1 d 1 h"), (86_460, "1 d"), (-90, "-1 min 30 s"), (None, "—"),
    ],
)  # fmt: skip
def test_durations_have_their_two_largest_units(seconds, text):
    assert duration(seconds).replace("\N{NO-BREAK SPACE}", " ") == text


def test_amounts_have_units():
    plain = amounts({"nvidia.com/gpu": 2, "milliGpu": 500, "cpu": 1500, "memory": 3 << 29, "x.io/y": 3})
    assert plain.replace("\N{NO-BREAK SPACE}", " ") == "2.5 GPUs, 1.5 cores, 1.5 GiB, 3 x.io/y"
    assert amount("nvidia.com/gpu", 2500, milli_gpu=True).startswith("2.5")
    assert byte_size(0).startswith("0")
    assert (number(1234), number(1234.56), number(None), percent(0.1234)) == ("1,234", "1,234.6", "—", "12.3%")
    assert [short_number(value) for value in (0, 0.5, 999, 1500, 2e6, 3.25e9)] == [
        "0",
        "0.5",
        "999",
        "1.5k",
        "2M",
        "3.25G",
    ]
    assert (count(1, "node"), count(2, "node")) == ("1 node", "2 nodes")


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [(95_658.1, 4, "95,658"), (999.97, 4, "1,000"), (0.12345, 4, "0.1235"), (1_234.5, 3, "1,234"), (12.345, 3, "12.3")],
)
def test_a_large_figure_is_written_out(value, digits, text):
    """No powers of ten stand in tables, sentences and pictures."""
    assert figure_text(value, digits) == text


@given(st.floats(0, 1e9), st.floats(1e-3, 1e9))
def test_time_ticks_lie_inside_and_are_few(begin, span):
    ticks = time_ticks(begin, begin + span)
    assert all(-1e-6 <= tick.at <= 1 + 1e-6 for tick in ticks)
    assert len(ticks) <= 10


@given(st.floats(1e-6, 1e12))
def test_the_top_of_an_axis_is_not_below_the_value_nor_far_above(value):
    assert value * (1 - 1e-6) <= top_of(value) <= value * 2 + 1e-9


@given(st.floats(0, 1e10), st.floats(0, 1e10))
def test_a_logarithmic_axis_keeps_the_order_and_stays_inside(one, other):
    scale, ticks = duration_scale(max(one, other))
    low, high = sorted((one, other))
    assert 0 <= scale.at(low) <= scale.at(high) <= 1
    assert all(0 <= tick.at <= 1 for tick in ticks)
    assert LogScale(1, 100).at(10) == 0.5
