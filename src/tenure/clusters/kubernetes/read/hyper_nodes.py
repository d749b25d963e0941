"""HyperNodes of Volcano as labels of nodes: for each tier, the widest HyperNode up to it that a node is in.

Volcano states how near to each other pods have to be by the highest tier of HyperNodes that they may span. Here that is
one value of a label; nodes get these labels when they are read, and nothing is written on them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from tenure.clusters.kubernetes import api
from tenure.clusters.kubernetes.read.values import Complain, read
from tenure.engine.room.labels import selects
from tenure.model.fields.records import record_of
from tenure.model.node import Node
from tenure.model.selectors import LabelSelector
from tenure.model.values.report import BAD

WATCH: Final = "hypernodes"
"""The name of the watch of HyperNodes."""

PATHS: Final = ("/apis/topology.volcano.sh/v1alpha1",)
MOST_TIERS: Final = 16
"""Tiers that are told apart; all above count as this one."""

CLUSTER: Final = "cluster"
"""What all nodes are in that no HyperNode of the highest tier parts."""

_KIND: Final = "HyperNode"
_MOST_MEMBERS: Final = 1024
_LONGEST_PATTERN: Final = 256

Matches = Callable[[str, Mapping[str, str]], bool]
"""Whether a name, with the labels of what has it, is meant by a member."""


def tier_label(tier: int | str) -> str:
    """Give the label that stands for a tier, by its number or its name."""
    number = min(tier, MOST_TIERS) if isinstance(tier, int) else tier
    return f"topology.volcano.sh/tier-{number}"


@dataclass(frozen=True, slots=True)
class HyperNode:
    """A HyperNode: its tier, and which nodes and other HyperNodes are in it."""

    name: str
    tier: int
    tier_name: str
    nodes: tuple[Matches, ...]
    others: tuple[Matches, ...]


def hyper_node(item: api.ApiObject, complain: Complain) -> HyperNode:
    """Read a HyperNode; a member that cannot be read has nothing in it."""
    spec: dict[str, Any] = item.spec if isinstance(item.spec, dict) else {}
    tier, name, members = spec.get("tier"), spec.get("tierName"), spec.get("members")
    nodes: list[Matches] = []
    others: list[Matches] = []
    for number, member in enumerate(members[:_MOST_MEMBERS] if isinstance(members, list) else ()):
        said = member if isinstance(member, dict) else {}
        matches = _matches(said.get("selector"), f"spec.members[{number}].selector", item, complain)
        (nodes if said.get("type") == "Node" else others).extend([] if matches is None else [matches])
    number = tier if type(tier) is int and tier >= 0 else 0
    return HyperNode(item.metadata.name, number, name if isinstance(name, str) else "", tuple(nodes), tuple(others))


def _matches(selector: Any, at: str, item: api.ApiObject, complain: Complain) -> Matches | None:
    said = selector if isinstance(selector, dict) else {}
    exact, pattern, labels = (said.get(key) for key in ("exactMatch", "regexMatch", "labelMatch"))
    if isinstance(exact, dict) and isinstance(exact.get("name"), str):
        wanted = exact["name"]
        return lambda name, _: name == wanted
    if isinstance(pattern, dict) and isinstance(pattern.get("pattern"), str):
        text = pattern["pattern"]
        try:
            compiled = re.compile(text[: _LONGEST_PATTERN + 1]) if len(text) <= _LONGEST_PATTERN else None
        except re.error:
            compiled = None
        if compiled is not None:
            return lambda name, _: compiled.search(name) is not None
        complain(
            _KIND, item.metadata, f"{at}.regexMatch.pattern: is no pattern of at most {_LONGEST_PATTERN} characters"
        )
    if labels is not None:
        made, problems = read(record_of(LabelSelector), labels, f"{at}.labelMatch")
        for line in problems:
            complain(_KIND, item.metadata, line)
        if made is not BAD:
            return lambda _, found: selects(made, dict(found))
    return None


def in_tiers(nodes: Sequence[Node], items: Iterable[api.ApiObject], complain: Complain) -> Iterator[Node]:
    """Give nodes with labels that say in which HyperNodes they are, where there are any."""
    read_ones = [hyper_node(item, complain) for item in items]
    labels = tier_labels(read_ones, {node.name: node.labels for node in nodes})
    return (replace(n, labels={**n.labels, **labels[n.name]}) if n.name in labels else n for n in nodes)


def tier_labels(
    hyper_nodes: Iterable[HyperNode], nodes: Mapping[str, Mapping[str, str]]
) -> dict[str, dict[str, str]]:  # fmt: skip
    """Give by node the labels that stand for tiers, where there are HyperNodes; ``nodes`` has the labels of each."""
    known = {one.name: one for one in hyper_nodes}
    if not known:
        return {}
    above: dict[str, set[str]] = {name: set() for name in known}
    for one in known.values():
        for matches in one.others:
            for name in known:
                if matches(name, {}):
                    above[name].add(one.name)
    top, names = max(one.tier for one in known.values()), dict(_tier_names(known.values()))
    found = {}
    for node, labels in nodes.items():
        around = _around(known, above, (h.name for h in known.values() if any(m(node, labels) for m in h.nodes)))
        by_tier = [_widest(known, around, tier, top) for tier in range(MOST_TIERS + 1)]
        made = {tier_label(tier): value for tier, value in enumerate(by_tier) if value}
        named = {tier_label(name): by_tier[min(tier, MOST_TIERS)] for name, tier in names.items()}
        found[node] = made | {label: value for label, value in named.items() if value}
    return found


def _tier_names(hyper_nodes: Iterable[HyperNode]) -> Iterator[tuple[str, int]]:
    for one in hyper_nodes:
        if one.tier_name and not one.tier_name.isdecimal():
            yield one.tier_name, one.tier


def _around(known: Mapping[str, HyperNode], above: Mapping[str, set[str]], first: Iterable[str]) -> set[str]:
    """Give the HyperNodes in which something is, and those around these."""
    found: set[str] = set()
    waiting = list(first)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += above[name]
    return found & known.keys()


def _widest(known: Mapping[str, HyperNode], around: Iterable[str], tier: int, top: int) -> str:
    """Give the widest of some HyperNodes up to a tier; beyond the highest there is, all nodes are together."""
    if tier > top:
        return CLUSTER
    return max(((known[n].tier, n) for n in around if known[n].tier <= tier), default=(0, ""))[1]
