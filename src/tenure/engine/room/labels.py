"""Which nodes a selector or an affinity admits, as boolean vectors over all nodes.

Each distinct label and key has one vector, made when it is first asked for; everything else is ``and`` and
``or`` of these. Semantics are those of Kubernetes 1.37.
"""

from __future__ import annotations

import re
from bisect import bisect_left

import numpy as np
from numpy.typing import NDArray

from tenure.engine.room.domains import NodeDomains
from tenure.model.node import Node
from tenure.model.selectors import (
    LabelSelector,
    NodeAffinity,
    NodeSelector,
    NodeSelectorTerm,
    Requirement,
)
from tenure.model.values.resources import Pairs

Mask = NDArray[np.bool_]


class NodeLabels:
    """Vectors over ``nodes``, in their order, for labels."""

    def __init__(self, nodes: list[Node], domains: NodeDomains) -> None:
        self._nodes = nodes
        self._domains = domains
        self._keys = domains.keys
        self._having: dict[str, Mask] = {}
        self._pairs: dict[tuple[str, str], Mask] = {}
        self._numbers: dict[str, tuple[NDArray[np.int64], Mask]] = {}
        self._places = {node.name: place for place, node in enumerate(nodes)}
        self._nowhere = np.zeros(len(nodes), bool)
        self._nowhere.setflags(write=False)

    def having(self, key: str) -> Mask:
        """Nodes that have the label ``key``."""
        if key not in self._keys:
            return self._nowhere
        mask = self._having.get(key)
        if mask is None:
            mask = self._having[key] = self._domains.of(key)[0] >= 0
        return mask

    def equal(self, key: str, value: str) -> Mask:
        """Nodes whose label ``key`` is ``value``; what no node has costs no vector."""
        if key not in self._keys:
            return self._nowhere
        mask = self._pairs.get((key, value))
        if mask is None:
            ids, values = self._domains.of(key)
            place = bisect_left(values, value)
            if place == len(values) or values[place] != value:
                return self._nowhere
            mask = self._pairs[(key, value)] = ids == place
        return mask

    def selected(self, selector: Pairs) -> Mask:
        """Nodes that a ``nodeSelector`` admits."""
        mask = np.ones(len(self._nodes), bool)
        for key, value in selector:
            mask &= self.equal(key, value)
        return mask

    def declaring(self, feature: str) -> Mask:
        """Nodes whose kubelet declares a feature."""
        return np.fromiter((feature in n.features for n in self._nodes), bool, len(self._nodes))

    def affine(self, affinity: NodeAffinity | None) -> Mask:
        """Nodes that the required part of a node affinity admits."""
        if affinity is None or affinity.required is None:
            return np.ones(len(self._nodes), bool)
        mask = np.zeros(len(self._nodes), bool)
        for term in affinity.required:
            mask |= self.term(term)
        return mask

    def preference(self, affinity: NodeAffinity | None) -> NDArray[np.int64]:
        """Sum of the weights of the preferred terms that match."""
        score = np.zeros(len(self._nodes), np.int64)
        if affinity is not None:
            for preferred in affinity.preferred:
                score += preferred.weight * self.term(preferred.term)
        return score

    def term(self, term: NodeSelectorTerm) -> Mask:
        """Nodes that one node selector term matches; an empty term matches none."""
        if not term.match_expressions and not term.match_fields:
            return np.zeros(len(self._nodes), bool)
        mask = np.ones(len(self._nodes), bool)
        for requirement in term.match_expressions:
            mask &= self._requirement(requirement)
        for requirement in term.match_fields:
            named = self._nowhere.copy()
            named[[self._places[name] for name in requirement.values if name in self._places]] = True
            mask &= named if requirement.operator == "In" else ~named
        return mask

    def _requirement(self, requirement: Requirement) -> Mask:
        key, operator = requirement.key, requirement.operator
        if operator == "Exists":
            return self.having(key)
        if operator == "DoesNotExist":
            return ~self.having(key)
        if operator in ("Gt", "Lt"):
            return self._compared(requirement)
        found = [self.equal(key, value) for value in requirement.values]
        mask: Mask = np.logical_or.reduce([m for m in found if m is not self._nowhere] or [self._nowhere])
        return mask if operator == "In" else ~mask

    def _compared(self, requirement: Requirement) -> Mask:
        bound = _int64(requirement.values[0]) if len(requirement.values) == 1 else None
        if bound is None or requirement.key not in self._keys:
            return self._nowhere
        numbers, are_numbers = self._numbers_of(requirement.key)
        found: Mask = are_numbers & (numbers > bound if requirement.operator == "Gt" else numbers < bound)
        return found

    def _numbers_of(self, key: str) -> tuple[NDArray[np.int64], Mask]:
        """For each node the number that its label is, and whether it is one."""
        known = self._numbers.get(key)
        if known is None:
            read = [_int64(node.labels.get(key, "")) for node in self._nodes]
            numbers = np.array([0 if number is None else number for number in read], np.int64)
            known = self._numbers[key] = numbers, np.array([number is not None for number in read], bool)
        return known


_WHOLE = re.compile(r"[+-]?0*([0-9]{1,19})")
_LOWEST, _HIGHEST = -(2**63), 2**63 - 1


def _int64(text: str) -> int | None:
    """Read a number as Go's ``strconv.ParseInt`` does in base 10 with 64 bits; None for what it refuses."""
    match = _WHOLE.fullmatch(text)
    if match is None:
        return None
    number = -int(match[1]) if text.startswith("-") else int(match[1])
    return number if _LOWEST <= number <= _HIGHEST else None


def reached(labels: NodeLabels, volumes: tuple[NodeSelector, ...]) -> Mask:
    """Nodes from which every one of some volumes can be reached."""
    mask = labels.affine(None)
    for volume in volumes:
        mask &= labels.affine(NodeAffinity(required=volume.terms))
    return mask


def selects(selector: LabelSelector | None, labels: dict[str, str]) -> bool:
    """Whether a label selector matches ``labels``; ``None`` matches nothing."""
    if selector is None:
        return False
    return all(labels.get(k) == v for k, v in selector.match_labels) and all(
        _holds(r, labels) for r in selector.match_expressions
    )


def _holds(requirement: Requirement, labels: dict[str, str]) -> bool:
    value = labels.get(requirement.key)
    match requirement.operator:
        case "In":
            return value in requirement.values
        case "NotIn":
            return value is None or value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case _:
            return False
