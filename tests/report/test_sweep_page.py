"""The page of a sweep: what its curves may be read as."""

import pytest

from tenure.report.sweep_page import SweepRow, sweep_text, told_of_distances
from tenure.report.tables import Terminal


@pytest.mark.parametrize(
    "values", [["1h", "2h", "3h"], [0, 1], [0, 0.5, 1.0], ["binpack", "spread", "x"], ["30m", "1h"], [1]]
)
def test_values_at_equal_distances_or_without_any_need_no_word(values):
    """Durations and numbers with equal steps, two of them, and names."""
    assert told_of_distances(values) == ""


@pytest.mark.parametrize("values", [["10m", "1h", "24h"], [1, 2, 4], ["0", "1h", "90m"]])
def test_that_values_are_drawn_at_other_distances_than_they_have_is_said(values):
    """A line between them is as steep as the page makes it."""
    assert "equal distances, which they do not have" in told_of_distances(values)


def test_large_figures_of_the_table_are_written_out():
    """No figure stands there as 1.234e+04."""
    losses = [{"evictions": {"reclaim": 12_345}, "lost": {"nvidia.com/gpu": 3600 * 95_658.1}}, {"evictions": {}}]
    text = sweep_text([SweepRow({"trace": "t", "a": n}, lost) for n, lost in enumerate(losses)], Terminal(100))
    assert text.splitlines()[1].split() == ["0", "12,345", "95,658"]
