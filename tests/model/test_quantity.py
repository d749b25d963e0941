"""Quantities: exact, against a reference in fractions that shares no code with the parser."""

from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tenure.model.values.quantity import (
    MAX_AMOUNT,
    format_quantity,
    format_queue_quantity,
    parse_quantity,
    parse_queue_quantity,
)

GPU = "nvidia.com/gpu"
FACTORS = {
    "": Fraction(1),
    **{name: Fraction(10) ** power for name, power in zip("numkMGTPE", (-9, -6, -3, 3, 6, 9, 12, 15, 18), strict=True)},
    **{name + "i": Fraction(1024) ** (i + 1) for i, name in enumerate("KMGTPE")},
}


@pytest.mark.parametrize(
    ("text", "resource", "amount"),
    [
        ("500m", "cpu", 500),
        ("96", "cpu", 96_000),
        (8, "cpu", 8_000),
        ("1.5Gi", "memory", 3 * 2**29),
        ("2k", "memory", 2_000),
        ("1e3", "pods", 1_000),
        ("1E3", "pods", 1_000),
        ("1E", "memory", 10**18),
        ("1000m", "memory", 1),
        ("0.5e1", "pods", 5),
        (".5", "cpu", 500),
        ("5.", "pods", 5),
        ("+3", "pods", 3),
        ("0e99999", "pods", 0),
        ("-0", "cpu", 0),
        ("8", GPU, 8),
        (MAX_AMOUNT, "memory", MAX_AMOUNT),
    ],
)
def test_quantities_of_kubernetes_are_parsed_exactly(text, resource, amount):
    assert parse_quantity(text, resource) == amount


@pytest.mark.parametrize(
    ("text", "resource", "wrong"),
    [
        ("1K", "memory", "is not a quantity"),
        ("1ki", "memory", "is not a quantity"),
        ("NaN", "cpu", "is not a quantity"),
        ("inf", "cpu", "is not a quantity"),
        ("1_000", "cpu", "is not a quantity"),
        ("", "cpu", "is not a quantity"),
        (".", "cpu", "is not a quantity"),
        (" 1", "cpu", "is not a quantity"),
        ("1\n", "cpu", "is not a quantity"),
        ("0x10", "cpu", "is not a quantity"),
        ("1e", "cpu", "is not a quantity"),
        ("１", "cpu", "is not a quantity"),  # noqa: RUF001
        ("1" * 10_000, "cpu", "is not a quantity"),
        ("-1", "cpu", "is negative"),
        (-1, "cpu", "is negative"),
        ("-1e99999", "cpu", "is negative"),
        ("1e30", "cpu", "is too large"),
        ("1e999999999", "cpu", "is too large"),
        (MAX_AMOUNT + 1, "memory", "is too large"),
        ("9223372036854775808", "pods", "is too large"),
        ("8Ei", "memory", "is too large"),
        ("0.0005", "cpu", "not a whole number of millicores"),
        ("1n", "cpu", "not a whole number of millicores"),
        ("100m", "memory", "not a whole number of bytes"),
        ("0.5", GPU, "not a whole number of units"),
        ("1e-999999999", "memory", "not a whole number"),
    ],
)
def test_what_is_no_amount_is_refused_in_words(text, resource, wrong):
    with pytest.raises(ValueError, match=wrong) as caught:
        parse_quantity(text, resource)
    assert len(str(caught.value)) < 200


@given(
    whole=st.text("0123456789", max_size=8),
    part=st.none() | st.text("0123456789", max_size=8),
    suffix=st.sampled_from(sorted(FACTORS)) | st.integers(-30, 30).map(lambda e: f"e{e}"),
    resource=st.sampled_from(["cpu", "memory", "pods", GPU]),
)
@example(whole="9223372036854775807", part=None, suffix="", resource="memory")
@example(whole="9223372036854775", part="8075", suffix="", resource="cpu")
def test_the_value_is_that_of_exact_arithmetic(whole, part, suffix, resource):
    text = whole + ("" if part is None else "." + part) + suffix
    expected = None
    if whole or part:
        number = Fraction(int((whole + (part or "")) or "0"), 10 ** len(part or ""))
        factor = FACTORS[suffix] if suffix in FACTORS else Fraction(10) ** int(suffix[1:])
        exact = number * factor * (1000 if resource == "cpu" else 1)
        expected = int(exact) if exact.denominator == 1 and exact <= 2**63 - 1 else None
    try:
        found = parse_quantity(text, resource)
    except ValueError:
        found = None
    assert found == expected


@given(st.integers(0, MAX_AMOUNT), st.sampled_from(["cpu", "memory", "pods", GPU, "example.com/fpga"]))
def test_what_is_written_is_read_as_the_same_amount(amount, resource):
    assert parse_quantity(format_quantity(amount, resource), resource) == amount
    assert parse_queue_quantity(format_queue_quantity(amount, resource), resource) == amount


def test_queues_count_gpus_in_parts():
    assert parse_queue_quantity("2500m", GPU) == 2_500
    assert parse_queue_quantity("2", GPU) == 2_000
    assert parse_queue_quantity("2", "cpu") == 2_000
    assert format_queue_quantity(2_500, GPU) == "2500m"


@pytest.mark.parametrize(
    ("amount", "resource", "text"),
    [
        (1500, "cpu", "1500m"),
        (96_000, "cpu", "96"),
        (768 * 2**30, "memory", "768Gi"),
        (0, "memory", "0"),
        (1000, "memory", "1000"),
    ],
)
def test_amounts_are_written_as_people_write_them(amount, resource, text):
    assert format_quantity(amount, resource) == text


@given(st.text(max_size=80), st.sampled_from(["cpu", "memory"]))
def test_no_text_makes_it_fail_otherwise(text, resource):
    try:
        amount = parse_quantity(text, resource)
    except ValueError:
        return
    assert 0 <= amount <= MAX_AMOUNT
