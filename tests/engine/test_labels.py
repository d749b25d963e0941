"""Selectors, tolerations and label selectors, expression by expression, as Kubernetes reads them."""

from __future__ import annotations

import pytest

from tenure.engine.room.domains import NodeDomains
from tenure.engine.room.labels import NodeLabels, selects
from tenure.engine.room.taints import tolerates
from tenure.model.node import Node
from tenure.model.selectors import LabelSelector, NodeSelectorTerm, Requirement, Taint, Toleration


@pytest.mark.parametrize(
    ("operator", "value", "admitted"),
    [
        ("Gt", "5", ["six"]),
        ("Lt", "5", ["four"]),
        ("Gt", "4", ["five", "six"]),
        ("Lt", "6", ["four", "five"]),
        ("In", "5", ["five"]),
        ("NotIn", "5", ["four", "six", "many", "none"]),
        ("Exists", None, ["four", "five", "six", "many"]),
        ("DoesNotExist", None, ["none"]),
    ],
)
def test_an_expression_admits_the_nodes(operator, value, admitted):
    """A number equals none that it is greater or less than; a node without the label only passes what denies."""
    values = {"four": "4", "five": "5", "six": "6", "many": "many", "none": None}
    nodes = [
        Node(name=name, allocatable={}, labels={} if text is None else {"size": text}) for name, text in values.items()
    ]
    asked = Requirement(key="size", operator=operator, values=() if value is None else (value,))
    mask = NodeLabels(nodes, NodeDomains(nodes)).term(NodeSelectorTerm(match_expressions=(asked,)))
    assert [node.name for node, is_admitted in zip(nodes, mask, strict=True) if is_admitted] == admitted


@pytest.mark.parametrize(
    ("operator", "values", "matched"),
    [
        ("In", ("a", "b"), ["a"]),
        ("NotIn", ("a", "b"), ["c", "none"]),
        ("Exists", (), ["a", "c"]),
        ("DoesNotExist", (), ["none"]),
    ],
)
def test_an_expression_of_a_label_selector_matches(operator, values, matched):
    """What has no such label is in no set, and so not in the wrong one."""
    labels = {"a": {"app": "a"}, "c": {"app": "c"}, "none": {"other": "a"}}
    selector = LabelSelector(match_expressions=(Requirement(key="app", operator=operator, values=values),))
    assert [name for name, own in labels.items() if selects(selector, own)] == matched


TAINTS = {
    "plain": Taint(key="k", effect="NoSchedule"),
    "valued": Taint(key="k", value="v", effect="NoSchedule"),
    "going": Taint(key="k", value="v", effect="NoExecute"),
    "other": Taint(key="o", value="v", effect="NoSchedule"),
}


@pytest.mark.parametrize(
    ("toleration", "tolerated"),
    [
        (Toleration(key="k"), ["plain"]),
        (Toleration(key="k", value="v"), ["valued", "going"]),
        (Toleration(key="k", value="v", effect="NoSchedule"), ["valued"]),
        (Toleration(key="k", value="w"), []),
        (Toleration(key="k", operator="Exists"), ["plain", "valued", "going"]),
        (Toleration(key="k", operator="Exists", effect="NoExecute"), ["going"]),
        (Toleration(operator="Exists"), ["plain", "valued", "going", "other"]),
        (Toleration(operator="Exists", effect="NoSchedule"), ["plain", "valued", "other"]),
    ],
)
def test_a_toleration_tolerates(toleration, tolerated):
    """Without a value the taint that has none, unless any will do; without an effect every effect."""
    assert [name for name, taint in TAINTS.items() if tolerates((toleration,), taint)] == tolerated
    assert not any(tolerates((), taint) for taint in TAINTS.values())
