"""What strategies draw from, made once: hypothesis takes longer to make a strategy than to draw from it."""

from __future__ import annotations

from functools import cache, lru_cache

from hypothesis import strategies as st

integers = cache(st.integers)
"""Gives the strategy for whole numbers from one to another."""


def pick(draw, options):
    """Draw one of the options; what stands there several times is drawn more often."""
    return options[draw(integers(0, len(options) - 1))]


@lru_cache(maxsize=None, typed=True)
def rarely(strategy, *, default=None, one_in=4):
    """Draw the default mostly, and else from the strategy."""
    usual = st.just(default)
    return integers(1, one_in).flatmap(lambda n: strategy if n == one_in else usual)
