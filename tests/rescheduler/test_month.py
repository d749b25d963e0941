"""A slice of the experiment over a month: moves help large jobs, break nothing, and end with the arrivals."""

import importlib.util
import sys
from pathlib import Path

import pytest

PATH = Path(__file__).parents[2] / "examples/rescheduler/month.py"


@pytest.fixture(scope="module")
def month():
    sys.path.append(str(PATH.parent))
    found = importlib.util.spec_from_file_location("month", PATH)
    module = importlib.util.module_from_spec(found)
    sys.modules["month"] = module
    found.loader.exec_module(module)
    yield module
    del sys.modules["month"]


def test_two_days_with_and_without_moves(month):
    """Large jobs wait less where room is made for them, nothing is violated, and background moves are few."""
    asked = [month.Asked(name, 1, 2, 64, 0.6, 16, 0.001, exact=False) for name in month.VARIANTS]
    rows = {row.name: row for row in month.run(asked)}
    assert not any(row.violations for row in rows.values())
    assert rows["make room"].large < 0.9 * rows["no moves"].large
    assert rows["both"].large < 0.9 * rows["no moves"].large
    assert 0 < rows["background"].moves < rows["make room"].moves
    assert rows["no moves"].moves == 0
    assert all(row.until < 24 for row in rows.values()), "the last move is made within a day after the last arrival"
    assert rows["make room"].lost < 0.03
    everything = list(rows.values())
    for shown in (month.table(everything), month.month_page("A month", "", everything),
                  month.month_picture("A month", everything)):  # fmt: skip
        assert all(row.name in shown for row in everything if row.moves)


def test_each_seed_has_a_row_beside_the_mean(month):
    """A day without moves over two seeds: the mean is that of both, with their range."""
    asked = [month.Asked("no moves", seed, 1, 64, 0.9, 16, 0.001, exact=False) for seed in (1, 2)]
    first, second, mean = month.run(asked, each=True)
    assert [first.name, second.name, mean.name] == ["no moves, seed 1", "no moves, seed 2", "no moves"]
    assert mean.large == (first.large + second.large) / 2
    assert (mean.low, mean.high) == (min(first.large, second.large), max(first.large, second.large))
