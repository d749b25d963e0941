"""Affinity, spread and host ports where simple counting goes wrong: rules of Kubernetes, one case each."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from tests.builders import NOW, SECOND, bound, cluster, node, spec, task, workload
from tests.effort import tries
from tests.properties.strategies import clusters

from tenure.cycle import Scheduler
from tenure.engine.room import nodes
from tenure.engine.room.nodes import THEN
from tenure.engine.snapshot import session_of
from tenure.model.selectors import (
    Affinity,
    HostPort,
    LabelSelector,
    PodAffinity,
    PodAffinityTerm,
    SpreadConstraint,
    Taint,
)
from tenure.model.workload import Phase
from tenure.playthrough import play


def app(*names):
    return tuple(("app", name) for name in names)


def near(*apps, key="zone"):
    terms = tuple(PodAffinityTerm(topology_key=key, selector=LabelSelector(match_labels=app(a))) for a in apps)
    return Affinity(pod=PodAffinity(required=terms))


def both(one, other, key="zone"):
    """Two terms with one label each."""
    terms = tuple(
        PodAffinityTerm(topology_key=key, selector=LabelSelector(match_labels=(pair,))) for pair in (one, other)
    )
    return Affinity(pod=PodAffinity(required=terms))


ZONES = [node("a", labels={"zone": "a"}), node("b", labels={"zone": "b"})]


def test_two_affinities_mean_one_pod_that_both_match():
    """A pod with the first label and another with the second do not add up."""
    one, other, match = (spec(labels=labels) for labels in ((("x", "1"),), (("y", "1"),), (("x", "1"), ("y", "1"))))
    contender = workload("w", of=spec(affinity=both(("x", "1"), ("y", "1"))))
    apart = [workload("p", of=one, on=["a"]), workload("q", of=other, on=["a"])]
    assert bound(play(cluster(ZONES, [*apart, contender]))) == {}
    assert bound(play(cluster(ZONES, [*apart, workload("r", of=match, on=["b"]), contender]))) == {"w-0": "b"}


def test_the_first_of_its_kind_needs_nobody_though_one_runs_where_the_key_is_missing():
    """A pod on a node without the topology key is in no domain, and so is not found."""
    nodes = [node("a", labels={"zone": "a"}), node("z")]
    of = spec(labels=app("x"), affinity=near("x"))
    assert bound(play(cluster(nodes, [workload("p", of=of, on=["z"]), workload("w", of=of)]))) == {"w-0": "a"}


@pytest.mark.parametrize(("taints", "expected"), [("Ignore", {}), ("Honor", {"w-0": "a"})])
def test_a_tainted_zone_counts_for_spread_unless_the_policy_says_otherwise(taints, expected):
    nodes = [node("a", labels={"zone": "a"}), node("b", labels={"zone": "b"}, taints=(Taint(key="t"),))]
    even = SpreadConstraint(
        max_skew=1, topology_key="zone", selector=LabelSelector(match_labels=app("x")), node_taints_policy=taints
    )
    of = spec(labels=app("x"), spread=(even,))
    assert bound(play(cluster(nodes, [workload("p", of=of, on=["a"]), workload("w", of=of)]))) == expected


def test_a_port_on_every_address_collides_with_one_on_a_single_address_that_came_later():
    """The order in which ports become known does not matter."""
    everywhere, single = (spec(host_ports=(port,)) for port in (HostPort(port=80), HostPort(port=80, ip="10.0.0.1")))
    session = session_of(cluster([node("a")], [workload("w", of=everywhere)]))
    session.add_workload(workload("p", of=single, on=["a"]))
    waiting = session.workloads["default/w"].tasks[0]
    now, then = session.terms.admission.masks(waiting.terms)
    assert not now.any()
    assert not then.any()


def test_a_task_that_others_keep_away_does_not_speak_for_those_of_its_shape():
    """Of two equal requests one is unwanted next to what came later: the other still fits."""
    alone = Affinity(
        pod_anti=PodAffinity(
            required=(PodAffinityTerm(topology_key="host", selector=LabelSelector(match_labels=app("x"))),)
        )
    )
    session = session_of(cluster([node("a", cpu=4, labels={"host": "a"})]))
    scheduler = Scheduler(session)
    session.add_workloads([workload("x", of=spec(labels=app("x")), age=1), workload("y", of=spec())])
    session.add_workload(workload("guard", of=spec(cpu=1, affinity=alone), on=["a"]))
    assert {s.task for s in scheduler.cycle(session.now).steps} == {"y-0"}


def test_spread_does_not_count_what_terminates():
    """Neither where it still stands, nor where it should have left long ago."""
    even = SpreadConstraint(max_skew=1, topology_key="zone", selector=LabelSelector(match_labels=app("x")))
    of = spec(cpu=4, labels=app("x"), spread=(even,))
    gone = {"phase": Phase.TERMINATING, "terminating_since": NOW - 60 * SECOND}
    stuck = workload("s", tasks=[task(f"s-{i}", spec(labels=app("x")), on="b", **gone) for i in range(2)])
    runs = workload("r", of=spec(labels=app("x")), on=["a"])
    assert bound(play(cluster(ZONES, [stuck, runs, workload("w", of=of)]))) == {"w-0": "b"}


def test_affinity_looks_at_its_own_namespace_only():
    of = spec(labels=app("x"), affinity=near("y"))
    there = workload("p", of=spec(labels=app("y")), on=["b"], namespace="other")
    assert bound(play(cluster(ZONES, [there, workload("w", of=of)]))) == {}


def test_what_terminates_is_near_until_it_is_gone():
    """A task is bound beside it, as by kube-scheduler; but nothing is promised to be beside it."""
    of = spec(cpu=4, labels=app("x"), affinity=near("y"))
    goes = {"phase": Phase.TERMINATING, "terminating_since": NOW, "grace_period": 60 * SECOND}
    leaves = workload("s", tasks=[task("s-0", spec(labels=app("y")), on="b", **goes)])
    assert bound(play(cluster(ZONES, [leaves, workload("w", of=of)]))) == {"w-0": "b"}
    fills = workload("f", tasks=[task("f-0", spec(cpu=ZONES[1].allocatable["cpu"] // 1000), on="b", **goes)])
    decided = play(cluster(ZONES, [leaves, fills, workload("w", of=of)]))
    assert bound(decided) == {}
    assert not any(step.workload == "default/w" for step in decided.steps)


def test_what_must_not_be_near_still_has_to_be_gone():
    """Of what terminates a task that keeps away from it waits for the end."""
    away = Affinity(pod_anti=near("y").pod)
    goes = {"phase": Phase.TERMINATING, "terminating_since": NOW, "grace_period": 60 * SECOND}
    leaves = [workload(f"s-{n}", tasks=[task(f"s-{n}-0", spec(labels=app("y")), on=n, **goes)]) for n in "ab"]
    assert bound(play(cluster(ZONES, [*leaves, workload("w", of=spec(labels=app("x"), affinity=away))]))) == {}


def test_counts_of_terms_are_kept_when_more_come_and_are_short():
    """Terms that come later leave what is counted of the others as it was; each counts in a few bytes by node."""
    nodes = [node(f"n{i}", labels={"zone": f"n{i}"}) for i in range(50)]
    session = session_of(cluster(nodes, [workload("w", of=spec(labels=app("y"), affinity=near("x")))]))
    session.add_workload(workload("p", of=spec(labels=app("x")), on=["n7"]))
    for number in range(9):
        of = spec(labels=app(f"x{number}"), affinity=near(f"x{number}"))
        session.add_workload(workload(f"p{number}", of=of, on=["n8"]))
    terms = session.terms
    counted = terms.counts.match.any(axis=(0, 2)).sum()
    assert counted == 1 + 9
    assert session.terms.admission.masks(session.workloads["default/w"].tasks[0].terms)[0].nonzero()[0].tolist() == [
        session.nodes.index["n7"]
    ]
    arrays = (terms.counts.match, terms.counts.hold, terms.counts.leaving)
    assert sum(array[:, 0].nbytes for array in arrays) <= 24 * len(nodes)


@given(clusters(crowded=True))
@settings(max_examples=tries(30, 1000))
def test_one_node_admits_a_task_as_it_does_among_all(cluster):
    """Now and then; and where something there keeps a task off, no look at all nodes lets it in."""
    session = session_of(cluster)
    Scheduler(session).cycle(cluster.now)
    for state in session.workloads.values():
        for waiting in (t for t in state.tasks if t.terms is not None):
            masks = session.terms.admission.masks(waiting.terms)
            for place in range(len(session.nodes)):
                assert [session.terms.admission.admits(waiting.terms, place, view) for view in (nodes.NOW, THEN)] == [
                    bool(mask[place]) for mask in masks
                ]
                assert not (masks[1][place] and session.terms.admission.keeps_off(waiting.terms, place, THEN))
