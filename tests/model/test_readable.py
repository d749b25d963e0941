"""Amounts and costs in sentences have their unit, exactly."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.model.values.quantity import parse_queue_quantity
from tenure.model.values.readable import amount_with_unit, bare_quantity, cost_figure, time_span, weighted_hours


@pytest.mark.parametrize(
    ("amount", "resource", "text"),
    [
        (13_500, "nvidia.com/gpu", "13.5 GPUs"),
        (1_000, "nvidia.com/gpu", "1 GPU"),
        (0, "nvidia.com/gpu", "0 GPUs"),
        (500, "cpu", "0.5 cores"),
        (1_000_000, "cpu", "1,000 cores"),
        (3 << 29, "memory", "1.5 GiB of memory"),
        (2, "pods", "2 pods"),
        (3, "x.io/y", "3 of x.io/y"),
    ],
)
def test_an_amount_is_written_with_its_unit(amount, resource, text):
    """GPUs and cores with as many decimals as they have, bytes in binary units."""
    assert amount_with_unit(amount, resource) == text


def test_requests_come_in_whole_gpus():
    """A request counts GPUs in whole ones."""
    assert amount_with_unit(8, "nvidia.com/gpu", milli_gpu=False) == "8 GPUs"


@given(st.integers(0, 10**15), st.sampled_from(("cpu", "nvidia.com/gpu")))
def test_nothing_is_rounded(amount, resource):
    """What is read back is the amount."""
    assert parse_queue_quantity(bare_quantity(amount, resource).replace(",", ""), resource) == amount


@pytest.mark.parametrize(
    ("micros", "text"),
    [(27_372_000_000, "7 h 36 min"), (479_463_000_000, "5 d 13 h"), (12_250_000, "12.2 s"), (0, "0 s"),
     (-3_600_000_000, "-1 h")],
)  # fmt: skip
def test_how_long_something_took_is_written_with_its_two_largest_units(micros, text):
    """And common blanks."""
    assert time_span(micros) == text


@pytest.mark.parametrize(
    ("cost", "text"),
    [(3_600.0, "1 weighted hour"), (26_100.0, "7.25 weighted hours"), (265_200.0, "73.67 weighted hours"),
     (0.0, "0 weighted hours"), (1.0, "0.00028 weighted hours"), (7.2e6, "2,000 weighted hours")],
)  # fmt: skip
def test_a_cost_is_written_in_weighted_hours(cost, text):
    """One weighted hour is 3,600 weighted resource-seconds; what is small keeps two digits."""
    assert weighted_hours(cost) == text
    assert text.startswith(cost_figure(cost))
