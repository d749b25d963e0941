"""The points of a sweep: what is varied, and the combinations of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

_OPENING, _CLOSING = "[{(", "]})"


@dataclass(frozen=True, slots=True)
class SweepPoint:
    """A point of a sweep: one simulation. ``values`` name it (a column each), ``task`` is what is worked on.

    ``key`` is the same exactly where the outcome has to be the same; by it a sweep knows what it has done already.
    """

    key: str
    values: Mapping[str, str | int | float]
    task: Any


def key_of(*parts: Any) -> str:
    """Make a key of everything that an outcome depends on: plain values and bytes."""
    digest = hashlib.sha256()
    for part in parts:
        data = part if isinstance(part, bytes) else json.dumps(part, sort_keys=True, default=str).encode()
        digest.update(b"%d:" % len(data) + data)
    return digest.hexdigest()[:24]


def split_values(text: str) -> list[str]:
    """Split values at commas, but not inside brackets: ``a,[b,c]`` are two.

    Raises
    ------
    ValueError
        One of them is empty, is there twice, or has a bracket that is not closed.
    """
    found, depth, begin = [], 0, 0
    for place, letter in enumerate(text):
        depth += (letter in _OPENING) - (letter in _CLOSING)
        if letter == "," and not depth:
            found.append(text[begin:place].strip())
            begin = place + 1
    found.append(text[begin:].strip())
    if depth:
        raise ValueError(f"{text!r} has a bracket that is not closed")
    if not all(found):
        raise ValueError(f"{text!r} has an empty value")
    if twice := [value for number, value in enumerate(found) if value in found[:number]]:
        raise ValueError(f"{twice[0]!r} is there twice")
    return found


def combinations(axes: Mapping[str, Sequence[str]]) -> list[dict[str, str]]:
    """Give every combination of the values of axes, the last axis fastest."""
    return [dict(zip(axes, values, strict=True)) for values in product(*axes.values())]
