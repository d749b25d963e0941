"""A rule's no."""

from __future__ import annotations

from typing import NamedTuple


class Refusal(NamedTuple):
    """A refusal: why something may not be taken.

    ``shield`` is the rule, from a fixed set or the name of a plugin; ``until`` (µs since the epoch) is when it ends,
    None where time alone does not end it. ``core_only``: what a workload runs beyond its core may be taken. ``about``:
    the workload without which the answer might be another, where a whole set is refused.
    """

    shield: str
    message: str
    until: int | None = None
    core_only: bool = False
    about: str = ""
