"""Quantities as Kubernetes writes them, parsed exactly into the integer units of `tenure.model.values.resources`.

The grammar is that of ``k8s.io/apimachinery/pkg/api/resource``: a decimal number with a binary suffix (``Ki`` …
``Ei``), a decimal suffix (``n u m k M G T P E``) or an exponent (``1e3``). Unlike there nothing is rounded: an amount
that is not whole in its unit is an error (spec: resources).
"""

from __future__ import annotations

import re
from functools import lru_cache

from tenure.model.values.problems import shorten
from tenure.model.values.resources import CPU, GPU, MEMORY

MAX_AMOUNT = 2**63 - 1
"""The largest amount: amounts are kept in 64 bits."""

_QUANTITY = re.compile(
    r"(?P<sign>[+-]?)(?P<whole>[0-9]*)(?:\.(?P<part>[0-9]*))?"
    r"(?:[eE](?P<exponent>[+-]?[0-9]+)|(?P<suffix>[KMGTPE]i|[numkMGTPE]))?"
)
_BINARY = {f"{letter}i": 1024**power for power, letter in enumerate("KMGTPE", start=1)}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY_DOWN = tuple(sorted(_BINARY.items(), key=lambda item: -item[1]))
_MAX_LENGTH = 64
_MAX_EXPONENT = 100
_MILLI_EXPONENT = 3
_NANO_EXPONENT = 9
_EXAMPLES = "such as 2, 500m, 1.5Gi or 1e3"


def parse_quantity(text: str | int, resource: str) -> int:
    """Parse an amount of a resource.

    Parameters
    ----------
    text
        The quantity: ``"500m"``, ``"1.5Gi"``, ``8``.
    resource
        Its resource; ``cpu`` comes out in millicores, everything else in whole units (bytes, pods, GPUs).

    Raises
    ------
    ValueError
        It is no quantity, negative, not whole in its unit, or does not fit 64 bits. The text says what would be right.

    """
    return _parse(str(text), _MILLI_EXPONENT if resource == CPU else 0, resource)


def parse_queue_quantity(text: str | int, resource: str) -> int:
    """Parse an amount of a queue: as `parse_quantity`, but GPUs come out in milli-GPU (``2500m`` → 2500)."""
    return _parse(str(text), _MILLI_EXPONENT if resource in (CPU, GPU) else 0, resource)


def parse_nano(text: str | int) -> int:
    """Parse an amount into thousand-millionths of a unit, the smallest part that Kubernetes keeps; rounded up to them.

    Raises
    ------
    ValueError
        It is no quantity, or negative. The text says what would be right.

    """
    digits, exponent, factor = _split(str(text))
    exponent += _NANO_EXPONENT
    if digits and exponent > _MAX_EXPONENT:
        raise _too_large(str(text))
    if exponent >= 0:
        return int(digits * factor * 10**exponent)
    return int(-(-digits * factor // 10 ** min(-exponent, 2 * _MAX_EXPONENT)))


def format_nano(nano: int) -> str:
    """Write thousand-millionths of a unit so that `parse_nano` gives them back."""
    whole, rest = divmod(nano, 10**_NANO_EXPONENT)
    if rest:
        return f"{nano}n"
    return _format_binary(whole) if whole and whole % 1024 == 0 else str(whole)


def round_up(nano: int, resource: str) -> int:
    """Round thousand-millionths of a unit up to whole units of a resource, as kube-scheduler does."""
    exponent = _NANO_EXPONENT - (_MILLI_EXPONENT if resource == CPU else 0)
    return int(-(-nano // 10**exponent))


def format_quantity(amount: int, resource: str) -> str:
    """Write an amount so that `parse_quantity` gives it back: ``1500`` millicores → ``1500m``, bytes as ``768Gi``."""
    if resource == CPU:
        return _format_milli(amount)
    if resource == MEMORY:
        return _format_binary(amount)
    return str(amount)


def format_queue_quantity(amount: int, resource: str) -> str:
    """Write an amount of a queue so that `parse_queue_quantity` gives it back."""
    return _format_milli(amount) if resource == GPU else format_quantity(amount, resource)


@lru_cache(maxsize=16_384)
def _parse(text: str, unit_exponent: int, resource: str) -> int:
    digits, exponent, factor = _split(text)
    exponent += unit_exponent
    if digits and exponent > _MAX_EXPONENT:
        raise _too_large(text)
    if exponent >= 0:
        amount = digits and digits * factor * 10**exponent
    else:
        amount, rest = divmod(digits * factor, 10 ** min(-exponent, 2 * _MAX_EXPONENT))
        if rest:
            raise ValueError(
                f"{shorten(text)} is not a whole number of {_unit_name(unit_exponent, resource)}; round it"
            )
    if amount > MAX_AMOUNT:
        raise _too_large(text)
    return amount


def _split(text: str) -> tuple[int, int, int]:
    """Give the digits as one integer, the power of ten they stand for, and the factor of a binary suffix."""
    match = _QUANTITY.fullmatch(text) if len(text) <= _MAX_LENGTH else None
    if match is None or not (match["whole"] or match["part"]):
        raise ValueError(f"{shorten(text)} is not a quantity; write one {_EXAMPLES}")
    whole, part, suffix = match["whole"], match["part"] or "", match["suffix"] or ""
    digits = int(whole + part)
    if match["sign"] == "-" and digits:
        raise ValueError(f"{text} is negative; an amount is 0 or more")
    exponent = int(match["exponent"] or 0) + _DECIMAL.get(suffix, 0) - len(part)
    return digits, exponent, _BINARY.get(suffix, 1)


def _too_large(text: str) -> ValueError:
    return ValueError(f"{shorten(text)} is too large; an amount fits 64 bits (up to about 9.2e18 of its smallest unit)")


def _unit_name(unit_exponent: int, resource: str) -> str:
    if unit_exponent:
        return "millicores (1m is the smallest part)" if resource == CPU else "milli-GPU (1m is the smallest part)"
    return "bytes" if resource == MEMORY else f"units of {resource}"


def _format_milli(amount: int) -> str:
    whole, milli = divmod(amount, 1000)
    return f"{amount}m" if milli else str(whole)


def _format_binary(amount: int) -> str:
    for suffix, factor in _BINARY_DOWN:
        if amount and amount % factor == 0:
            return f"{amount // factor}{suffix}"
    return str(amount)
