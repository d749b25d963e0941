"""Merges the variants of one document into a tree that says for each part in which of them it is.

A set of variants is an ``int`` with a bit for each of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Branch:
    """One of several things that may stand in a place: in which variants it does, under which key, and what it is."""

    variants: int
    key: Any
    tree: Tree


@dataclass(frozen=True)
class Keyed:
    """A mapping whose keys are there in some variants."""

    branches: tuple[Branch, ...]


@dataclass(frozen=True)
class Listing:
    """A list whose items are there in some variants."""

    branches: tuple[Branch, ...]


@dataclass(frozen=True)
class Leaf:
    """A value."""

    value: Any


@dataclass(frozen=True)
class Either:
    """Values of which one stands there, each in some variants."""

    branches: tuple[Branch, ...]


Tree = Keyed | Listing | Leaf | Either
Variants = Sequence[tuple[int, Any]]


def merge(variants: Variants, identity: Callable[[Any], Hashable]) -> Tree:
    """Merge values that stand in one place in some variants each.

    Parameters
    ----------
    variants
        The variants and their values.
    identity
        Gives of an item of a list what makes it the same one in another variant.
    """
    distinct = _distinct(variants)
    values = [value for _, value in distinct]
    if all(isinstance(value, dict) for value in values):
        return Keyed(branches([(bits, list(value.items())) for bits, value in distinct], identity))
    if all(isinstance(value, list) for value in values):
        keyed = [(bits, [(identity(item), item) for item in value]) for bits, value in distinct]
        return Listing(branches(keyed, identity))
    if len(values) == 1:
        return Leaf(values[0])
    return Either(tuple(Branch(bits, None, merge([(bits, value)], identity)) for bits, value in distinct))


def _distinct(variants: Variants) -> Variants:
    found: dict[str, tuple[int, Any]] = {}
    for bits, value in variants:
        text = json.dumps(value)
        found[text] = (found[text][0] | bits if text in found else bits, value)
    return list(found.values())


def branches(
    variants: Sequence[tuple[int, Sequence[tuple[Any, Any]]]], identity: Callable[[Any], Hashable]
) -> tuple[Branch, ...]:
    """Merge what stands under keys, or are items that are the same by a key, in some variants each."""
    held: dict[Any, list[tuple[int, Any]]] = {}
    for bits, pairs in variants:
        for key, value in pairs:
            held.setdefault(key, []).append((bits, value))
    made = []
    for key in _in_order([key for key, _ in pairs] for _, pairs in variants):
        bits = 0
        for inner, _ in held[key]:
            bits |= inner
        made.append(Branch(bits, key, merge(held[key], identity)))
    return tuple(made)


def _in_order(lists: Iterable[Sequence[Any]]) -> list[Any]:
    """Give an order of all keys in which those of each list are as they stand there."""
    made: list[Any] = []
    for keys in sorted(lists, key=len, reverse=True):
        at = 0
        for key in keys:
            if key in made:
                at = made.index(key) + 1
            else:
                made.insert(at, key)
                at += 1
    return made
