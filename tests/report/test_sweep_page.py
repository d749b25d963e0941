"""The page of a sweep: what its curves may be read as."""

import pytest

from tenure.report.sweep_page import told_of_distances


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
