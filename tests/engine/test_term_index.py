"""The index of terms finds the same terms as a look at every selector; terms without number slow nobody down."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.builders import bound, cluster, node, spec, workload

from tenure.engine.room.domains import NodeDomains
from tenure.engine.room.labels import NodeLabels, selects
from tenure.engine.terms.index import TermIndex
from tenure.model.node import Node
from tenure.model.selectors import (
    Affinity,
    HostPort,
    LabelSelector,
    NodeAffinity,
    NodeSelectorTerm,
    Requirement,
    SpreadConstraint,
)
from tenure.playthrough import play

KEYS, VALUES, NAMESPACES = ("a", "b", "c"), ("x", "y", "z"), ("one", "other")
REQUIREMENT = st.builds(
    Requirement,
    key=st.sampled_from(KEYS),
    operator=st.sampled_from(("In", "NotIn", "Exists", "DoesNotExist", "Gt")),
    values=st.lists(st.sampled_from(VALUES), max_size=3).map(tuple),
)
LABELS = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES))
SELECTOR = st.one_of(
    st.none(),
    st.builds(
        LabelSelector,
        match_labels=LABELS.map(lambda found: tuple(sorted(found.items()))),
        match_expressions=st.lists(REQUIREMENT, max_size=3).map(tuple),
    ),
)
TERM = st.tuples(st.lists(SELECTOR, min_size=1, max_size=2), st.frozensets(st.sampled_from(NAMESPACES)))


@given(terms=st.lists(TERM, max_size=6), more=st.lists(TERM, max_size=3), labels=LABELS)
def test_the_index_finds_what_a_look_at_every_selector_finds(terms, more, labels):
    """Of several selectors, with every operator, in two namespaces; also of terms that came after a first question."""
    asked = [*terms, *more]
    index = TermIndex(lambda row, namespace: namespace in asked[row][1])
    pairs = tuple(sorted(labels.items()))
    for count, part in ((len(terms), terms), (len(asked), more)):
        for selectors, _ in part:
            index.add(selectors)
        for namespace in NAMESPACES:
            wanted = tuple(
                row
                for row, (selectors, seen) in enumerate(asked[:count])
                if namespace in seen and all(selects(selector, labels) for selector in selectors)
            )
            assert index.matching(pairs, namespace) == wanted


def ports(number):
    """Ports that nobody else has: as many as a pod may have."""
    return {"host_ports": tuple(HostPort(port=1 + 256 * number + n) for n in range(256))}


def spread(number):
    """Constraints with selectors that match everybody, each of its own kind."""
    selectors = [
        LabelSelector(match_expressions=(Requirement(key=f"k-{number}-{n}", operator="NotIn", values=("x",)),))
        for n in range(10)
    ]
    return {"spread": tuple(SpreadConstraint(max_skew=9, topology_key="zone", selector=s) for s in selectors)}


def wanted(number):
    """Terms of node affinity with names that no node has."""
    terms = [
        Requirement(key="zone", operator="NotIn", values=tuple(f"v-{number}-{n}-{m}" for m in range(10)))
        for n in range(64)
    ]
    required = tuple(NodeSelectorTerm(match_expressions=(term,)) for term in terms)
    return {"affinity": Affinity(node=NodeAffinity(required=required))}


@pytest.mark.parametrize(("asked", "count"), [(ports, 100), (spread, 300), (wanted, 300)])
def test_terms_without_number_are_placed_in_a_moment(asked, count):
    """Pods, each with as many terms of its own as are read: it took minutes when each looked at all."""
    nodes = [node(f"n-{n}", cpu=64, labels={"zone": f"z-{n % 3}"}) for n in range(300)]
    made = cluster(nodes, [workload(f"w-{n}", of=spec(labels=(("app", f"a-{n}"),), **asked(n))) for n in range(count)])
    began = time.process_time()
    assert len(bound(play(made))) == count
    assert time.process_time() - began < 15


def test_what_no_node_has_is_not_kept():
    """Labels that nobody has cost no vector over all nodes; the answers are those of a node without the label."""
    nodes = [Node(name=f"n-{n}", allocatable={}, labels={"zone": "a"}) for n in range(3)]
    domains = NodeDomains(nodes)
    labels = NodeLabels(nodes, domains)
    nowhere = [labels.equal(f"k-{n}", "x") for n in range(3)] + [labels.equal("zone", f"v-{n}") for n in range(3)]
    assert len({id(mask) for mask in nowhere}) == 1
    assert not nowhere[0].any()
    assert not labels.having("k").any()
    ids, values = domains.of("k")
    assert np.array_equal(ids, [-1, -1, -1])
    assert values == []


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (HostPort(port=80), HostPort(port=80), 1),
        (HostPort(port=80), HostPort(port=80, protocol="UDP"), 2),
        (HostPort(port=80, ip="10.0.0.1"), HostPort(port=80), 1),
        (HostPort(port=80), HostPort(port=80, ip="10.0.0.1"), 1),
        (HostPort(port=80, ip="10.0.0.1"), HostPort(port=80, ip="10.0.0.2"), 2),
        (HostPort(port=80, ip="10.0.0.1"), HostPort(port=80, ip="10.0.0.1"), 1),
    ],
)
def test_a_port_on_every_address_collides_with_each(one, other, expected):
    """Two ports of one number and protocol collide on one address, and where one of them is on all."""
    asking = [workload(name, of=spec(host_ports=(port,))) for name, port in (("a", one), ("b", other))]
    assert len(bound(play(cluster([node("n")], asking)))) == expected
